import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { splitAnswer } from './split-answer.ts'

verifies('bridge:answer:code-whole', () => {
  const code = `\`\`\`js\n${'let x = 1\n'.repeat(8)}\`\`\``
  const text = `${'Some words before it. '.repeat(3)}\n\n${code}\n\nAnd after.`
  expect(splitAnswer(text, 120)).toEqual([`${'Some words before it. '.repeat(3).trim()}`, `${code}\n\nAnd after.`])
  const long = `\`\`\`js\n${'let x = 1\n'.repeat(30)}\`\`\`\nEnd.`
  const pieces = splitAnswer(long, 120)
  expect(pieces.length).toBeGreaterThan(2)
  for (const piece of pieces) {
    expect(piece.length).toBeLessThanOrEqual(120)
    expect(piece).toMatch(/^```js\n(let x = 1\n)+```(\nEnd\.)?$/)
  }
  expect(pieces.join('\n').match(/let x = 1/g)).toHaveLength(30)
})

test('what fits goes out as it is', () => {
  expect(splitAnswer('hello')).toEqual(['hello'])
  expect(splitAnswer('a\n\nb\n')).toEqual(['a\n\nb'])
  expect(splitAnswer('  \n ')).toEqual([])
})

test('a cut is made at a paragraph, else at a line, else at a space', () => {
  expect(splitAnswer('one two\n\nthree four', 12)).toEqual(['one two', 'three four'])
  expect(splitAnswer('one two\nthree four', 12)).toEqual(['one two', 'three four'])
  expect(splitAnswer('one two three', 9)).toEqual(['one two', 'three'])
  expect(splitAnswer('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij'])
  expect(splitAnswer('ab😀😀', 3)).toEqual(['ab', '😀', '😀'])
})

test('no piece is too long and no visible character is lost, whatever the text', () => {
  const line = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('```', '```js', '~~~', '', 'a b c', '    ```'))
  fc.assert(
    fc.property(fc.array(line), fc.integer({ min: 24, max: 80 }), (lines, most) => {
      const text = lines.join('\n')
      const pieces = splitAnswer(text, most)
      for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(most)
      const visible = (some: string) => some.replace(/[\s`~]|js/g, '')
      expect(visible(pieces.join(''))).toBe(visible(text))
    }),
  )
})

const JOINED = ['👩‍👩‍👧‍👦', '🇫🇷', '👍🏽', 'e\u0301']

verifies('bridge:answer:split', 'what people see as one character is never cut', () => {
  for (const one of JOINED) {
    for (let before = 1; before <= one.length; before += 1) {
      const text = `${'x'.repeat(2_000 - before)}${one}y`
      expect(splitAnswer(text)[1]).toMatch(before === one.length ? /^y$/ : new RegExp(`^${one}y$`, 'u'))
      expect(splitAnswer(text).join('')).toBe(text)
    }
  }
})
