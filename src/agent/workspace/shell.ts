import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, readlinkSync } from 'node:fs'
import { AppError } from '../../kit/errors.ts'
import {
  type Confinement,
  cleanEnvironment,
  PROGRAM_PATH,
  sandboxArguments,
  type WorkingSandbox,
} from './bubblewrap.ts'
import { type Launch, type RunningCommand, startCommand } from './command.ts'
import { limitedShell, type ShellLimits } from './limits.ts'
import { outputBuffer, printable } from './output.ts'
import type { BackgroundCommand, ShellOptions, ShellResult, WorkspaceShell } from './port.ts'

const MAX_COMMAND_BYTES = 100_000 // the kernel's bound for one argument is 128 KiB
const MAX_BACKGROUND = 8
const BACKGROUND_BYTES = 256 * 1024

/** A shell that sees the workspace and little else. */
export function sandboxedShell(sandbox: WorkingSandbox, confinement: Confinement, limits: ShellLimits): WorkspaceShell {
  return shellOf((command) => sandboxedLaunch(sandbox, confinement, { command, limits }))
}

/** How a command is started in the sandbox. */
export function sandboxedLaunch(
  sandbox: WorkingSandbox,
  confinement: Confinement,
  { command, limits }: { command: string; limits: ShellLimits },
): Launch & { ending: { kind: 'sandbox'; root: number } } {
  const flags = sandboxArguments(sandbox, confinement)
  return {
    file: 'bwrap',
    args: [...flags, '--info-fd', '3', '--', '/bin/sh', ...limitedShell(command, limits, true)],
    env: { PATH: PROGRAM_PATH },
    cwd: '/',
    ending: { kind: 'sandbox', root: openRoot(confinement.root) },
  }
}

/** The open workspace. It must still stand where it was: another session may have put a link in its place. */
function openRoot(root: string): number {
  let folder: number | undefined
  try {
    folder = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    if (readlinkSync(`/proc/self/fd/${folder}`) === root) return folder
  } catch {
    // Gone, or a link: the same to who wants to work there.
  }
  if (folder !== undefined) closeSync(folder)
  throw new AppError(
    'outside_workspace',
    'The workspace folder is gone or was replaced by a link; make it a folder again.',
  )
}

/** A shell with the server's own rights, and a clean environment. */
export function unsafeShell(root: string, limits: ShellLimits): WorkspaceShell {
  return shellOf((command) => {
    const mark = `SWITCHBOARD_COMMAND=${randomBytes(16).toString('hex')}`
    const [name = '', value = ''] = mark.split('=')
    return {
      file: '/bin/sh',
      args: limitedShell(command, limits, false),
      env: { ...cleanEnvironment('/tmp'), [name]: value },
      cwd: root,
      ending: { kind: 'mark', mark },
    }
  })
}

function shellOf(launch: (command: string) => Launch): WorkspaceShell {
  let inBackground = 0
  return {
    async run(command, options) {
      if (options.signal.aborted) return { exitCode: null, output: '', truncated: false, timedOut: false }
      return runCommand(launch(checked(command)), options)
    },
    start(command) {
      if (inBackground >= MAX_BACKGROUND)
        throw new AppError(
          'too_many_commands',
          `${MAX_BACKGROUND} commands run in the background already; end one with shell_kill first.`,
        )
      const started = startInBackground(launch(checked(command)))
      inBackground += 1
      void started.ended.then(() => {
        inBackground -= 1
      })
      return started.command
    },
  }
}

async function runCommand(launch: Launch, options: ShellOptions): Promise<ShellResult> {
  const { timeoutMs, maxOutputBytes, signal, onOutput } = options
  const output = outputBuffer(maxOutputBytes)
  let told = 0
  const running = startCommand(launch, (chunk) => {
    output.push(chunk)
    // Who watches gets as much as who reads the result; a flood helps nobody.
    if (onOutput !== undefined && told < maxOutputBytes) onOutput(printable(chunk.toString('utf8')))
    told += chunk.length
  })
  let timedOut = false
  const cancel = () => void running.kill()
  const timer = setTimeout(() => {
    timedOut = true
    cancel()
  }, timeoutMs)
  signal.addEventListener('abort', cancel, { once: true })
  const exitCode = await running.ended
  clearTimeout(timer)
  signal.removeEventListener('abort', cancel)
  const { text, truncated } = output.take()
  return { exitCode, output: text, truncated, timedOut }
}

function startInBackground(launch: Launch): { command: BackgroundCommand; ended: Promise<unknown> } {
  const output = outputBuffer(BACKGROUND_BYTES)
  const running: RunningCommand = startCommand(launch, (chunk) => output.push(chunk))
  let result: { exitCode: number | null } | undefined
  const ended = running.ended.then((exitCode) => {
    result = { exitCode }
  })
  const command: BackgroundCommand = {
    id: `bg_${randomBytes(4).toString('hex')}`,
    read: () => ({ output: output.take().text, running: result === undefined, exitCode: result?.exitCode ?? null }),
    kill: () => running.kill(),
  }
  return { command, ended }
}

function checked(command: string): string {
  if (command.includes('\0')) throw new AppError('bad_request', 'The command holds a NUL character; leave it out.')
  if (Buffer.byteLength(command) > MAX_COMMAND_BYTES)
    throw new AppError('bad_request', 'The command is too long; write it to a file and run that.')
  return command
}
