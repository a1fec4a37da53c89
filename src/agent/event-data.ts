import type { ContentBlock, RunEvent, Usage } from './model.ts'

/** The payload of an event as it goes over the wire: the contract's fields, and a few of ours. */
export function eventData(event: RunEvent, seq: number, runId: string): string {
  return JSON.stringify({ ...fieldsOf(event), run_id: runId, id: seq })
}

function fieldsOf(event: RunEvent): Record<string, unknown> {
  switch (event.type) {
    case 'message':
      return { role: event.role, content: event.content.map(wireBlock), step: event.step }
    case 'partial_message':
      return { text: event.text, step: event.step }
    case 'tool_call':
      return { name: event.name, step: event.step, call_id: event.id, arguments: event.arguments ?? null }
    case 'tool_result':
      return { name: event.name, success: event.success, step: event.step, call_id: event.id, output: event.output }
    case 'plan_proposed':
      return { plan: event.plan, plan_id: event.planId, expires_at: new Date(event.expiresAt).toISOString() }
    case 'error':
      return { message: event.message, code: event.code }
    case 'done':
      return { finish_reason: event.finishReason, total_steps: event.usage.totalSteps, usage: wireUsage(event.usage) }
    case 'run_started':
      return { goal: event.goal, model: event.model }
    case 'plan_decided':
      return { plan_id: event.planId, decision: event.decision }
    case 'usage':
      return wireUsage(event.usage)
    case 'compaction':
      return { kind: event.kind, covers: event.covers }
    case 'tool_progress':
      return { name: event.name, call_id: event.id, output: event.output }
  }
}

/** A block in the contract's spelling. */
export function wireBlock(block: ContentBlock): Record<string, unknown> {
  if (block.type === 'tool_result') {
    return { type: 'tool_result', tool_use_id: block.toolUseId, content: block.content, is_error: block.isError }
  }
  return { ...block }
}

/** Usage in the contract's spelling. */
export function wireUsage({
  totalSteps,
  totalTokens,
  inputTokens,
  outputTokens,
  cost,
}: Usage): Record<string, number | null> {
  return {
    total_steps: totalSteps,
    total_tokens: totalTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost,
  }
}
