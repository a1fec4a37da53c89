import { afterSummaries } from './compaction.ts'
import { gatherText } from './gather.ts'
import {
  addUsage,
  type ContentBlock,
  type FinishReason,
  type Message,
  NO_USAGE,
  type RunEvent,
  type Usage,
  usageOf,
} from './model.ts'
import { type Provider, ProviderError, type ToolDescription } from './provider/port.ts'
import { validMessages } from './request.ts'
import { stuckDetector } from './stuck.ts'
import { refuseCalls, runCalls } from './tool-turn.ts'

/** What the loop needs of the tools. */
export interface LoopTools {
  describe(): (ToolDescription & { readOnly: boolean })[]
  /** Never throws: a tool that fails is a result. `rest` is what a helper may spend. */
  run(call: ToolCall, signal: AbortSignal, onProgress: (text: string) => void, rest: Rest): Promise<ToolAnswer>
}

/** What is left of a run's budgets beside the turn in which it answers; null sets no limit. Time is the signal's. */
export interface Rest {
  steps: number
  tokens: number | null
  cost: number | null
}

export interface ToolCall {
  id: string
  name: string
  input: unknown
  /** Arguments that were no JSON. */
  invalid?: string
  step: number
}

export interface ToolAnswer {
  success: boolean
  text: string
  /** Spent by a sub-task. */
  usage?: Usage
}

/** Makes a long transcript fit; see compaction.ts. */
export type Fit = (messages: Message[], why: 'estimate' | 'overflow') => Promise<Fitted | null>

export interface Fitted {
  messages: Message[]
  usage: Usage
  /** What now stands for the older messages; it is kept, so that the next run starts from it. */
  summary?: Message
}

export interface RunInput {
  runId: string
  provider: Provider
  system: string
  /** Everything so far, the goal included. */
  transcript: Message[]
  tools: LoopTools
  /** Turns of the model this run has had before (when it goes on after a plan). */
  stepsBefore: number
  maxSteps: number
  maxTokens: number | null
  maxCost: number | null
  /** What this run has used before (when it goes on after a plan): it counts for the budgets. */
  spentBefore?: Usage
  fit: Fit
  signal: AbortSignal
  now: () => number
  gatherMs?: number
  progressMs?: number
}

/** What happened: to be kept, in one step, before the loop goes on. */
export interface LoopStep {
  events: RunEvent[]
  messages: Message[]
  usage: Usage
}

/** How it ended; `plan` when a person has to decide first. */
export type LoopResult = { type: 'finished'; reason: FinishReason } | { type: 'plan'; call: ToolCall; plan: string }

export const PROPOSE_PLAN = 'propose_plan'
const GATHER_MS = 30
const LAST_STEP = '\n\nThis is your last turn: no tool can be called any more. Answer with what you know.'
const MOST_REFITS = 2
const NO_TURN_LEFT = 'Not carried out: the run has used up what it was given.'

/**
 * Asks the model, runs the tools it calls, asks again, until it calls none. Yields what happens, returns how it ended.
 * The consumer keeps each step before it asks for the next: so a call is recorded before it runs.
 */
export async function* runAgent(input: RunInput): AsyncGenerator<LoopStep, LoopResult> {
  const { runId, maxSteps, signal, now } = input
  let transcript = afterSummaries(input.transcript)
  let spent = input.spentBefore ?? NO_USAGE
  let refits = 0
  /** Turns that helpers took: they are of the same budget. */
  let helped = Math.max(0, spent.totalSteps - input.stepsBefore)
  const stuck = stuckDetector()

  for (let step = input.stepsBefore + 1; step + helped <= maxSteps; step++) {
    if (signal.aborted) return finished('Cancelled')
    const fitted = await fitOr(input, transcript, 'estimate')
    if (signal.aborted) return finished('Cancelled')
    if (fitted === null) return finished('ContextOverflow')
    if (fitted.messages !== transcript) yield compacted(fitted, transcript)
    transcript = fitted.messages
    spent = addUsage(spent, fitted.usage)

    const last = step + helped === maxSteps && maxSteps > 1
    const turn: Turn = { text: '', calls: [], usage: NO_USAGE, reason: 'stop' }
    let failure: unknown
    try {
      yield* takeTurn(input, transcript, step, last, turn)
    } catch (error) {
      failure = error
    }
    if (signal.aborted || failure !== undefined) {
      // What was told of it stays in the conversation; what it wanted to call was never told.
      if (turn.text.trim() !== '') yield { ...NOTHING, messages: [said({ ...turn, calls: [] }, step)] }
      if (signal.aborted) return finished('Cancelled')
      if (!(failure instanceof ProviderError) || failure.kind !== 'context_overflow' || turn.text !== '') throw failure
      const smaller = refits < MOST_REFITS ? await fitOr(input, transcript, 'overflow') : null
      if (signal.aborted) return finished('Cancelled')
      if (smaller === null) return finished('ContextOverflow')
      refits += 1
      yield compacted(smaller, transcript)
      transcript = smaller.messages
      spent = addUsage(spent, smaller.usage)
      step -= 1
      continue
    }
    refits = 0
    spent = addUsage(spent, turn.usage)

    const message = said(turn, step)
    transcript.push(message)
    yield {
      events: [...eventsOf(turn, message, step), { type: 'usage', usage: spent }],
      messages: message.content.length > 0 ? [message] : [],
      usage: turn.usage,
    }
    if (turn.calls.length === 0)
      return finished(turn.reason === 'length' || turn.reason === 'other' ? 'ProviderStop' : 'NoMoreToolCalls')
    if (last || overBudget(spent, input)) {
      yield refuseCalls(input, turn.calls, NO_TURN_LEFT)
      return finished('BudgetExceeded')
    }

    const mayAsk = input.tools.describe().some(({ name }) => name === PROPOSE_PLAN)
    const proposal = mayAsk ? turn.calls.find(({ name }) => name === PROPOSE_PLAN) : undefined
    const planned = proposal ? planOf(proposal) : null
    const doable = planned === null ? turn.calls : turn.calls.filter((call) => call !== proposal)
    const left = restOf(input, spent, maxSteps - helped - step)
    const { verdicts, usage } = yield* runCalls(input, doable, { stuck, transcript, left })
    spent = addUsage(spent, usage)
    helped += usage.totalSteps
    if (signal.aborted) return finished('Cancelled')
    if (proposal && planned !== null) return { type: 'plan', call: proposal, plan: planned }
    if (verdicts.includes('stuck')) return finished('Stuck')
    if (overBudget(spent, input)) return finished('BudgetExceeded')
  }
  return finished('BudgetExceeded')

  function said(turn: Turn, step: number): Message {
    return { role: 'assistant', content: blocksOf(turn), runId, step, createdAt: now() }
  }
}

interface Turn {
  text: string
  calls: ToolCall[]
  usage: Usage
  reason: 'stop' | 'tool_calls' | 'length' | 'other'
}

/** Null too when it was cancelled meanwhile: whoever asks looks at the signal next. */
async function fitOr(input: RunInput, transcript: Message[], why: 'estimate' | 'overflow'): ReturnType<Fit> {
  try {
    return await input.fit(transcript, why)
  } catch (error) {
    if (input.signal.aborted) return null
    throw error
  }
}

const NOTHING: LoopStep = { events: [], messages: [], usage: NO_USAGE }

function compacted({ usage, summary }: Fitted, before: Message[]): LoopStep {
  const kind = summary === undefined ? 'pruned' : 'summarised'
  const covers = summary?.covers ?? before.length
  return { usage, messages: summary === undefined ? [] : [summary], events: [{ type: 'compaction', kind, covers }] }
}

async function* takeTurn(
  input: RunInput,
  transcript: Message[],
  step: number,
  last: boolean,
  turn: Turn,
): AsyncGenerator<LoopStep, void> {
  const { provider, tools, signal } = input
  const request = {
    system: last ? input.system + LAST_STEP : input.system,
    messages: validMessages(transcript),
    tools: tools.describe().map(({ name, description, parameters }) => ({ name, description, parameters })),
    toolChoice: last ? ('none' as const) : ('auto' as const),
  }
  const taken = callIds(transcript)
  for await (const event of gatherText(provider.stream(request, signal), input.gatherMs ?? GATHER_MS)) {
    if (signal.aborted) return
    if (event.type === 'text') {
      turn.text += event.delta
      yield { ...NOTHING, events: [{ type: 'partial_message', text: event.delta, step }] }
    }
    if (event.type === 'tool_call') {
      const { id, name, input: given, invalid } = event
      turn.calls.push({
        id: uniqueId(id, taken),
        name,
        input: given,
        step,
        ...(invalid === undefined ? {} : { invalid }),
      })
    }
    if (event.type === 'finish') {
      turn.reason = event.reason
      turn.usage = usageOf(event, provider)
    }
  }
}

function eventsOf(turn: Turn, message: Message, step: number): RunEvent[] {
  const text = message.content.filter(({ type }) => type === 'text')
  const told: RunEvent[] = text.length > 0 ? [{ type: 'message', role: 'assistant', content: text, step }] : []
  return [
    ...told,
    ...turn.calls.map(({ id, name, input }): RunEvent => ({ type: 'tool_call', id, name, arguments: input, step })),
  ]
}

function blocksOf({ text, calls }: Turn): ContentBlock[] {
  const said: ContentBlock[] = text.trim() === '' ? [] : [{ type: 'text', text }]
  return [...said, ...calls.map(({ id, name, input }): ContentBlock => ({ type: 'tool_use', id, name, input }))]
}

function planOf({ input }: ToolCall): string | null {
  const plan = typeof input === 'object' && input !== null && 'plan' in input ? input.plan : null
  return typeof plan === 'string' && plan.trim() !== '' ? plan : null
}

function callIds(transcript: readonly Message[]): Set<string> {
  const blocks = transcript.flatMap(({ content }) => content)
  return new Set(blocks.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])))
}

/** Some models use one id for every call, of a turn or of all turns; a result must say which one it answers. */
function uniqueId(id: string, taken: Set<string>): string {
  const wanted = id === '' ? 'call' : id
  let unique = wanted
  for (let count = 2; taken.has(unique); count++) unique = `${wanted}_${count}`
  taken.add(unique)
  return unique
}

/** What is left when `used` has been spent besides; one turn is kept for the answer. */
function restOf({ maxTokens, maxCost }: RunInput, spent: Usage, stepsLeft: number): (used: Usage) => Rest {
  return (used) => {
    const { totalTokens, cost } = addUsage(spent, used)
    return {
      steps: stepsLeft - used.totalSteps - 1,
      tokens: maxTokens === null ? null : maxTokens - totalTokens,
      cost: maxCost === null ? null : maxCost - (cost ?? 0),
    }
  }
}

function overBudget(spent: Usage, { maxTokens, maxCost }: RunInput): boolean {
  return (maxTokens !== null && spent.totalTokens >= maxTokens) || (maxCost !== null && (spent.cost ?? 0) >= maxCost)
}

function finished(reason: FinishReason): LoopResult {
  return { type: 'finished', reason }
}
