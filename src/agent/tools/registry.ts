import { setMaxListeners } from 'node:events'
import type { TSchema } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import { type Log, silentLog } from '../../kit/log.ts'
import { sleep } from '../../kit/retry.ts'
import { type Check, checker } from '../../kit/schema.ts'
import { refused } from './define-tool.ts'
import type { Tool, ToolContext, ToolOutput, ToolState } from './port.ts'
import { fitOutput } from './spill.ts'
import { OUTPUT_LIMITS } from './truncate.ts'

/** What is told of a tool. */
export type ToolSummary = Pick<Tool, 'name' | 'description' | 'parameters' | 'readOnly' | 'source'>

/** The tools of a server. */
export interface ToolRegistry {
  /** Those that can be used, in the order they were given. */
  describe(): ToolSummary[]
  /** Those that cannot, and why. */
  describeOff(): { name: string; reason: string }[]
  /** Runs one. Never throws: what goes wrong is a result. The text is within the limits of what a model is shown. */
  run(name: string, input: unknown, context: ToolContext): Promise<ToolOutput>
}

/** What a registry may be given beside its tools. */
export interface RegistryOptions {
  log?: Log
  now?: () => number
}

/** How long a tool may take to stop after a cancel before it is left alone. */
const CANCEL_GRACE_MS = 800
const MAX_ERROR_CHARS = 2_000

/** Puts tools under one roof: unknown names, wrong inputs, failures and long outputs are dealt with here, once. */
export function toolRegistry(
  tools: readonly Tool[],
  { log = silentLog, now = Date.now }: RegistryOptions = {},
): ToolRegistry {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const checks = new Map<string, Check<unknown>>()

  return {
    describe: () =>
      [...byName.values()]
        .filter((tool) => tool.off === undefined)
        .map(({ name, description, parameters, readOnly, source }) => ({
          name,
          description,
          parameters,
          readOnly,
          source,
        })),
    describeOff: () =>
      [...byName.values()].flatMap(({ name, off }) => (off === undefined ? [] : [{ name, reason: off }])),
    async run(name, input, context) {
      const tool = byName.get(name)
      if (tool === undefined)
        return refused(`There is no tool ${JSON.stringify(name)}. There are: ${usable().join(', ')}.`)
      if (tool.off !== undefined) return refused(`${name} cannot be used here. ${tool.off}`)
      const output = await settle(tool, input, context)
      return { ...output, text: await fitOutput(output.text, OUTPUT_LIMITS, context.workspace, now()) }
    },
  }

  function usable(): string[] {
    return [...byName.values()].filter((tool) => tool.off === undefined).map((tool) => tool.name)
  }

  async function settle(tool: Tool, input: unknown, context: ToolContext): Promise<ToolOutput> {
    const { signal } = context
    if (signal.aborted) return refused('Cancelled before it began.')
    // Many tools may listen to one run's signal; that is no leak.
    setMaxListeners(0, signal)
    try {
      const checked = readInput(tool, input)
      return await orCancelled(tool.run(checked, context), signal)
    } catch (error) {
      if (error instanceof AppError) return refused(error.message.slice(0, MAX_ERROR_CHARS))
      if (signal.aborted) return refused('Cancelled.')
      log.error('a tool failed', { tool: tool.name, error })
      return refused(`${tool.name} failed because of a fault in the server. Try another way.`)
    }
  }

  /** The input, if it fits the tool's schema. Some models send `null` for what they leave out. */
  function readInput(tool: Tool, given: unknown): unknown {
    const check = checks.get(tool.name) ?? compile(tool)
    checks.set(tool.name, check)
    const input = given ?? {}
    try {
      return check(input)
    } catch (error) {
      try {
        return check(withoutNulls(input))
      } catch {
        const problem = error instanceof AppError ? error.message : 'The input is not valid.'
        throw new AppError(
          'bad_request',
          `The input of ${tool.name} is wrong: ${problem} Nothing was done; call it again.`,
        )
      }
    }
  }

  function compile(tool: Tool): Check<unknown> {
    try {
      return checker(asSchema(tool.parameters), 'input')
    } catch (error) {
      // A schema of somebody else's that we cannot read: its server will check the input itself.
      log.warn('the schema of a tool cannot be used', { tool: tool.name, reason: String(error).slice(0, 200) })
      return (value) => value
    }
  }
}

/** Ends what tools keep going for a session: background commands. */
export async function closeTools(state: ToolState): Promise<void> {
  await Promise.allSettled([...state.values()].filter(isClosable).map((kept) => kept.close()))
  state.clear()
}

function isClosable(value: unknown): value is { close(): Promise<void> } {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function'
}

async function orCancelled(work: Promise<ToolOutput>, signal: AbortSignal): Promise<ToolOutput> {
  let onAbort = () => {}
  const cancelled = new Promise<ToolOutput>((resolve) => {
    onAbort = () => void sleep(CANCEL_GRACE_MS).then(() => resolve(refused('Cancelled.')))
    signal.addEventListener('abort', onAbort, { once: true })
  })
  work.catch(() => {}) // nobody listens any more when it fails after that
  try {
    return await Promise.race([work, cancelled])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function withoutNulls(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null))
}

/** JSON Schema is what the schemas of the checker are. */
function asSchema(parameters: Record<string, unknown>): TSchema {
  return parameters
}
