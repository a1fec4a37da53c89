import type { ContentBlock, Message } from './model.ts'

/** Said in place of a result that never came. */
export const NO_RESULT = 'Interrupted: it is not known whether this was carried out.'

type ToolUse = Extract<ContentBlock, { type: 'tool_use' }>
type ToolResult = Extract<ContentBlock, { type: 'tool_result' }>

/**
 * Messages that every provider accepts, from any transcript, also one that a crash cut off anywhere: each tool call has
 * exactly one result, right behind it; results without a call, empty texts and empty messages are left out.
 */
export function validMessages(transcript: readonly Message[]): Message[] {
  const valid: Message[] = []
  for (const [index, message] of transcript.entries()) {
    if (message.role === 'tool') continue
    const content = message.content.filter((block) => block.type !== 'text' || block.text.trim() !== '')
    const kept = message.role === 'user' ? content.filter(({ type }) => type === 'text') : firstCalls(content)
    if (kept.length === 0) continue
    valid.push({ ...message, content: kept })
    const calls = kept.filter((block) => block.type === 'tool_use')
    if (calls.length > 0) valid.push(answersTo(calls, transcript.slice(index + 1), message))
  }
  return valid
}

/** A model that repeats a call id in one turn is believed once. */
function firstCalls(content: ContentBlock[]): ContentBlock[] {
  const seen = new Set<string>()
  return content.filter((block) => {
    if (block.type === 'tool_result') return false
    if (block.type === 'text') return true
    if (seen.has(block.id)) return false
    seen.add(block.id)
    return true
  })
}

function answersTo(calls: ToolUse[], later: readonly Message[], { runId, step, createdAt }: Message): Message {
  const content = calls.map(({ id }): ToolResult => {
    const result = resultOf(id, later)
    const text = result === undefined ? NO_RESULT : result.content.trim() === '' ? '(no output)' : result.content
    return { type: 'tool_result', toolUseId: id, content: text, isError: result?.isError ?? true }
  })
  return { role: 'tool', content, runId, step, createdAt }
}

/** The first result for a call; one that comes after another call with the same id is not its own. */
function resultOf(id: string, later: readonly Message[]): ToolResult | undefined {
  for (const { role, content } of later) {
    for (const block of content) {
      if (role === 'tool' && block.type === 'tool_result' && block.toolUseId === id) return block
      if (role === 'assistant' && block.type === 'tool_use' && block.id === id) return undefined
    }
  }
  return undefined
}
