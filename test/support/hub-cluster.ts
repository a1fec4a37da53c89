import { setTimeout as pause } from 'node:timers/promises'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from './processes.ts'

/** One of several hubs on a database: a process that can be hurt. */
export interface HubNode {
  readonly url: string
  readonly program: Program
  start(): void
  /** Resolves when it answers that it is ready. */
  ready(): Promise<void>
  /** What `/ready` says; null when it says nothing. */
  readiness(): Promise<{ ready: boolean; reason?: string } | null>
  leads(): Promise<boolean>
}

/** Hubs on one database, before one simulated messaging service. */
export interface HubCluster {
  readonly simUrl: string
  readonly nodes: readonly HubNode[]
  anyUrl(): string
  /** The node that leads, as soon as one does that is not `other`. */
  leader(other?: HubNode): Promise<HubNode>
  /** What the service has counted. */
  counts(): Promise<{ polls: number; polls_displaced: number }>
  /** Ends all nodes in order. */
  stop(): Promise<void>
}

const NODES = 3
const START_MS = 60_000
const LEAD_MS = 60_000
const LOOK_MS = 25
const ANSWER_MS = 1_000
const BOT_TOKEN = 'bot@im.bot:t'
const METRICS_TOKEN = 'for-metrics'

/** Starts three hubs; the default lease where none is given. */
export async function startHubCluster(databaseUrl: string, leaseMs?: number): Promise<HubCluster> {
  const simPort = await freePort()
  const simUrl = `http://127.0.0.1:${simPort}`
  const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`, '--bot-token', BOT_TOKEN])
  await untilAnswers(`${simUrl}/health`, sim, START_MS)
  const args = ['--upstream-url', simUrl, '--poll-hold-ms', '2000', '--log-level', 'warn']
  if (leaseMs !== undefined) args.push('--lease-ms', String(leaseMs))
  const nodes = await Promise.all(Array.from({ length: NODES }, () => hubNode(args, databaseUrl)))
  await Promise.all(nodes.map((node) => node.ready()))

  return {
    simUrl,
    nodes,
    anyUrl: () => nodes[Math.floor(Math.random() * nodes.length)]?.url ?? '',
    async leader(other) {
      const deadline = Date.now() + LEAD_MS
      while (Date.now() < deadline) {
        for (const node of nodes) if (node !== other && (await node.leads())) return node
        await pause(LOOK_MS)
      }
      throw new Error(`no node leads:\n${nodes.map(({ program }) => program.output().slice(-2_000)).join('\n')}`)
    },
    counts: async () => JSON.parse(await (await fetch(`${simUrl}/sim/state`)).text()),
    stop: async () => void (await Promise.all(nodes.map(({ program }) => program.kill('SIGTERM')))),
  }
}

async function hubNode(args: string[], databaseUrl: string): Promise<HubNode> {
  const port = await freePort()
  const dir = temporaryFolder()
  const url = `http://127.0.0.1:${port}`
  const env = { RELAY_DATABASE_URL: databaseUrl, RELAY_UPSTREAM_TOKEN: BOT_TOKEN, RELAY_METRICS_TOKEN: METRICS_TOKEN }
  const run = () => runCli(['hub', '--addr', `127.0.0.1:${port}`, '--data-dir', dir, ...args], { env })
  let program = run()
  const metrics = () => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    return fetch(`${url}/metrics`, { headers, signal: AbortSignal.timeout(ANSWER_MS) }).then((got) => got.text())
  }
  return {
    url,
    get program() {
      return program
    },
    start() {
      program = run()
    },
    ready: () => untilAnswers(`${url}/ready`, program, START_MS),
    readiness: () =>
      fetch(`${url}/ready`, { signal: AbortSignal.timeout(5 * ANSWER_MS) }).then(
        async (answer) => JSON.parse(await answer.text()),
        () => null,
      ),
    leads: () =>
      metrics().then(
        (text) => /^switchboard_hub_node_leading 1$/m.test(text),
        () => false,
      ),
  }
}
