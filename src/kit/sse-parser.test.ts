import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sseEvent } from './sse.ts'
import { type SseMessage, sseParser } from './sse-parser.ts'

function parse(pieces: readonly string[]) {
  const events: SseMessage[] = []
  const retries: number[] = []
  const parser = sseParser({ onEvent: (event) => void events.push(event), onRetry: (ms) => void retries.push(ms) })
  for (const piece of pieces) parser.feed(piece)
  return { events, retries }
}

function parseAsOthers(pieces: readonly string[]) {
  const events: SseMessage[] = []
  const retries: number[] = []
  const parser = createParser({
    onEvent: ({ id = '', event = 'message', data }) => void events.push({ id, event, data }),
    onRetry: (ms) => void retries.push(ms),
  })
  for (const piece of pieces) parser.feed(piece)
  return { events, retries }
}

/** The text in pieces, cut at these places. */
function cutAt(text: string, places: readonly number[]): string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b)
  return ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end))
}

const BREAK = fc.constantFrom('\n', '\r', '\r\n')
const LINE = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('data', 'event', 'id', 'retry', 'other', ''),
      fc.constantFrom(':', ': ', ':  ', ''),
      fc.oneof(fc.string(), fc.constantFrom('', '12', '1x', '\0', 'é', '🎈', ':')),
    )
    .map((parts) => parts.join('')),
  fc.constant(''),
  fc.constant(''),
)
const TEXT = fc
  .array(fc.tuple(LINE, BREAK), { maxLength: 30 })
  .map((lines) => lines.map(([line, end]) => line.replace(/[\r\n]/g, '') + end).join(''))
const PLACES = fc.array(fc.nat(2_000), { maxLength: 20 })

test('any text in any pieces is read as the parser of others reads it', () => {
  const property = fc.property(TEXT, PLACES, (text, places) => {
    // The last break is certain, so that nobody waits for its second half.
    const whole = `${text}\n`
    expect(parse(cutAt(whole, places))).toEqual(parseAsOthers([whole]))
    expect(parse([...whole])).toEqual(parseAsOthers([whole]))
  })
  fc.assert(property, { numRuns: 500 })
})

test('what our own servers write is read back, with line breaks in the data as \\n', () => {
  const property = fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), PLACES, (data, id, places) => {
    const text = sseEvent({ id, event: 'tool_call', data })
    const expected = data.replace(/\r\n|\r/g, '\n')
    expect(parse(cutAt(text, places)).events).toEqual([{ id: String(id), event: 'tool_call', data: expected }])
  })
  fc.assert(property)
})

test('an event without its blank line is not told', () => {
  expect(parse(['id: 1\nevent: a\ndata: x\n']).events).toEqual([])
  expect(parse(['id: 1\nevent: a\ndata: x\n', '\n']).events).toEqual([{ id: '1', event: 'a', data: 'x' }])
})

test('an event is told with the first half of its last line break', () => {
  expect(parse(['data: x\r\n\r']).events).toHaveLength(1)
  expect(parse(['data: x\r\n\r', '\ndata: y\n\n']).events).toHaveLength(2)
})

test('retry is a whole number or nothing', () => {
  expect(parse(['retry: 250\nretry: 1.5\nretry: -1\nretry:\n\n']).retries).toEqual([250])
})
