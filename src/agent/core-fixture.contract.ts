import { type LoopResult, type LoopStep, type LoopTools, type RunInput, runAgent, type ToolCall } from './loop.ts'
import { type Message, NO_USAGE, type Run, type RunEvent, type Session } from './model.ts'
import type { Provider, ProviderRequest, TurnEvent } from './provider/port.ts'
import { message, user } from './provider/provider.contract.ts'

/** The end of a turn. */
export const FINISH: TurnEvent = { type: 'finish', reason: 'stop', inputTokens: 10, outputTokens: 5 }

/** A call of a model. */
export function callOf(id: string, name: string, input: unknown = {}): TurnEvent {
  return { type: 'tool_call', id, name, input }
}

/** A model made by hand: `answer` gets the request and its number, from 1. `asked` keeps what it was asked. */
export function handMade(
  answer: (request: ProviderRequest, turn: number, signal: AbortSignal) => AsyncIterable<TurnEvent> | TurnEvent[],
  shape: Partial<Pick<Provider, 'contextWindow' | 'price'>> = {},
): Provider & { asked: ProviderRequest[] } {
  const asked: ProviderRequest[] = []
  return {
    name: 'hand-made',
    contextWindow: null,
    price: null,
    ...shape,
    asked,
    async *stream(request, signal) {
      asked.push(structuredClone(request))
      yield* answer(request, asked.length, signal)
    },
  }
}

/** Tools that say their name; `run` may answer for them. Names with `write` change something. */
export function namedTools(
  names: string[],
  run: LoopTools['run'] = async ({ name }) => ({ success: true, text: `${name} did it` }),
): LoopTools & { calls: ToolCall[] } {
  const calls: ToolCall[] = []
  return {
    calls,
    describe: () =>
      names.map((name) => ({ name, description: name, parameters: {}, readOnly: !name.includes('write') })),
    run(call, signal, onProgress, rest) {
      calls.push(call)
      return run(call, signal, onProgress, rest)
    },
  }
}

/** The input of a loop that has one goal and room for ten turns. */
export function loopInput(provider: Provider, shape: Partial<RunInput> = {}): RunInput {
  return {
    runId: 'run-1',
    provider,
    system: 'Be brief.',
    transcript: [user('go')],
    tools: namedTools(['read', 'look', 'write']),
    stepsBefore: 0,
    maxSteps: 10,
    maxTokens: null,
    maxCost: null,
    fit: async (messages) => ({ messages, usage: NO_USAGE }),
    signal: new AbortController().signal,
    now: () => 0,
    ...shape,
  }
}

/** Everything a loop told and how it ended. `onStep` is awaited before it goes on. */
export async function playLoop(
  input: RunInput,
  onStep: (step: LoopStep, index: number) => Promise<void> | void = () => {},
): Promise<{ result: LoopResult; events: RunEvent[]; messages: Message[]; steps: LoopStep[] }> {
  const steps: LoopStep[] = []
  const loop = runAgent(input)
  for (;;) {
    const { done, value } = await loop.next()
    if (done) {
      const events = steps.flatMap((step) => step.events)
      return { result: value, events, messages: steps.flatMap((step) => step.messages), steps }
    }
    steps.push(value)
    await onStep(value, steps.length - 1)
  }
}

/** The results a transcript holds, as text. */
export function resultTexts(messages: readonly Message[]): string[] {
  return messages.flatMap(({ content }) =>
    content.flatMap((block) => (block.type === 'tool_result' ? [block.content] : [])),
  )
}

/** A session that has done nothing yet. */
export function newSession(id: string, shape: Partial<Session> = {}): Session {
  return {
    id,
    createdAt: 1_000,
    lastActive: 1_000,
    title: null,
    systemPrompt: null,
    workspace: '/tmp',
    model: null,
    maxSteps: null,
    planMode: false,
    turnCount: 0,
    usage: NO_USAGE,
    status: 'idle',
    activeRunId: null,
    pendingPlan: null,
    takenSeq: 0,
    ...shape,
  }
}

/** A run as it is handed to a store. */
export function newRun(id: string, sessionId: string, shape: Partial<Run> = {}): Run {
  return {
    id,
    sessionId,
    goal: 'go',
    model: null,
    maxSteps: 10,
    status: 'running',
    finishReason: null,
    error: null,
    usage: NO_USAGE,
    createdAt: 2_000,
    startedAt: null,
    finishedAt: null,
    acceptedSeq: 0,
    afterSeq: 0,
    activeMs: 0,
    ...shape,
  }
}

export { message, user }
