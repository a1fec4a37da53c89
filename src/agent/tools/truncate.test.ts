import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cutEnd, cutMiddle } from './truncate.ts'

test('what fits is left alone', () => {
  expect(cutMiddle('a\nb\n', { maxLines: 2, maxBytes: 4 })).toBeNull()
  expect(cutMiddle('', { maxLines: 2, maxBytes: 4 })).toBeNull()
})

test('too many lines keep the first and the last', () => {
  const text = Array.from({ length: 10 }, (_, index) => `line ${index}\n`).join('')
  const cut = cutMiddle(text, { maxLines: 4, maxBytes: 1_000 })
  expect(cut).toEqual({ head: 'line 0\nline 1\n', tail: 'line 8\nline 9\n', lines: 6, bytes: 42 })
})

test('a single huge line is cut within, between characters', () => {
  const cut = cutMiddle('äöü'.repeat(100), { maxLines: 10, maxBytes: 21 })
  expect(cut?.head).toBe('äöüäö')
  expect(cut?.tail).toBe('öüäöü')
})

test('whatever the text, the parts are its beginning and its end, within the limits and with nothing lost in the count', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom('a', 'ä', '日', '😀', ' ', '\n', '\r\n') }), {
    maxLength: 30,
  })
  fc.assert(
    fc.property(
      texts,
      fc.integer({ min: 2, max: 12 }),
      fc.integer({ min: 8, max: 80 }),
      (parts, maxLines, maxBytes) => {
        const text = parts.join('')
        const cut = cutMiddle(text, { maxLines, maxBytes })
        if (cut === null) return
        expect(text.startsWith(cut.head)).toBe(true)
        expect(text.endsWith(cut.tail)).toBe(true)
        expect(Buffer.byteLength(cut.head) + Buffer.byteLength(cut.tail)).toBeLessThanOrEqual(maxBytes)
        expect(cut.head.split('\n').length + cut.tail.split('\n').length).toBeLessThanOrEqual(maxLines + 2)
        expect(Buffer.byteLength(cut.head) + cut.bytes + Buffer.byteLength(cut.tail)).toBe(Buffer.byteLength(text))
      },
    ),
  )
})

test('an end is cut between characters', () => {
  expect(cutEnd('aä', 2)).toBe('a')
  expect(cutEnd('aä', 3)).toBe('aä')
  expect(cutEnd('a😀b', 4)).toBe('a')
})
