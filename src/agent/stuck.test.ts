import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { stuckDetector } from './stuck.ts'

verifies('agent:loop:stuck', 'the third identical call with an identical result is a nudge, the fifth the end', () => {
  const { note } = stuckDetector()
  const verdicts = [1, 2, 3, 4, 5, 6].map(() => note('read', { path: 'a' }, 'same'))
  expect(verdicts).toEqual(['fine', 'fine', 'nudge', 'fine', 'stuck', 'stuck'])
})

test('another result, input or tool begins anew', () => {
  for (const [name, input, output] of [
    ['read', { path: 'a' }, 'other'],
    ['read', { path: 'b' }, 'same'],
    ['look', { path: 'a' }, 'same'],
  ] as const) {
    const { note } = stuckDetector()
    for (let count = 0; count < 4; count++) note('read', { path: 'a' }, 'same')
    expect(note(name, input, output)).toBe('fine')
    expect(note('read', { path: 'a' }, 'same')).toBe('fine')
  }
})

test('the order of keys does not make a call another one, the order of a list does', () => {
  const same = stuckDetector()
  same.note('read', { a: 1, b: { c: 2, d: 3 } }, '')
  same.note('read', { b: { d: 3, c: 2 }, a: 1 }, '')
  expect(same.note('read', { a: 1, b: { c: 2, d: 3 } }, '')).toBe('nudge')
  const lists = stuckDetector()
  lists.note('read', [1, 2], '')
  lists.note('read', [2, 1], '')
  expect(lists.note('read', [1, 2], '')).toBe('fine')
})

test('two calls that take turns are a circle after six rounds, whatever came before', () => {
  const { note } = stuckDetector()
  note('start', {}, '')
  const verdicts = Array.from({ length: 12 }, (_, index) => note(index % 2 === 0 ? 'read' : 'look', {}, ''))
  expect(verdicts.slice(0, 11)).toEqual(Array(11).fill('fine'))
  expect(verdicts.at(-1)).toBe('stuck')
})

test('inputs that are no objects are fine', () => {
  const { note } = stuckDetector()
  for (const input of [undefined, null, 'text', 7, []]) expect(note('read', input, '')).toBe('fine')
})
