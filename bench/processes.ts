import type { Serializable } from 'node:child_process'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** A process of the bench. */
export interface Part {
  readonly pid: number
  /** What it printed to standard output, from the first match of `pattern` on. */
  printed(pattern: RegExp, withinMs: number): Promise<RegExpExecArray>
  /** Sends a message over the channel and waits for the next one that comes back. One at a time. */
  ask(question: Serializable, withinMs: number, what?: string): Promise<unknown>
  /** Ends it, gently first. */
  stop(): Promise<void>
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>
}

/** Arguments that let node run TypeScript, from any folder. */
export const TSX = ['--import', import.meta.resolve('tsx')]

/** Arguments for the node of what measures: it can be told when to collect garbage, and seldom has to by itself. */
export const STEADY = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64']

const GENTLE_MS = 10_000
const running = new Set<ChildProcess>()

/** Starts `node` with these arguments; it is ended, by its id, with this process at the latest. */
export function startPart(
  name: string,
  args: string[],
  env: Record<string, string> = {},
  /** Gets what it prints to standard error, as it comes. */
  onError: (text: string) => void = () => {},
): Part {
  const child = spawn(process.execPath, args, {
    env: { ...cleanEnvironment(), NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  running.add(child)
  let output = ''
  let errors = ''
  child.stdout?.on('data', (chunk) => {
    output += String(chunk)
  })
  child.stderr?.on('data', (chunk) => {
    errors = (errors + String(chunk)).slice(-4_000)
    onError(String(chunk))
  })
  const ended = once(child, 'exit').finally(() => running.delete(child))

  return {
    pid: child.pid ?? 0,
    printed: (pattern, withinMs) =>
      within(withinMs, `${name} to start`, async () => {
        for (;;) {
          const found = pattern.exec(output)
          if (found) return found
          if (child.exitCode !== null) throw died()
          await new Promise((resolve) => setTimeout(resolve, 10))
        }
      }),
    ask: (question, withinMs, what = 'answer') =>
      within(withinMs, `${name} to ${what}`, async () => {
        const answer = Promise.race([once(child, 'message'), ended.then(() => Promise.reject(died()))])
        child.send(question)
        return (await answer)[0]
      }),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), GENTLE_MS)
      await ended
      clearTimeout(force)
    },
    async kill() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    },
  }

  function died(): Error {
    return new Error(`${name} ended with ${child.exitCode ?? child.signalCode}: ${errors || output}`)
  }
}

/** Ends, by their ids, all processes that are still there. */
export function endAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** What `work` returns, or an error that says what was waited for in vain. */
export async function within<T>(ms: number, what: string, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms} ms in vain for ${what}`)), ms)
  })
  try {
    return await Promise.race([work(), late])
  } finally {
    clearTimeout(timer)
  }
}

/** The environment without settings of ours that happen to be set. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(RELAY|SIM|AGENT|BRIDGE|SWITCHBOARD)_/.test(name)),
  )
}
