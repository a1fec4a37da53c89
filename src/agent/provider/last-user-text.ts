import type { Message } from '../model.ts'

/** What the user said last, and where; index -1 and no text when nobody said anything. */
export function lastUserText(messages: readonly Message[]): { text: string; index: number } {
  const index = messages.findLastIndex(({ role }) => role === 'user')
  const blocks = messages[index]?.content ?? []
  return { index, text: blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n') }
}
