import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { MAX_TEXT_CHARS, splitText } from './split-text.ts'

describe('splitText', () => {
  const most = fc.integer({ min: 2, max: 40 })
  const text = fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(' ', '\n', '\r\n', '👩‍🚀', 'word')), {
    maxLength: 60,
  })

  verifies(
    'sends:split:long-text',
    'no character is lost, added or moved, but for white space that would stand alone',
    () => {
      const bare = (words: string) => words.replace(/\s/gu, '')
      fc.assert(
        fc.property(text, most, (words, limit) => {
          const whole = words.join('')
          const pieces = splitText(whole, limit)
          expect(bare(pieces.join(''))).toBe(bare(whole))
          expect(isWithin(pieces, whole)).toBe(true)
        }),
      )
    },
  )

  test('no piece is too long, none is empty, and no surrogate pair is cut', () => {
    fc.assert(
      fc.property(text, most, (words, limit) => {
        const whole = words.join('')
        const pieces = splitText(whole, limit)
        expect(pieces.length).toBeGreaterThan(0)
        for (const piece of pieces) {
          expect(piece.length).toBeLessThanOrEqual(limit)
          expect(piece).not.toMatch(/\p{Surrogate}/u)
          if (whole.trim() !== '') expect(piece.trim()).not.toBe('')
        }
      }),
    )
  })

  test('any string at all, lone surrogates too, comes to an end', () => {
    const odd = fc.array(fc.constantFrom('\ud83d', '\ude00', 'a', ' '), { maxLength: 50 })
    fc.assert(
      fc.property(odd, fc.integer({ min: 1, max: 5 }), (chars, limit) => {
        const whole = chars.join('')
        expect(splitText(whole, limit).join('').replaceAll(' ', '')).toBe(whole.replaceAll(' ', ''))
      }),
    )
  })

  test('cuts behind a line end, else behind a space, else where it must', () => {
    expect(splitText('12345 789\n1234', 12)).toEqual(['12345 789\n', '1234'])
    expect(splitText('12345 789 1234', 12)).toEqual(['12345 789 ', '1234'])
    expect(splitText('1234567890123456', 12)).toEqual(['123456789012', '3456'])
  })

  test('a break near the front is not worth a short piece', () => {
    expect(splitText('1\n2 34567890123', 12)).toEqual(['1\n2 34567890', '123'])
  })

  test('what fits is one piece, to the last character', () => {
    const whole = 'x'.repeat(MAX_TEXT_CHARS)
    expect(splitText(whole)).toEqual([whole])
    expect(splitText(`${whole}y`)).toEqual([whole, 'y'])
  })

  verifies('wire:budget:split', 'code is cut behind a line, and rather before its block than in it', () => {
    const code = '```js\nlet a = 1\nlet b = 2\n```\n'
    expect(splitText(`some more prose here, as it goes\n${code}end`, 40)).toEqual([
      'some more prose here, as it goes\n',
      `${code}end`,
    ])
    expect(splitText(`${code}${code}`, 40)).toEqual([code, code])
    expect(splitText(`~~~\n${'x = 1\n'.repeat(10)}~~~\nend`, 40)).toEqual([
      `~~~\n${'x = 1\n'.repeat(6)}`,
      `${'x = 1\n'.repeat(4)}~~~\nend`,
    ])
  })

  verifies('wire:budget:split', 'the signs of a marker stay together', () => {
    expect(splitText(`${'x'.repeat(10)}\`\`\`${'y'.repeat(10)}`, 12)).toEqual(['x'.repeat(10), '```yyyyyyyyy', 'y'])
    const marked = fc.array(fc.constantFrom('```', '~~~', 'ab', '\n', ' '), { maxLength: 40 })
    fc.assert(
      fc.property(marked, fc.integer({ min: 8, max: 30 }), (words, limit) => {
        const whole = words.join('').replace(/`{6,}/g, '```').replace(/~{6,}/g, '~~~')
        const pieces = splitText(whole, limit)
        const count = (text: string) => text.match(/`{3}|~{3}/g)?.length ?? 0
        expect(pieces.reduce((sum, piece) => sum + count(piece), 0)).toBe(count(whole))
      }),
    )
  })
})

/** Whether the pieces stand in `whole` in this order, with nothing but white space between them. */
function isWithin(pieces: string[], whole: string): boolean {
  let rest = whole
  for (const piece of pieces) {
    const at = rest.indexOf(piece)
    if (at === -1 || rest.slice(0, at).trim() !== '') return false
    rest = rest.slice(at + piece.length)
  }
  return rest.trim() === ''
}

verifies('sends:split:long-text', 'what people see as one character is never cut', () => {
  for (const one of ['👩‍👩‍👧‍👦', '🇫🇷', '👍🏽', 'e\u0301']) {
    for (let before = 1; before <= one.length; before += 1) {
      const text = `${'x'.repeat(MAX_TEXT_CHARS - before)}${one}y`
      expect(splitText(text)).toEqual(
        before === one.length ? [text.slice(0, -1), 'y'] : [text.slice(0, MAX_TEXT_CHARS - before), `${one}y`],
      )
    }
  }
  // Nor where a text is nothing but such characters.
  for (const piece of splitText('🇫🇷'.repeat(1_500), MAX_TEXT_CHARS - 2)) expect(piece).toMatch(/^(🇫🇷)+$/u)
})
