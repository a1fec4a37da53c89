import type { LoopStep, Rest, RunInput, ToolAnswer, ToolCall } from './loop.ts'
import { addUsage, type ContentBlock, type Message, NO_USAGE, type RunEvent, type Usage } from './model.ts'
import { NUDGE, type StuckDetector, type StuckVerdict } from './stuck.ts'

const MAX_TOGETHER = 8
const PREVIEW_CHARS = 2_000
/** What a tool prints is told this often at most, and the newest of it. */
const PROGRESS_MS = 500
const PROGRESS_CHARS = 4_000

/** Read-only calls together, writers one after the other, in the order the model asked; told in that order too. */
export async function* runCalls(
  input: RunInput,
  calls: ToolCall[],
  { stuck, transcript, left }: { stuck: StuckDetector; transcript: Message[]; left: (used: Usage) => Rest },
): AsyncGenerator<LoopStep, { verdicts: StuckVerdict[]; usage: Usage }> {
  const readOnly = new Set(
    input.tools
      .describe()
      .filter((tool) => tool.readOnly)
      .map(({ name }) => name),
  )
  const verdicts: StuckVerdict[] = []
  let total = NO_USAGE
  for (const group of groupsOf(calls, readOnly)) {
    if (input.signal.aborted) break
    const answers = yield* runGroup(input, group, left(total))
    if (input.signal.aborted) break
    const results = group.map((call, index): Result => {
      const answer = answers[index] ?? { success: false, text: 'The tool gave no answer.' }
      const verdict = stuck.note(call.name, call.input, answer.text)
      verdicts.push(verdict)
      return { call, answer, text: verdict === 'nudge' ? answer.text + NUDGE : answer.text }
    })
    const told = tell(input, results)
    transcript.push(...told.messages)
    total = addUsage(total, told.usage)
    yield told
  }
  return { verdicts, usage: total }
}

/** Calls that are not carried out, answered with why. */
export function refuseCalls(input: RunInput, calls: ToolCall[], why: string): LoopStep {
  return tell(
    input,
    calls.map((call) => ({ call, answer: { success: false, text: why }, text: why })),
  )
}

/** What who watches is shown of an output. */
export function preview(text: string): string {
  return text.slice(0, PREVIEW_CHARS)
}

interface Result {
  call: ToolCall
  answer: ToolAnswer
  /** For the model. */
  text: string
}

function tell({ runId, now }: RunInput, results: Result[]): LoopStep {
  const step = results[0]?.call.step ?? 0
  const content = results.map(
    ({ call, answer, text }): ContentBlock => ({
      type: 'tool_result',
      toolUseId: call.id,
      content: text,
      isError: !answer.success,
    }),
  )
  const events = results.map(
    ({ call, answer }): RunEvent => ({
      type: 'tool_result',
      id: call.id,
      name: call.name,
      success: answer.success,
      output: preview(answer.text),
      step,
    }),
  )
  const usage = results.reduce((sum, { answer }) => (answer.usage ? addUsage(sum, answer.usage) : sum), NO_USAGE)
  return { events, messages: [{ role: 'tool', content, runId, step, createdAt: now() }], usage }
}

/** The answers of calls that run together. What they print meanwhile is told while they run. */
async function* runGroup(input: RunInput, group: ToolCall[], rest: Rest): AsyncGenerator<LoopStep, ToolAnswer[]> {
  const printed = new Map<ToolCall, string>()
  let wake: () => void = () => {}
  const { signal, progressMs = PROGRESS_MS } = input
  const running = Promise.all(
    group.map((call) =>
      input.tools.run(
        call,
        signal,
        (output) => {
          printed.set(call, ((printed.get(call) ?? '') + output).slice(-PROGRESS_CHARS))
          wake()
        },
        rest,
      ),
    ),
  )
  // It may fail while its consumer keeps a step; whoever awaits it still sees it.
  running.catch(() => undefined)
  const ended = running.then(() => true)
  for (;;) {
    const something = new Promise<false>((resolve) => {
      wake = () => resolve(false)
    })
    if (printed.size === 0 && (await Promise.race([ended, something]))) break
    if (await endsWithin(ended, progressMs)) break
    if (!signal.aborted) yield { events: progressOf(printed), messages: [], usage: NO_USAGE }
    printed.clear()
  }
  return running
}

function progressOf(printed: Map<ToolCall, string>): RunEvent[] {
  return [...printed].map(([{ id, name }, output]) => ({ type: 'tool_progress', id, name, output }))
}

/** Whether it ends before the time is over. */
async function endsWithin(ended: Promise<boolean>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([ended, late])
  } finally {
    clearTimeout(timer)
  }
}

function groupsOf(calls: ToolCall[], readOnly: Set<string>): ToolCall[][] {
  const groups: ToolCall[][] = []
  for (const call of calls) {
    const last = groups.at(-1)
    const together =
      last !== undefined &&
      last.length < MAX_TOGETHER &&
      readOnly.has(call.name) &&
      last.every(({ name }) => readOnly.has(name))
    if (together) last.push(call)
    else groups.push([call])
  }
  return groups
}
