import fc from 'fast-check'
import { expect, test } from 'vitest'
import { wholeCharacters } from './graphemes.ts'

const WHOLE = ['👩‍👩‍👧‍👦', '🇫🇷', '👍🏽', '🏴󠁧󠁢󠁳󠁣󠁴󠁿', 'é', '❤️', 'ñ', '각', '\r\n', 'a', ' ', '好']

test('a place between two characters is taken, one inside goes back to the start', () => {
  for (const one of WHOLE) {
    const text = `ab${one}cd`
    for (let at = 3; at < 2 + one.length; at += 1) expect([one, at, wholeCharacters(text, at)]).toEqual([one, at, 2])
    for (const at of [1, 2, 2 + one.length]) expect([one, wholeCharacters(text, at)]).toEqual([one, at])
  }
})

test('it is what the whole text says, wherever it is asked', () => {
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...WHOLE, '🇩', '‍', '́'), { maxLength: 40 }), fc.nat(), (parts, some) => {
      const text = parts.join('')
      const at = some % (text.length + 1)
      const starts = [...segmenter.segment(text)].map(({ index }) => index)
      const wanted = at === text.length ? at : starts.findLast((start) => start <= at)
      if (wanted !== 0) expect(wholeCharacters(text, at)).toBe(wanted)
    }),
  )
})

test('a character longer than all the room is cut, and not inside a pair', () => {
  expect(wholeCharacters('👩‍👩‍👧‍👦', 4)).toBe(3)
  expect(wholeCharacters(`e${'\u0301'.repeat(50)}`, 10)).toBe(10)
  expect(wholeCharacters('😀', 1)).toBe(1)
})
