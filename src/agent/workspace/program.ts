import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { errorText } from '../../kit/errors.ts'
import { sleep } from '../../kit/retry.ts'

/** A program of the server's owner that is talked to over its standard input and output. It is not shut in. */
export interface Program {
  readonly input: Writable
  readonly output: Readable
  /** Resolves with how it ended; never rejects. */
  readonly ended: Promise<string>
  /** The last line it printed to its error output, for a start that fails. */
  lastWords(): string
  /** Closes its input, which ends a well-behaved program, and kills it and its group when it does not end soon. */
  stop(): Promise<void>
}

/** How a program is started. The environment is the whole of it. */
export interface ProgramLaunch {
  command: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string | undefined
}

/** Starts a program; it is told by `ended` when that fails. */
export type StartProgram = (launch: ProgramLaunch) => Program

const STOP_MS = 1_000
const WORDS = 300
const WORDS_MS = 100

/** Starts a program in a process group of its own. */
export function startProgram({ command, args, env, cwd }: ProgramLaunch): Program {
  const child = spawn(command, args, { env, cwd, detached: true, stdio: 'pipe' })
  let words = ''
  child.stderr.on('data', (chunk) => {
    words = (words + String(chunk)).slice(-4 * WORDS)
  })
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {})
  const closed = once(child, 'close').catch(() => {})
  const ended = once(child, 'exit').then(
    async ([code, signal]) => {
      // Its last words may come after its end, or never where somebody else holds the pipe.
      await Promise.race([closed, sleep(WORDS_MS)])
      return signal === null ? `it ended with ${String(code)}` : `it was ended by ${String(signal)}`
    },
    (error: unknown) => `it could not be started: ${errorText(error)}`,
  )
  return {
    input: child.stdin,
    output: child.stdout,
    ended,
    lastWords: () => words.trim().split('\n').at(-1)?.slice(0, WORDS) ?? '',
    async stop() {
      child.stdin.end()
      const limit = new AbortController()
      await Promise.race([ended, sleep(STOP_MS, limit.signal)])
      limit.abort()
      killGroup(child.pid)
      await ended
    },
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}
