import type { ContentBlock, Message } from '../model.ts'
import type { ToolDescription } from './port.ts'

const BYTES_PER_TOKEN = 4
/** Role, separators and what else stands around a message or a tool. */
const FRAME_TOKENS = 4

/**
 * About how many tokens a request has, for budgets and compaction. A rule of thumb (bytes / 4): real tokenizers differ by
 * a third in both directions.
 */
export function estimateTokens(
  messages: readonly Message[],
  system: string,
  tools: readonly ToolDescription[],
): number {
  let tokens = textTokens(system) + FRAME_TOKENS
  for (const { content } of messages) {
    tokens += FRAME_TOKENS
    for (const block of content) tokens += blockTokens(block)
  }
  for (const { name, description, parameters } of tools)
    tokens += FRAME_TOKENS + textTokens(name) + textTokens(description) + textTokens(JSON.stringify(parameters))
  return tokens
}

/** About how many tokens a text has. */
export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
}

function blockTokens(block: ContentBlock): number {
  if (block.type === 'text') return textTokens(block.text)
  if (block.type === 'tool_result') return FRAME_TOKENS + textTokens(block.content)
  return FRAME_TOKENS + textTokens(block.name) + textTokens(JSON.stringify(block.input) ?? '')
}
