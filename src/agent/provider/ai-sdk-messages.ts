import type { AssistantModelMessage, ModelMessage, ToolModelMessage } from 'ai'
import type { ContentBlock, Message } from '../model.ts'

/**
 * A transcript in the SDK's form. Blocks without text are left out, and a message without blocks; results carry the name
 * of their tool; ids have the form and the uniqueness that the strictest vendor asks for, since a session may change its
 * model between two runs.
 */
export function toSdkMessages(messages: readonly Message[]): ModelMessage[] {
  const ids = callIds()
  return messages.flatMap((message) => {
    if (message.role === 'user') return userMessage(message.content)
    return message.role === 'assistant' ? assistantMessage(message.content, ids) : toolMessage(message.content, ids)
  })
}

function userMessage(content: readonly ContentBlock[]): ModelMessage[] {
  const parts = content.flatMap((block) =>
    block.type === 'text' && hasText(block.text) ? [{ type: 'text' as const, text: block.text }] : [],
  )
  return parts.length === 0 ? [] : [{ role: 'user', content: parts }]
}

function assistantMessage(content: readonly ContentBlock[], ids: CallIds): ModelMessage[] {
  const parts: Exclude<AssistantModelMessage['content'], string> = []
  for (const block of content) {
    if (block.type === 'text' && hasText(block.text)) parts.push({ type: 'text', text: block.text })
    if (block.type === 'tool_use') {
      const toolCallId = ids.open(block.id, block.name)
      parts.push({ type: 'tool-call', toolCallId, toolName: block.name, input: asObject(block.input) })
    }
  }
  return parts.length === 0 ? [] : [{ role: 'assistant', content: parts }]
}

function toolMessage(content: readonly ContentBlock[], ids: CallIds): ModelMessage[] {
  const parts: ToolModelMessage['content'] = []
  for (const block of content) {
    const call = block.type === 'tool_result' ? ids.close(block.toolUseId) : undefined
    if (block.type !== 'tool_result' || call === undefined) continue
    // An empty result is refused by some vendors.
    const value = hasText(block.content) ? block.content : '(no output)'
    const output = block.isError ? ({ type: 'error-text', value } as const) : ({ type: 'text', value } as const)
    parts.push({ type: 'tool-result', toolCallId: call.id, toolName: call.name, output })
  }
  return parts.length === 0 ? [] : [{ role: 'tool', content: parts }]
}

interface CallIds {
  /** The id of a call on the wire. */
  open(id: string, name: string): string
  /** The oldest call of this id that has no result yet. */
  close(id: string): { id: string; name: string } | undefined
}

const MAX_ID = 40

/** Some models number their calls anew in each turn, and one vendor's ids have characters that another refuses. */
function callIds(): CallIds {
  const used = new Set<string>()
  const waiting = new Map<string, { id: string; name: string }[]>()
  return {
    open(id, name) {
      const base = id.replace(/[^\w-]/g, '_').slice(0, MAX_ID - 4) || 'call'
      let unique = base
      for (let copy = 2; used.has(unique); copy++) unique = `${base}_${copy}`
      used.add(unique)
      waiting.set(id, [...(waiting.get(id) ?? []), { id: unique, name }])
      return unique
    },
    close: (id) => waiting.get(id)?.shift(),
  }
}

/** Whitespace alone is refused like an empty block. */
function hasText(text: string): boolean {
  return text.trim() !== ''
}

/** The input of a call must be an object, whatever the model wrote. */
function asObject(input: unknown): object {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { value: input }
}
