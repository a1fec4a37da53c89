import { randomUUID } from 'node:crypto'
import { withoutSummaries } from './compaction.ts'
import { runAgent } from './loop.ts'
import { addUsage, type FinishReason, type Message, NO_USAGE, type RunEvent, type Usage } from './model.ts'
import type { RunSetup } from './setup.ts'

export interface StatelessOrder {
  goal: string
  systemPrompt: string | null
  maxSteps: number
  model: string | null
  workspace: string
  signal: AbortSignal
  now: () => number
  /** Told as it happens, for who watches. */
  onEvent: (event: RunEvent, runId: string) => void
}

export interface StatelessResult {
  runId: string
  finishReason: FinishReason
  messages: Message[]
  usage: Usage
}

/** One request, one result: the same loop with nothing stored. */
export async function runAlone(setup: RunSetup, order: StatelessOrder): Promise<StatelessResult> {
  const { goal, systemPrompt, maxSteps, model, workspace, signal, now } = order
  const runId = randomUUID()
  const prepared = await setup.prepareAlone({ model, systemPrompt, workspace }, { model }, signal)
  const first: Message = { role: 'user', content: [{ type: 'text', text: goal }], runId, step: 0, createdAt: now() }
  const messages: Message[] = [first]
  let usage = NO_USAGE
  const loop = runAgent({ ...prepared, runId, transcript: [first], stepsBefore: 0, maxSteps, signal, now })
  for (;;) {
    const { done, value } = await loop.next()
    if (done) {
      const finishReason = value.type === 'finished' ? value.reason : 'ProviderStop'
      order.onEvent({ type: 'done', finishReason, usage }, runId)
      return { runId, finishReason, messages, usage }
    }
    usage = addUsage(usage, value.usage)
    messages.push(...withoutSummaries(value.messages))
    for (const event of value.events) order.onEvent(event, runId)
  }
}
