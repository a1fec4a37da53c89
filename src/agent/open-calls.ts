import { PROPOSE_PLAN } from './loop.ts'
import type { ContentBlock, FinishReason, Message, RunEvent } from './model.ts'
import { NO_RESULT } from './request.ts'

/**
 * The calls of a run that ended without their results, answered with why there is none: events for who watches, a message
 * for the model's next request. Nothing where every call has its result.
 */
export function answerOpenCalls(
  transcript: readonly Message[],
  { runId, reason, now }: { runId: string; reason: FinishReason; now: number },
): { events: RunEvent[]; messages: Message[] } {
  const blocks = transcript
    .filter((message) => message.runId === runId)
    .flatMap(({ content, step }) => content.map((block) => ({ block, step })))
  const answered = new Set(blocks.flatMap(({ block }) => (block.type === 'tool_result' ? [block.toolUseId] : [])))
  const events: RunEvent[] = []
  const content: ContentBlock[] = []
  let lastStep = 0
  for (const { block, step } of blocks) {
    if (block.type !== 'tool_use' || answered.has(block.id)) continue
    const { id, name } = block
    const text = whyNoResult(name, reason)
    events.push({ type: 'tool_result', id, name, success: false, output: text, step })
    content.push({ type: 'tool_result', toolUseId: id, content: text, isError: true })
    lastStep = step
  }
  if (content.length === 0) return { events: [], messages: [] }
  return { events, messages: [{ role: 'tool', content, runId, step: lastStep, createdAt: now }] }
}

function whyNoResult(name: string, reason: FinishReason): string {
  if (name === PROPOSE_PLAN) return 'The run ended before anybody decided on this plan.'
  if (reason === 'Interrupted') return NO_RESULT
  const why = reason === 'Cancelled' ? 'Cancelled' : 'Cut off'
  return `${why} before it had ended: it is not known how much of it was carried out.`
}
