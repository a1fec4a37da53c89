import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Part, startPart } from '../../bench/processes.ts'
import { cursorRelay } from '../../src/client/cursor-relay.ts'
import { hubAdmin } from '../../src/client/hub-client.ts'
import { silentLog } from '../../src/kit/log.ts'
import { startSim } from '../../src/sim/main.ts'
import { type LifeSigns, lifeSigns, WATCHED } from '../soak/life-signs.ts'
import { parsePrometheusText } from '../support/prometheus-text.ts'
import { AGENT_OPERATIONS, HUB_OPERATIONS, type Operation } from './operations.ts'
import { agentJudge, hubJudge, type Judge } from './oracle.ts'
import type { Door } from './requests.ts'

/** A server under attack. */
export interface Target extends Door {
  name: 'hub' | 'agent'
  url: string
  operations: readonly Operation[]
  judge: Judge
  /** Notes what an accepted call has made or taken away. */
  note(method: string, path: string, status: number, body: string): void
  /** Things that exist and were never told of, or the other way round. */
  discrepancies(): Promise<string[]>
  /** What a healthy server shows; empty when it is one. */
  complaints(): Promise<string[]>
  signs(): Promise<LifeSigns>
  /** Takes away everything that was made. */
  cleanUp(): Promise<void>
}

export interface Targets {
  hub: Target
  agent: Target
  stop(): Promise<void>
}

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const ADDRESS = /http:\/\/127\.0\.0\.1:(\d+)/
const START_MS = 120_000
const HEALTHY_WITHIN_MS = 20_000
export const ADMIN_TOKEN = 'fuzz-admin-token-0123456789abcdef'
export const API_KEY = 'fuzz-api-key-0123456789abcdef0123'
const KEEPER = 'fuzz-keeper'

/** Starts a hub and an agent server with logs that are read along. */
export async function startTargets(): Promise<Targets> {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-fuzz-'))
  const workspace = mkdtempSync(join(folder, 'workspace-'))
  writeFileSync(join(workspace, 'README.md'), 'A few words.\n')
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: 'fuzz@im.bot:t', holdMs: 5_000, log: silentLog })
  const hubArgs = ['--upstream-url', sim.url, '--poll-hold-ms', '20', '--requests-per-second', '0']
  const hub = await start('hub', folder, hubArgs, {
    RELAY_ADMIN_TOKEN: ADMIN_TOKEN,
    RELAY_UPSTREAM_TOKEN: 'fuzz@im.bot:t',
  })
  const agentArgs = ['--workspace', workspace, '--model', 'demo', '--requests-per-second', '0']
  const agent = await start('agent', folder, agentArgs, { AGENT_AUTH_KEYS: API_KEY })
  return {
    hub: await hubTarget(hub, (user) => void sim.control.say({ user, text: 'hello' })),
    agent: agentTarget(agent),
    async stop() {
      await Promise.all([hub.part.stop(), agent.part.stop()])
      await sim.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Started {
  part: Part
  port: number
  url: string
  dataDir: string
  /** Lines of its log that are not one JSON object each, or tell of a bug. */
  badLines: string[]
}

async function start(
  name: 'hub' | 'agent',
  folder: string,
  args: string[],
  env: Record<string, string>,
): Promise<Started> {
  const dataDir = join(folder, name)
  const badLines: string[] = []
  let open = ''
  const onError = (text: string) => {
    const lines = (open + text).split('\n')
    open = lines.pop() ?? ''
    badLines.push(...lines.filter((line) => !isLogLine(line)))
  }
  const all = [...WATCHED, CLI, name, '--addr', '127.0.0.1:0', '--data-dir', dataDir, '--log-level', 'debug', ...args]
  const part = startPart(name, all, env, onError)
  const port = Number((await part.printed(ADDRESS, START_MS))[1])
  return { part, port, url: `http://127.0.0.1:${port}`, dataDir, badLines }
}

/** One JSON object with a level, a time and a text, and no sign of a bug or of what was sent. */
function isLogLine(line: string): boolean {
  try {
    const { level, time, msg } = JSON.parse(line)
    return typeof level === 'number' && level < 50 && typeof time === 'string' && !String(msg).includes('fuzz injected')
  } catch {
    return false
  }
}

async function hubTarget(started: Started, greet: (user: string) => void): Promise<Target> {
  const { url, port } = started
  const admin = hubAdmin({ url, adminToken: ADMIN_TOKEN })
  const { token } = await admin.register(KEEPER)
  greet('ann')
  const { messages } = await cursorRelay({ url, token }).poll('')
  const made = new Set<string>()
  const contexts = messages.map(({ contextToken }) => contextToken)
  const others = async () => (await admin.clients()).clients.map(({ name }) => name).filter((name) => name !== KEEPER)
  return {
    ...common('hub', started, { authorization: `Bearer ${ADMIN_TOKEN}` }),
    port,
    operations: HUB_OPERATIONS,
    judge: hubJudge(),
    known: () => [...made, ...contexts, '1'],
    credentials: (path) => `authorization: Bearer ${/^\/(relay|ilink)\//.test(path) ? token : ADMIN_TOKEN}`,
    note(method, path, status, body) {
      if (method === 'POST' && path.startsWith('/hub/register') && status === 201) made.add(JSON.parse(body).name)
      if (method === 'DELETE' && status === 204) made.delete(lastPart(path))
    },
    discrepancies: async () => differences(made, await others()),
    async cleanUp() {
      for (const name of await others()) await admin.remove(name)
      made.clear()
    },
  }
}

function agentTarget(started: Started): Target {
  const { url, port } = started
  const headers = { 'x-api-key': API_KEY }
  const made = new Set<string>()
  const list = async (): Promise<string[]> => {
    const all: { session_id: string }[] = JSON.parse(await (await fetch(`${url}/sessions`, { headers })).text())
    return all.map(({ session_id }) => session_id)
  }
  return {
    ...common('agent', started, headers),
    port,
    operations: AGENT_OPERATIONS,
    judge: agentJudge(),
    known: () => [...made],
    credentials: () => `x-api-key: ${API_KEY}`,
    note(method, path, status, body) {
      if (method === 'POST' && status === 201 && /^\/sessions(\/[^/]+\/fork)?\/?(\?|$)/.test(path))
        made.add(JSON.parse(body).session_id)
      if (method === 'DELETE' && status === 204) made.delete(lastPart(path))
    },
    discrepancies: async () => differences(made, await list()),
    async cleanUp() {
      for (const id of await list()) await fetch(`${url}/sessions/${id}`, { method: 'DELETE', headers })
      made.clear()
    },
  }
}

function common(name: Target['name'], started: Started, headers: Record<string, string>) {
  const { url, part, dataDir, badLines } = started
  return {
    name,
    url,
    signs: () => lifeSigns(part, dataDir),
    async complaints() {
      const found = badLines.splice(0).map((line) => `log: ${line.slice(0, 500)}`)
      const signal = AbortSignal.timeout(HEALTHY_WITHIN_MS)
      try {
        const health = await fetch(`${url}/health`, { signal })
        if (health.status !== 200) found.push(`/health answers ${health.status}`)
        await health.text()
        parsePrometheusText(await (await fetch(`${url}/metrics`, { headers, signal })).text())
      } catch (error) {
        found.push(`not healthy: ${error instanceof Error ? error.message : String(error)}`)
      }
      return found
    },
  }
}

function differences(told: ReadonlySet<string>, there: readonly string[]): string[] {
  const found = new Set(there)
  return [
    ...there.filter((one) => !told.has(one)).map((one) => `${one} is there and was never accepted`),
    ...[...told].filter((one) => !found.has(one)).map((one) => `${one} was accepted and is not there`),
  ]
}

function lastPart(path: string): string {
  return decodeURIComponent(path.split('?')[0]?.split('/').filter(Boolean).at(-1) ?? '')
}
