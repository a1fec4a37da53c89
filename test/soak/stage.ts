import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Part, startPart } from '../../bench/processes.ts'
import { silentLog } from '../../src/kit/log.ts'
import { type RunningSim, startSim } from '../../src/sim/main.ts'
import { freePort } from '../support/free-port.ts'
import { type LifeSigns, lifeSigns, WATCHED } from './life-signs.ts'

/** The programs that are put to the test, each a process of its own. */
export const PROGRAMS = ['hub', 'agent', 'bridge'] as const
export type ProgramName = (typeof PROGRAMS)[number]

/** Hub, agent and bridge on data of their own, before a simulated messaging service in this process. */
export interface Stage {
  sim: RunningSim
  hubUrl: string
  agentUrl: string
  /** kill -9, then a fresh start on the same data. */
  crash(program: ProgramName): Promise<void>
  signs(): Promise<Record<ProgramName, LifeSigns>>
  /** What was printed to standard error since the start, one text a program; only errors are. */
  errors(program: ProgramName): string
  stop(): Promise<void>
}

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const BOT_TOKEN = 'bot@im.bot:soak'
const START_MS = 120_000
const MOST_ERROR_CHARS = 20_000

/** Starts everything. */
export async function startStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-soak-'))
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: BOT_TOKEN, holdMs: 5_000, log: silentLog })
  const ports = { hub: await freePort(), agent: await freePort() }
  const hubUrl = `http://127.0.0.1:${ports.hub}`
  const agentUrl = `http://127.0.0.1:${ports.agent}`
  const commands = commandsOf(folder, { ports, hubUrl, agentUrl, simUrl: sim.url })
  const parts = new Map<ProgramName, Part>()
  const errors = new Map<ProgramName, string>()

  const start = async (name: ProgramName) => {
    const onError = (text: string) => {
      errors.set(name, `${errors.get(name) ?? ''}${text}`.slice(-MOST_ERROR_CHARS))
    }
    const part = startPart(name, [...WATCHED, CLI, ...commands[name]], { RELAY_UPSTREAM_TOKEN: BOT_TOKEN }, onError)
    parts.set(name, part)
    await part.printed(name === 'bridge' ? /in chat/ : /http:\/\/127\.0\.0\.1:\d+/, START_MS)
  }
  const part = (name: ProgramName): Part => {
    const found = parts.get(name)
    if (found === undefined) throw new Error(`${name} does not run`)
    return found
  }
  for (const name of PROGRAMS) await start(name)
  return {
    sim,
    hubUrl,
    agentUrl,
    async crash(name) {
      await part(name).kill()
      await start(name)
    },
    async signs() {
      const [hub, agent, bridge] = await Promise.all(PROGRAMS.map((name) => lifeSigns(part(name), join(folder, name))))
      if (!hub || !agent || !bridge) throw new Error('a program is missing')
      return { hub, agent, bridge }
    },
    errors: (name) => errors.get(name) ?? '',
    async stop() {
      await Promise.all([...parts.values()].map((one) => one.stop()))
      await sim.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Places {
  ports: { hub: number; agent: number }
  hubUrl: string
  agentUrl: string
  simUrl: string
}

function commandsOf(folder: string, { ports, hubUrl, agentUrl, simUrl }: Places): Record<ProgramName, string[]> {
  const workspace = join(folder, 'workspace')
  mkdirSync(workspace)
  writeFileSync(join(workspace, 'README.md'), 'A few words.\n')
  const common = (name: string) => ['--data-dir', join(folder, name), '--log-level', 'error']
  const at = (port: number) => ['--addr', `127.0.0.1:${port}`]
  return {
    hub: ['hub', ...at(ports.hub), ...common('hub'), '--upstream-url', simUrl, '--poll-hold-ms', '5000'],
    agent: ['agent', ...at(ports.agent), ...common('agent'), '--workspace', workspace, '--model', 'demo'],
    bridge: ['bridge', ...common('bridge'), '--hub-url', hubUrl, '--agent-url', agentUrl],
  }
}
