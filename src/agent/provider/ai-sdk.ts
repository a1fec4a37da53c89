import type { ModelMessage, SystemModelMessage, TextStreamPart, ToolSet } from 'ai'
import { toSdkMessages } from './ai-sdk-messages.ts'
import { type AiSdkModel, type ModelFactory, modelFactory } from './ai-sdk-models.ts'
import { readArguments } from './arguments.ts'
import { cancelled } from './cancelled.ts'
import { type Provider, ProviderError, type ProviderRequest, type ToolDescription, type TurnEvent } from './port.ts'
import { estimateTokens, textTokens } from './tokens.ts'
import { type Party, toProviderError } from './vendor-errors.ts'

type Sdk = typeof import('ai')
type Part = TextStreamPart<ToolSet>
type Call = Extract<TurnEvent, { type: 'tool_call' }>

/** A vendor's model through the AI SDK: one turn at a time, tools told but never run, no retries of its own. */
export async function openAiSdk(at: AiSdkModel, now: () => number = Date.now): Promise<Provider> {
  const [sdk, makeModel] = await Promise.all([import('ai'), modelFactory(at)])
  // It would write to the console, which is not its own.
  globalThis.AI_SDK_LOG_WARNINGS = false
  const { name, contextWindow, price, vendor, keyNames } = at
  const party: Party = { vendor, keyNames, secrets: at.key === null ? [] : [at.key.value] }
  return {
    name,
    contextWindow,
    price,
    async *stream(request, signal) {
      try {
        yield* untilAborted(signal, (inner) =>
          readTurn(sdk, request, ask(sdk, { at, makeModel, request, signal: inner })),
        )
      } catch (error) {
        if (signal.aborted) throw cancelled(signal)
        throw error instanceof ProviderError ? error : toProviderError(error, party, now())
      }
    },
  }
}

/** Runs a turn under a signal that also aborts when the reader leaves, so that no request goes on for nobody. */
async function* untilAborted(
  signal: AbortSignal,
  start: (inner: AbortSignal) => AsyncGenerator<TurnEvent, void, undefined>,
): AsyncGenerator<TurnEvent, void, undefined> {
  if (signal.aborted) throw cancelled(signal)
  const call = new AbortController()
  const onAbort = () => call.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    yield* start(call.signal)
  } finally {
    signal.removeEventListener('abort', onAbort)
    call.abort()
  }
}

interface Question {
  at: AiSdkModel
  makeModel: ModelFactory
  request: ProviderRequest
  signal: AbortSignal
}

function ask(sdk: Sdk, { at, makeModel, request, signal }: Question): AsyncIterator<Part> {
  const { tools, toolChoice, onActivity = () => {} } = request
  const cached = at.vendor === 'anthropic' ? { providerOptions: CACHE } : {}
  const { fullStream } = sdk.streamText({
    model: makeModel(listeningFetch(onActivity)),
    ...(request.system === '' ? {} : { system: { role: 'system', content: request.system, ...cached } as const }),
    messages: markLast(toSdkMessages(request.messages), cached),
    ...(tools.length === 0 ? {} : { tools: toSdkTools(sdk, tools, at), toolChoice }),
    maxRetries: 0,
    abortSignal: signal,
    ...vendorSettings(at),
    onError() {},
  })
  return fullStream[Symbol.asyncIterator]()
}

function vendorSettings({ vendor, elsewhere }: AiSdkModel) {
  // Sessions are kept here, so nothing need be kept there.
  if (vendor === 'openai' && !elsewhere) return { providerOptions: { openai: { store: false } } }
  // The SDK does not know what models another server has: it would ask for short answers, and with a field of its own.
  if (vendor === 'anthropic' && elsewhere)
    return { maxOutputTokens: 32_000, providerOptions: { anthropic: { toolStreaming: false } } }
  return {}
}

/** Anthropic keeps a prefix for cheaper use only where it is told to: after the tools and the system prompt, and so far. */
const CACHE = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const

function markLast(messages: ModelMessage[], mark: Pick<SystemModelMessage, 'providerOptions'>): ModelMessage[] {
  const last = messages.at(-1)
  return last === undefined ? [] : [...messages.slice(0, -1), { ...last, ...mark }]
}

function toSdkTools(sdk: Sdk, tools: readonly ToolDescription[], { vendor, elsewhere }: AiSdkModel): ToolSet {
  // Left to itself the Responses API would make every optional field a required one.
  const strict = vendor === 'openai' && !elsewhere ? { strict: false } : {}
  return Object.fromEntries(
    tools.map(({ name, description, parameters }) => {
      const inputSchema = sdk.jsonSchema({ type: 'object', ...parameters })
      return [name, sdk.tool({ description, inputSchema, ...strict })]
    }),
  )
}

/**
 * What the SDK tells, as our events. Calls are told at the end, when the whole turn has come: one of a stream that broke
 * off would look complete.
 */
async function* readTurn(
  sdk: Sdk,
  request: ProviderRequest,
  parts: AsyncIterator<Part>,
): AsyncGenerator<TurnEvent, void, undefined> {
  const calls: Call[] = []
  let said = ''
  try {
    while (true) {
      const step = await parts.next()
      if (step.done) throw brokenOff()
      const part = step.value
      if (part.type === 'text-delta' && part.text !== '') {
        said += part.text
        yield { type: 'text', delta: part.text }
      } else if (part.type === 'tool-call') calls.push(toCall(sdk, part))
      else if (part.type === 'error') calls.push(...unwantedCalls(sdk, part.error))
      else if (part.type === 'finish') {
        const finish = toFinish(part, calls, request, said)
        yield* calls
        yield finish
        return
      }
    }
  } finally {
    // Not awaited: a stream that was split in two is not done until both halves are.
    parts.return?.().then(undefined, () => {})
  }
}

function toCall(sdk: Sdk, part: Extract<Part, { type: 'tool-call' }>): Call {
  const call = { type: 'tool_call', id: part.toolCallId, name: part.toolName } as const
  if (!part.invalid) return { ...call, input: part.input }
  if (sdk.InvalidToolInputError.isInstance(part.error)) return { ...call, ...readArguments(part.error.toolInput) }
  // A tool that was not offered; the input is a text when it was no JSON.
  return typeof part.input === 'string' ? { ...call, ...readArguments(part.input) } : { ...call, input: part.input }
}

/** The calls of a model that was told to make none: who asked is to know. Any other error is thrown. */
function unwantedCalls(sdk: Sdk, error: unknown): Call[] {
  if (!sdk.ToolChoiceViolationError.isInstance(error)) throw error
  return error.content.flatMap((part) =>
    part.type === 'tool-call'
      ? [{ type: 'tool_call' as const, id: part.toolCallId, name: part.toolName, ...readArguments(part.input) }]
      : [],
  )
}

function toFinish(
  { finishReason, rawFinishReason, totalUsage }: Extract<Part, { type: 'finish' }>,
  calls: readonly Call[],
  { messages, system, tools }: ProviderRequest,
  said: string,
): TurnEvent {
  if (finishReason === 'other' && rawFinishReason === undefined) throw brokenOff()
  if (finishReason === 'error' && calls.length === 0)
    throw new ProviderError('transient', `The model ended its turn with an error (${rawFinishReason ?? 'no reason'}).`)
  return {
    type: 'finish',
    reason: reasonOf(finishReason, calls.length > 0),
    // Not every server counts.
    inputTokens: totalUsage.inputTokens || estimateTokens(messages, system, tools),
    outputTokens: totalUsage.outputTokens || Math.max(1, textTokens(said + JSON.stringify(calls))),
  }
}

function reasonOf(reason: string, called: boolean): Extract<TurnEvent, { type: 'finish' }>['reason'] {
  if (reason === 'length') return 'length'
  // Some servers say `stop` after a call.
  if (called) return 'tool_calls'
  return reason === 'stop' ? 'stop' : 'other'
}

function brokenOff(): ProviderError {
  return new ProviderError('transient', 'The answer of the model broke off before its end.')
}

/** Tells of every piece that comes in, below all parsing: keep-alives and thinking count as signs of life. */
function listeningFetch(onActivity: () => void): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    onActivity()
    if (!response.ok || response.body === null) return response
    const ear = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        onActivity()
        controller.enqueue(chunk)
      },
    })
    const { status, statusText, headers } = response
    return new Response(response.body.pipeThrough(ear), { status, statusText, headers })
  }
}
