import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import {
  type Ledger,
  register,
  repeatedInPeace,
  runClient,
  say,
  strangers,
  untilAnswered,
} from '../support/numbered-messages.ts'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { startPostgres, type TestPostgres } from '../support/servers/postgres.ts'
import { verifies } from '../support/verifies.ts'

const CLIENTS = 6
const NODES = [0, 1, 2] as const
/** `npm test` shows that it works; the long form is for a quiet hour. */
const ROUNDS = Number(process.env.HUB_NODES_ROUNDS ?? 6)
const PER_ROUND = 60
const LEASE_MS = 2_000

let postgres: TestPostgres

beforeAll(async () => {
  postgres = await startPostgres()
}, 60_000)
afterAll(() => postgres?.remove())

verifies(
  ['nodes:delivery:nothing-lost', 'nodes:upstream:one-polls', 'nodes:http:any-node-serves', 'nodes:lease:takeover'],
  'three hubs on one Postgres are killed and frozen while messages flow to clients that poll any of them: all arrive, twice only what was in flight',
  async () => {
    const cluster = await startCluster()
    const hurts: { from: number; to: number }[] = []
    const tokens: string[] = []
    for (let index = 0; index < CLIENTS; index += 1) tokens.push(await register(cluster.anyUrl(), `c${index}`))
    await say(
      cluster.simUrl,
      tokens.map((_, index) => ({ user: `user${index}`, text: `/use c${index}` })),
    )
    await Promise.all(tokens.map((_, index) => untilAnswered(cluster.simUrl, `user${index}`)))

    const stop = new AbortController()
    const ledgers = tokens.map((): Ledger => ({ batches: [] }))
    const clients = tokens.map((token, index) =>
      runClient({
        url: cluster.anyUrl,
        token,
        withCursor: index % 2 === 0,
        ledger: ledgers[index] ?? { batches: [] },
        kills: () => hurts.length,
        signal: stop.signal,
      }),
    )
    const pollers = watchPollers(cluster.simUrl, stop.signal)
    for (let round = 0; round < ROUNDS; round += 1) {
      const said = say(
        cluster.simUrl,
        Array.from({ length: PER_ROUND }, (_, index) => round * PER_ROUND + index).map((number) => ({
          user: `user${number % CLIENTS}`,
          text: `message ${number}`,
        })),
      )
      await pause(Math.random() * 100)
      const from = Date.now()
      await cluster.hurt(round)
      hurts.push({ from, to: Date.now() })
      await said
    }
    const total = ROUNDS * PER_ROUND
    const missing = () =>
      Array.from({ length: total }, (_, number) => number).filter(
        (number) => !ledgers[number % CLIENTS]?.batches.some(({ texts }) => texts.includes(`message ${number}`)),
      )
    const deadline = Date.now() + 60_000
    while (missing().length > 0 && Date.now() < deadline) await pause(50)
    expect(missing()).toEqual([])

    stop.abort()
    await cluster.stop()
    await Promise.all(clients)
    for (const [client, { batches }] of ledgers.entries()) {
      expect(strangers(batches, client, CLIENTS)).toEqual([])
      expect(repeatedInPeace(batches, hurts)).toEqual([])
    }
    expect(await pollers).toBeLessThanOrEqual(1)
  },
  240_000,
)

verifies(
  ['nodes:operation:rolling-restart', 'nodes:http:any-node-serves'],
  'stopped and started one after the other, three hubs answer every poll and every send',
  async () => {
    const cluster = await startCluster()
    const token = await register(cluster.anyUrl(), 'ada')
    const failures: string[] = []
    const stop = new AbortController()
    const polling = keepPolling(cluster.liveUrl, token, failures, stop.signal)
    await say(cluster.simUrl, [{ user: 'ann', text: 'hello' }])
    for (const node of NODES) await cluster.restart(node)
    await say(cluster.simUrl, [{ user: 'ann', text: 'goodbye' }])
    await expect.poll(() => polling.got(), { timeout: 30_000 }).toEqual(['hello', 'goodbye'])
    stop.abort()
    await cluster.stop()
    expect(failures).toEqual([])
  },
  120_000,
)

verifies(
  'nodes:migrate:copies',
  async () => {
    const dir = temporaryFolder()
    const databaseUrl = await postgres.createDatabase()
    const alone = await startHubAlone(dir)
    const token = await register(alone.url, 'ada')
    await say(alone.simUrl, [{ user: 'ann', text: 'kept' }])
    await expect.poll(() => queueSize(alone.url), { timeout: 20_000 }).toBe(1)
    await alone.stop()

    const migrate = () => runCli(['migrate', '--data-dir', dir], { env: { RELAY_DATABASE_URL: databaseUrl } })
    const first = migrate()
    expect(await first.ended, first.output()).toBe(0)
    const second = migrate()
    expect(await second.ended).toBe(1)
    expect(second.output()).toContain('holds messages already')

    const cluster = await startCluster(databaseUrl)
    const polling = keepPolling(cluster.anyUrl, token, [], new AbortController().signal)
    await expect.poll(() => polling.got(), { timeout: 30_000 }).toEqual(['kept'])
    await cluster.stop()
  },
  120_000,
)

async function startHubAlone(dir: string) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const hub = runCli(['hub', '--addr', `127.0.0.1:${port}`, '--data-dir', dir, '--log-level', 'error'])
  await untilAnswers(`${url}/ready`, hub, 60_000)
  const simUrl = /http:\/\/127\.0\.0\.1:\d+(?=\/sim\/say)/.exec(hub.output())?.[0] ?? ''
  return { url, simUrl, stop: () => hub.kill('SIGTERM') }
}

async function queueSize(url: string): Promise<number> {
  const { clients }: { clients: { queue_size: number }[] } = JSON.parse(
    await (await fetch(`${url}/hub/clients`)).text(),
  )
  return clients[0]?.queue_size ?? 0
}

async function startCluster(given?: string) {
  const databaseUrl = given ?? (await postgres.createDatabase())
  const simPort = await freePort()
  const simUrl = `http://127.0.0.1:${simPort}`
  const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`, '--bot-token', 'bot@im.bot:t'])
  await untilAnswers(`${simUrl}/health`, sim, 60_000)
  const ports = await Promise.all(NODES.map(() => freePort()))
  const dirs = NODES.map(() => temporaryFolder())
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const programs = NODES.map(start)
  let down = -1
  await Promise.all(NODES.map(ready))

  return {
    simUrl,
    anyUrl: () => urls[Math.floor(Math.random() * urls.length)] ?? '',
    /** Any that is not being restarted: what a load balancer would choose. */
    liveUrl: () => urls[(down + 1) % urls.length] ?? '',
    /** A kill in even rounds; in odd ones a node sleeps for longer than its lease and wakes up again. */
    async hurt(round: number): Promise<void> {
      const node = Math.floor(Math.random() * NODES.length)
      const program = programs[node]
      if (program === undefined) return
      if (round % 2 === 0) {
        await program.kill('SIGKILL')
        programs[node] = start(node)
      } else {
        program.child.kill('SIGSTOP')
        await pause(1.5 * LEASE_MS)
        program.child.kill('SIGCONT')
      }
      await ready(node)
    },
    async restart(node: number): Promise<void> {
      down = node
      await programs[node]?.kill('SIGTERM')
      programs[node] = start(node)
      await ready(node)
      down = -1
    },
    stop: () => Promise.all(programs.map((program) => program.kill('SIGTERM'))),
  }

  function start(node: number): Program {
    const args = ['--addr', `127.0.0.1:${ports[node]}`, '--data-dir', dirs[node] ?? '', '--upstream-url', simUrl]
    const more = ['--poll-hold-ms', '2000', '--log-level', 'error', '--lease-ms', String(LEASE_MS)]
    const env = { RELAY_DATABASE_URL: databaseUrl, RELAY_UPSTREAM_TOKEN: 'bot@im.bot:t' }
    return runCli(['hub', ...args, ...more], { env })
  }

  async function ready(node: number): Promise<void> {
    await untilAnswers(`${urls[node]}/ready`, programs[node], 60_000)
  }
}

/** The most polls that the service saw open at once, from when nodes were killed on. */
async function watchPollers(simUrl: string, signal: AbortSignal): Promise<number> {
  let most = 0
  while (!signal.aborted) {
    const state: { polls_in_flight: number } = JSON.parse(await (await fetch(`${simUrl}/sim/state`)).text())
    most = Math.max(most, state.polls_in_flight)
    await pause(20)
  }
  return most
}

function keepPolling(url: () => string, token: string, failures: string[], signal: AbortSignal) {
  const got: string[] = []
  void run()
  return { got: () => got }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const response = await fetch(`${url()}/relay/bot/getupdates`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: '{}',
      }).catch((error: unknown) => error)
      if (signal.aborted) return
      if (!(response instanceof Response) || response.status !== 200) {
        failures.push(response instanceof Response ? `${response.status}: ${await response.text()}` : String(response))
        continue
      }
      const { messages }: { messages: { content: string }[] } = JSON.parse(await response.text())
      got.push(...messages.map(({ content }) => content))
    }
  }
}
