import type { Item, WireBlock, WireMessage } from './types.ts'

/**
 * What the transcript has and the events do not: the past of a session that was forked, and what was so long ago that its
 * events are no longer kept.
 */
export function pastItems(transcript: readonly WireMessage[], shown: readonly Item[]): Item[] {
  const runs = new Set(shown.map(({ key }) => key.split(':')[0]))
  const past = transcript.filter(({ run_id }) => !runs.has(run_id))
  const results = new Map(past.flatMap(({ content }) => content.map((block) => [block.tool_use_id, block] as const)))
  return past.flatMap((message, place) =>
    message.content.flatMap((block, part) => itemOf(message, block, `past:${place}:${part}`, results)),
  )
}

function itemOf(
  { role }: WireMessage,
  block: WireBlock,
  key: string,
  results: ReadonlyMap<string | undefined, WireBlock>,
): Item[] {
  const { type, text = '', name = '', input, id } = block
  if (type === 'text') return [role === 'user' ? { kind: 'goal', key, text } : { kind: 'text', key, text, live: false }]
  if (type !== 'tool_use') return []
  const result = results.get(id)
  const output = result?.content ?? null
  return [{ kind: 'tool', key, name, input, output, success: result !== undefined && result.is_error !== true }]
}
