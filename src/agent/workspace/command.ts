import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { errorText } from '../../kit/errors.ts'
import { sleep } from '../../kit/retry.ts'
import { inheritedDescriptors } from './inherited.ts'

/** How a command is started. */
export interface Launch {
  file: string
  args: string[]
  env: Record<string, string>
  cwd: string
  /**
   * `sandbox`: bubblewrap tells on descriptor 3 which process all others hang on, and gets the open workspace on 4; it is
   * closed here. Otherwise a mark in the environment finds them.
   */
  ending: { kind: 'sandbox'; root: number } | { kind: 'mark'; mark: string }
}

/** A command that was started. */
export interface RunningCommand {
  /** Resolves when it, and all that it started, has ended; null when it was killed. Never rejects. */
  readonly ended: Promise<number | null>
  /** Kills all of it and resolves with `ended`. */
  kill(): Promise<void>
}

const PIPE_GRACE_MS = 150
const KILL_LIMIT_MS = 5_000
const INFO_LIMIT_MS = 1_000
const SWEEPS = 10

/** Starts a command; what it prints goes to `onOutput`, a start that fails too. */
export function startCommand(launch: Launch, onOutput: (chunk: Buffer) => void): RunningCommand {
  const sandboxed = launch.ending.kind === 'sandbox'
  const child = spawnDetached(launch)
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null)
  for (const stream of streams) stream.on('data', onOutput).on('error', () => {})
  const first = sandboxed ? readFirstProcess(child) : Promise.resolve(null)
  let killed = false

  let giveUp = () => {}
  const givenUp = new Promise<null>((resolve) => {
    giveUp = () => resolve(null)
  })

  const ended = exitOf(child, onOutput).then(async (code) => {
    if (launch.ending.kind === 'mark') await endMarked(child.pid, launch.ending.mark)
    await drain(streams)
    return killed ? null : code
  })
  return {
    ended: Promise.race([ended, givenUp]),
    async kill() {
      killed = true
      // One that the kernel does not let go of must not hold its caller as well.
      const timer = setTimeout(giveUp, KILL_LIMIT_MS)
      if (launch.ending.kind === 'mark') killGroup(child.pid)
      else await killSandbox(child, await first)
      await Promise.race([ended, givenUp])
      clearTimeout(timer)
    },
  }
}

function spawnDetached({ file, args, env, cwd, ending }: Launch): ChildProcess {
  const more = ending.kind === 'sandbox' ? ['pipe' as const, ending.root] : []
  try {
    const stdio = withoutInherited(['ignore', 'pipe', 'pipe', ...more])
    // A group of its own: a Ctrl-C at the server's terminal is for the server alone.
    return spawn(file, args, { env, cwd, detached: true, stdio })
  } finally {
    if (ending.kind === 'sandbox') closeSync(ending.root)
  }
}

/** Puts nothing where a descriptor of whoever started the server would go. */
function withoutInherited(given: ('ignore' | 'pipe' | number)[]): StdioOptions {
  const { numbers, nothing } = inheritedDescriptors()
  if (nothing === null) return given
  const length = Math.max(given.length, (numbers.at(-1) ?? 0) + 1)
  const isInherited = new Set(numbers)
  // What is ignored is left as it is: it was closed, or is not there.
  return Array.from({ length }, (_, index) => given[index] ?? (isInherited.has(index) ? nothing : 'ignore'))
}

async function exitOf(child: ChildProcess, onOutput: (chunk: Buffer) => void): Promise<number | null> {
  try {
    // `exit`, not `close`: a child that went to the background may hold the pipes for ever.
    const [code]: unknown[] = await once(child, 'exit')
    return typeof code === 'number' ? code : null
  } catch (error) {
    onOutput(Buffer.from(`The command could not be started: ${errorText(error)}\n`))
    return null
  }
}

/** Gives what is still in the pipes a moment to arrive. */
async function drain(streams: Readable[]): Promise<void> {
  const limit = new AbortController()
  const closed = Promise.all(streams.map((stream) => stream.closed || once(stream, 'close', { signal: limit.signal })))
  await Promise.race([closed.catch(() => {}), sleep(PIPE_GRACE_MS, limit.signal)])
  limit.abort()
  for (const stream of streams) stream.destroy()
}

/**
 * The id of the sandbox's first process, told by bubblewrap. Killing that one ends all others in it, and bubblewrap itself
 * ends only when they have; killing bubblewrap would end them some time later.
 */
async function readFirstProcess(child: ChildProcess): Promise<number | null> {
  const info = child.stdio[3]
  if (info === null || info === undefined) return null
  let text = ''
  info.on('data', (chunk) => {
    text += String(chunk)
  })
  info.on('error', () => {})
  const limit = AbortSignal.timeout(INFO_LIMIT_MS)
  await once(info, 'end', { signal: limit }).catch(() => {})
  const found = /"child-pid":\s*(\d+)/.exec(text)
  return found === null ? null : Number(found[1])
}

async function killSandbox(child: ChildProcess, first: number | null): Promise<void> {
  if (hasExited(child)) return
  if (first === null) return killGroup(child.pid)
  signal(first)
  const limit = new AbortController()
  await Promise.race([
    once(child, 'exit', { signal: limit.signal }).catch(() => {}),
    sleep(KILL_LIMIT_MS / 2, limit.signal),
  ])
  limit.abort()
  if (!hasExited(child)) killGroup(child.pid)
}

function hasExited(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}

/** Without a sandbox: kills the group, then whoever left it but still carries the mark. As good as can be, not certain. */
async function endMarked(pid: number | undefined, mark: string): Promise<void> {
  killGroup(pid)
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const found = await processesWith(mark)
    if (found.length === 0) return
    for (const one of found) signal(one)
    await sleep(5 * (sweep + 1))
  }
}

async function processesWith(mark: string): Promise<number[]> {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    ids.map(async (id) => {
      const environment = await readFile(`/proc/${id}/environ`, 'latin1').catch(() => '')
      return environment.includes(mark) ? [Number(id)] : []
    }),
  )
  return found.flat()
}

function killGroup(pid: number | undefined): void {
  if (pid !== undefined) signal(-pid)
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
