import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A server that a test has started, with its data in a folder that outlives a restart. */
export interface TestServer {
  readonly url: string
  readonly port: number
  /** The process that runs now: for SIGSTOP and the like. */
  pid(): number
  /** Ends it: by default at once, as a crash would. */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again on the same port and data, and waits until it answers. */
  start(): Promise<void>
}

/** A program that runs until it is stopped. */
export interface Running {
  readonly child: ChildProcess
  output(): string
  stop(signal: NodeJS.Signals): Promise<void>
}

/** Starts a program and keeps the end of what it prints, for the error of one that does not come up. */
export function run(
  command: string,
  args: string[],
  options: { uid?: number; gid?: number; env?: NodeJS.ProcessEnv } = {},
): Running {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => (printed = `${printed}${String(chunk)}`.slice(-4000)))
  }
  const ended = once(child, 'exit')
  const stop = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
  }
  return { child, output: () => printed, stop }
}

/** Tries until it succeeds; fails with what the program said when it ended or took too long. */
export async function untilUp(attempt: () => Promise<void>, running: Running, withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const gone = running.child.exitCode !== null || running.child.signalCode !== null
      if (gone || Date.now() > deadline)
        throw new Error(`${running.child.spawnfile}: ${running.output()}`, { cause: error })
    }
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

/** A program on the PATH or in one of the folders beside it. */
export function findProgram(name: string, folders: readonly string[] = []): string {
  const places = [...folders, ...(process.env.PATH ?? '').split(delimiter).filter(Boolean)]
  const found = places.map((folder) => join(folder, name)).find(isProgram)
  if (found === undefined) throw new Error(`There is no ${name} on the PATH; npm test says how to get it.`)
  return found
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
