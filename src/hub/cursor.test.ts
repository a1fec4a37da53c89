import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { readCursor, writeCursor } from './cursor.ts'

const HUB = '0123456789abcdef'

test('what was written is read back, for this client and up to the queue’s end', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat({ max: 2 ** 40 }), fc.nat(), (client, seq, more) => {
      const cursor = writeCursor(HUB, client, seq)
      expect(readCursor(cursor, HUB, client, seq + more)).toEqual({ kind: 'ours', seq })
    }),
  )
})

test('no cursor and an empty one are told apart', () => {
  expect(readCursor(undefined, HUB, 1, 9)).toEqual({ kind: 'none' })
  expect(readCursor('', HUB, 1, 9)).toEqual({ kind: 'empty' })
})

verifies('delivery:cursor:foreign', 'a cursor of another hub, another client, or past the end is foreign', () => {
  const foreign = { kind: 'foreign' }
  expect(readCursor(writeCursor('another', 1, 5), HUB, 1, 9)).toEqual(foreign)
  expect(readCursor(writeCursor(HUB, 2, 5), HUB, 1, 9)).toEqual(foreign)
  expect(readCursor(writeCursor(HUB, 1, 10), HUB, 1, 9)).toEqual(foreign)
  const ours = writeCursor(HUB, 1, 5)
  const spoilt = [
    ours.replace('v1', 'v2'),
    ours.slice(0, -1),
    `${ours}.`,
    `${ours}.6`,
    ` ${ours}`,
    `${ours}\n`,
    ours.replace(/5$/, '-1'),
    ours.replace(/5$/, '5.0'),
    ours.replace(/5$/, '5e0'),
    ours.replace(/5$/, '0x5'),
    ours.replace(/5$/, '٥'),
    ours.replace(/5$/, '9'.repeat(400)),
    'v1',
    '....',
    '.'.repeat(100_000),
    'CAESBgoEMTIzNA==',
  ]
  for (const cursor of spoilt) expect(readCursor(cursor, HUB, 1, 9), cursor.slice(0, 60)).toEqual(foreign)
})

test('no text whatever is an error, or moves past the queue’s end', () => {
  const near = fc.stringMatching(/^v1\.0123456789abcdef\.1\.[0-9.eE+-]{0,20}$/)
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), near), (text) => {
      const cursor = readCursor(text, HUB, 1, 9)
      if (cursor.kind === 'ours') expect(cursor.seq).toBeLessThanOrEqual(9)
      else expect(['empty', 'foreign']).toContain(cursor.kind)
    }),
  )
})
