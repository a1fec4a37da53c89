import { expect, test } from 'vitest'
import type { IngestResult, Settlement } from '../model.ts'
import { batch, entry, entryFor } from './fixtures.contract.ts'
import { packBatch, packResult, packSettlements, unpackBatch, unpackResult, unpackSettlements } from './packing.ts'

const notice = { kind: 'help', onceMs: 0, text: 'hello' }

test('a batch comes out of its packing as it went in', () => {
  const whole = batch(
    [
      entryFor([{ id: 3 }, { id: 4 }]),
      entry({ upstreamId: null, fingerprint: null, upstreamToken: null, state: 'quarantined', userId: '' }),
      entryFor([{ id: 3 }], { choose: null, notices: [notice] }),
      entry({ choose: 7 }),
    ],
    { cursor: { source: 's', value: 'v' } },
  )
  expect(unpackBatch(structuredClone(packBatch(whole)))).toEqual(whole)
  expect(unpackBatch(JSON.parse(JSON.stringify(packBatch(whole))))).toEqual(whole)
})

test('a result comes out of its packing as it went in', () => {
  const whole = batch([
    entryFor([{ id: 3 }, { id: 4 }]),
    entry({ state: 'suppressed' }),
    entryFor([{ id: 4 }], { upstreamId: null }),
    entryFor([{ id: 3 }]),
  ])
  const token = (index: number, delivery: number) => whole.entries[index]?.deliveries[delivery]?.contextToken ?? ''
  const queued = (index: number, delivery: number, seq: number, wireId: string) => {
    const clientId = whole.entries[index]?.deliveries[delivery]?.clientId ?? 0
    return {
      entry: index,
      clientId,
      seq,
      messageId: 10 + index,
      contextToken: token(index, delivery),
      bytes: 9,
      wireId,
    }
  }
  const result: IngestResult = {
    entries: [
      { messageId: 10, state: 'routed', duplicateOf: null },
      { messageId: 11, state: 'suppressed', duplicateOf: null },
      { messageId: 12, state: 'routed', duplicateOf: null },
      { messageId: 13, state: 'suppressed', duplicateOf: 2 },
    ],
    positions: [{ clientId: 4, lastSeq: 8, sentSeq: 7, settledSeq: 6, pendingBytes: 18 }],
    // The client that the first delivery was for has gone.
    queued: [queued(0, 1, 7, whole.entries[0]?.upstreamId ?? ''), queued(2, 0, 8, '7400000000000000001')],
    died: [{ clientId: 3, reason: 'client_removed', count: 1 }],
    sends: [],
  }
  expect(unpackResult(structuredClone(packResult(result, whole)), whole)).toEqual(result)
})

test('settlements come out of their packing as they went in', () => {
  const settlements: Settlement[] = [
    { clientId: 1, sentSeq: 9, settledSeq: 4, acks: [], failed: [], echoesCursor: false },
    {
      clientId: 2,
      sentSeq: 2 ** 40,
      settledSeq: 5,
      acks: [
        { fromSeq: 1, toSeq: 3, kind: 'assumed', at: 1_700_000_000_000 },
        { fromSeq: 4, toSeq: 5, kind: 'used', at: 1_700_000_000_001 },
      ],
      failed: [{ fromSeq: 6, toSeq: 7 }],
      echoesCursor: true,
    },
  ]
  expect(unpackSettlements(structuredClone(packSettlements(settlements)))).toEqual(settlements)
  expect(unpackSettlements(JSON.parse(JSON.stringify(packSettlements(settlements))))).toEqual(settlements)
})
