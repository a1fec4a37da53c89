import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PROBED, type Usage, usageOf } from '../probe.ts'
import { startPart, TSX } from '../processes.ts'
import { FAN_OUT_GOAL, RUN_GOAL } from './calls.ts'

/** One of the two servers that are measured. */
export interface AgentServer {
  readonly name: 'agent' | 'bare' | 'peer'
  readonly port: number
  usage(options?: { collect: boolean }): Promise<Usage>
  stop(): Promise<void>
}

const START_MS = 15_000
const ADDRESS = /http:\/\/127\.0\.0\.1:(\d+)/
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** How many tools the model calls in the run that many read; each gives two events. */
export const FAN_OUT_CALLS = 500

/** Starts the built agent server with a model that answers at once; it keeps everything where `state` says. */
export async function startAgent(
  folder: string,
  nodeArgs: string[],
  state: { dataDir?: string | undefined; redisUrl?: string } = {},
): Promise<AgentServer> {
  const home = mkdtempSync(join(folder, 'agent-'))
  const script = writeScript(home)
  const workspace = mkdtempSync(join(home, 'workspace-'))
  for (const name of ['README.md', 'notes.txt']) writeFileSync(join(workspace, name), 'a few words\n')
  const flags = [
    '--addr',
    '127.0.0.1:0',
    '--workspace',
    workspace,
    '--model',
    `scripted:${script}`,
    '--log-level',
    'warn',
  ]
  const kept = state.dataDir === undefined ? [] : ['--data-dir', state.dataDir]
  const env = {
    AGENT_MAX_RUNS: '100000',
    AGENT_REQUESTS_PER_SECOND: '0',
    ...(state.redisUrl === undefined ? {} : { AGENT_REDIS_URL: state.redisUrl }),
  }
  const program = [...PROBED, ...nodeArgs, path('../../dist/cli.js'), 'agent', ...flags, ...kept]
  const part = startPart('the agent server', program, env)
  const port = Number((await part.printed(ADDRESS, START_MS))[1])
  return { name: 'agent', port, usage: (options) => usageOf(part, options), stop: part.stop }
}

/** Starts the server that it is measured against. */
export async function startBareAgent(): Promise<AgentServer> {
  const part = startPart('the bare server', [...PROBED, ...TSX, path('./bare-agent.ts')])
  const port = Number((await part.printed(ADDRESS, START_MS))[1])
  return { name: 'bare', port, usage: (options) => usageOf(part, options), stop: part.stop }
}

/** Has the bare server write what the agent server writes. */
export async function teachBare(agent: AgentServer, bare: AgentServer): Promise<void> {
  for (const [path, goal] of [
    ['/bench/run', RUN_GOAL],
    ['/bench/fan-out', FAN_OUT_GOAL],
  ] as const) {
    const events = await eventsOf(agent, goal)
    await fetch(`http://127.0.0.1:${bare.port}${path}`, { method: 'POST', body: JSON.stringify(events) })
  }
}

async function eventsOf(agent: AgentServer, goal: string): Promise<string[]> {
  const url = `http://127.0.0.1:${agent.port}/sessions`
  const created: unknown = await (await fetch(url, { method: 'POST' })).json()
  if (typeof created !== 'object' || created === null || !('session_id' in created)) throw new Error('no session')
  const response = await fetch(`${url}/${created.session_id}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: goal }),
  })
  const events = (await response.text()).split('\n\n').filter((event) => event.includes('event: '))
  return events.map((event) => `${event}\n\n`)
}

/** Writes the script of the model that the runs want, and says where. */
export function writeScript(folder: string): string {
  const file = join(folder, 'script.json')
  writeFileSync(file, JSON.stringify(scriptOf()))
  return file
}

/** Calls of an unknown tool cost nothing but their events, so it is the events that are measured. */
function scriptOf() {
  const calls = Array.from({ length: FAN_OUT_CALLS }, (_, index) => ({ name: 'none', input: { index } }))
  return [
    { match: RUN_GOAL, steps: [{ tool_calls: [{ name: 'list_dir', input: { path: '.' } }] }] },
    { match: RUN_GOAL, steps: [{ text: 'There are two files.' }] },
    { match: FAN_OUT_GOAL, steps: [{ tool_calls: calls }] },
    { match: FAN_OUT_GOAL, steps: [{ text: 'Done.' }] },
  ]
}
