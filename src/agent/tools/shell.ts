import { Type } from 'typebox'
import type { BackgroundCommand } from '../workspace/port.ts'
import { defineTool, done, refused } from './define-tool.ts'
import type { Tool, ToolContext, ToolOutput } from './port.ts'
import { slot } from './tool-state.ts'

const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000
const MAX_OUTPUT_BYTES = 1024 * 1024
const MAX_KEPT = 32

/** Commands that a session started in the background. They end with it. */
interface Commands {
  known: Map<string, BackgroundCommand>
  close(): Promise<void>
}

const commandsOf = slot('shell', (): Commands => {
  const known = new Map<string, BackgroundCommand>()
  return {
    known,
    async close() {
      await Promise.all([...known.values()].map((command) => command.kill()))
      known.clear()
    },
  }
})

/** The tools that run commands; `off` says why there are none on this server. */
export function shellTools(off?: string): Tool[] {
  return [shell(off), shellOutput(off), shellKill(off)]
}

function shell(off: string | undefined): Tool {
  return defineTool({
    name: 'shell',
    description:
      'Runs a command line with sh in the workspace folder and shows what it printed and its exit code. It has no input to read; ' +
      'only the workspace lasts: /tmp and the home folder are empty every time. What it leaves running ends with it; for a ' +
      'server or another long command set run_in_background. There may be no network.',
    input: Type.Object({
      command: Type.String({ minLength: 1, description: 'The command line.' }),
      timeout_ms: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_TIMEOUT_MS,
          description: `When to give up; ${DEFAULT_TIMEOUT_MS} if not given.`,
        }),
      ),
      run_in_background: Type.Optional(Type.Boolean({ description: 'Return at once; read it with shell_output.' })),
    }),
    readOnly: false,
    off,
    async run(
      { command, timeout_ms: timeoutMs = DEFAULT_TIMEOUT_MS, run_in_background: inBackground = false },
      context,
    ) {
      const { shell: runner, shellOff } = context.workspace
      if (runner === null) return refused(shellOff ?? 'There is no shell here.')
      if (inBackground) return start(runner.start(command), context)
      const { signal, onProgress } = context
      const watched = onProgress === undefined ? {} : { onOutput: onProgress }
      const result = await runner.run(command, { timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, signal, ...watched })
      const output = result.output === '' ? '(It printed nothing.)' : result.output.replace(/\n$/, '')
      if (result.timedOut)
        return refused(`${output}\n(Killed after ${timeoutMs} ms; for a long command set run_in_background.)`)
      if (signal.aborted) return refused(`${output}\n(Cancelled.)`)
      return {
        success: result.exitCode === 0,
        text: `${output}\n(Exit code ${result.exitCode ?? 'unknown: it was killed'}.)`,
      }
    },
  })
}

function shellOutput(off: string | undefined): Tool {
  return defineTool({
    name: 'shell_output',
    description: 'Shows what a background command has printed since it was last asked, and whether it still runs.',
    input: Type.Object({ id: Type.String({ description: 'As shell gave it.' }) }),
    readOnly: true,
    off,
    async run({ id }, { state }) {
      const command = commandsOf(state).known.get(id)
      if (command === undefined) return unknown(id, state)
      const { output, running, exitCode } = command.read()
      const status = running ? 'It runs.' : `It has ended (${exitCode === null ? 'killed' : `exit code ${exitCode}`}).`
      return done(`${output === '' ? '(Nothing new.)' : output.replace(/\n$/, '')}\n(${status})`)
    },
  })
}

function shellKill(off: string | undefined): Tool {
  return defineTool({
    name: 'shell_kill',
    description: 'Ends a background command and all that it started.',
    input: Type.Object({ id: Type.String({ description: 'As shell gave it.' }) }),
    readOnly: false,
    off,
    async run({ id }, { state }) {
      const command = commandsOf(state).known.get(id)
      if (command === undefined) return unknown(id, state)
      await command.kill()
      return done(`${id} has ended.`)
    },
  })
}

function start(command: BackgroundCommand, { state }: ToolContext): ToolOutput {
  const { known } = commandsOf(state)
  known.set(command.id, command)
  for (const [id, other] of known) {
    if (known.size <= MAX_KEPT) break
    // Of those that have ended the oldest are forgotten. Reading tells, and takes what they printed.
    if (!other.read().running) known.delete(id)
  }
  return done(`It runs in the background as ${command.id}: see shell_output and shell_kill.`)
}

function unknown(id: string, state: ToolContext['state']): ToolOutput {
  const ids = [...commandsOf(state).known.keys()]
  return refused(
    `There is no background command ${JSON.stringify(id)}. There ${ids.length === 0 ? 'is none' : `are: ${ids.join(', ')}`}.`,
  )
}
