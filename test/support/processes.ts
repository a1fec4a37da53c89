import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export { freePort } from './free-port.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

export interface Program {
  readonly child: ChildProcess
  /** Everything it printed so far. */
  output(): string
  /** Resolves with the exit code once it has ended. */
  readonly ended: Promise<number | null>
  /** Sends a signal and waits for the end. */
  kill(signal?: NodeJS.Signals): Promise<void>
}

interface RunOptions {
  env?: Record<string, string>
  cwd?: string
  /** On standard input. */
  input?: string
  /** Another one than this clone's. */
  cli?: string
}

/** Runs the built `switchboard`; killed, by its id, when the test is over. */
export function runCli(args: string[], { env = {}, cwd, input, cli = CLI }: RunOptions = {}): Program {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(RELAY|SIM|AGENT|BRIDGE|SWITCHBOARD)_/.test(name)),
  )
  const child = spawn(process.execPath, [cli, ...args], {
    env: { ...inherited, NO_COLOR: '1', ...env },
    ...(cwd ? { cwd } : {}),
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  child.stdin?.end(input)
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (printed += String(chunk)))
  const ended = once(child, 'exit').then(([code]) => (typeof code === 'number' ? code : null))
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
  }
  onTestFinished(() => kill())
  return { child, output: () => printed, ended, kill }
}

/** Waits until `url` answers 200. */
export async function untilAnswers(url: string, program?: Program, withinMs = 15_000): Promise<void> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const ok = await answersWell(url)
    if (ok) return
    if (program && program.child.exitCode !== null) throw new Error(`it ended: ${program.output()}`)
    if (Date.now() > deadline) throw new Error(`${url} does not answer: ${program?.output()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function answersWell(url: string): Promise<boolean> {
  try {
    const response = await fetch(url)
    await response.text()
    return response.ok
  } catch {
    return false
  }
}

/** A folder of its own, gone when the test is over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The lines of a refusal to start that name `source`, a flag or a variable. */
export function mistakesAbout(output: string, source: string): string[] {
  return output.split('\n').filter((line) => line.startsWith(`  - ${source} `))
}
