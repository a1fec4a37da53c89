import { describe, expect } from 'vitest'
import {
  ACCOUNT,
  batch,
  entryFor,
  freshToken,
  ingest,
  MINUTE_MS,
  NOW,
  type OpenStore,
  positionOf,
  queueMessages,
  readAll,
  register,
  settlement,
  settleNow,
  statesOf,
  storeTests,
} from './fixtures.contract.ts'

/** What {@link DeliveryStore} promises. */
export function deliveriesContract(open: OpenStore): void {
  const test = storeTests(open)

  describe('deliveries', () => {
    test('what stands after a position is read oldest first, so many, and nothing too old', async (store) => {
      const ada = await register(store, 'ada')
      for (const now of [NOW, NOW + 1, NOW + 2, NOW + 3]) {
        await store.messages.ingest(batch([entryFor([ada])], { now }))
      }
      const seqs = async (after: number, limit: number, since = 0) =>
        (await store.deliveries.read(ada.id, after, limit, since)).map(({ seq }) => seq)

      expect(await seqs(0, 9)).toEqual([1, 2, 3, 4])
      expect(await seqs(1, 2)).toEqual([2, 3])
      expect(await seqs(4, 9)).toEqual([])
      expect(await seqs(0, 9, NOW + 2)).toEqual([3, 4])
      expect(await store.deliveries.read(ada.id + 1, 0, 9, 0)).toEqual([])
    })

    test('what is settled can still be read', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 2)
      await settleNow(store, ada, { settledSeq: 2 })

      expect(await readAll(store, ada)).toHaveLength(2)
    })

    test('many settlements are as good as one', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 5)
      const [, , third] = await readAll(store, ada)
      store.deliveries.settle(settlement(ada, { settledSeq: 1, echoesCursor: true }))
      store.deliveries.settle(settlement(ada, { settledSeq: 2, sentSeq: 5, failed: [{ fromSeq: 3, toSeq: 5 }] }))
      store.deliveries.settle(settlement(ada, { settledSeq: 1, sentSeq: 4, failed: [{ fromSeq: 3, toSeq: 4 }] }))
      await store.deliveries.flush()

      const position = await positionOf(store, ada)
      expect(position).toMatchObject({ lastSeq: 5, sentSeq: 4, settledSeq: 2 })
      expect(position?.pendingBytes).toBe((third?.bytes ?? 0) * 3)
      expect((await readAll(store, ada)).map(({ failures }) => failures)).toEqual([0, 0, 2, 2, 1])
      expect((await store.clients.load()).clients).toMatchObject([{ echoesCursor: true }])
    })

    test('a front never goes back, and no position passes the tail', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 3)
      await settleNow(store, ada, { settledSeq: 2, sentSeq: 3, echoesCursor: true })
      await settleNow(store, ada, { settledSeq: 1, sentSeq: 1 })
      expect(await positionOf(store, ada)).toMatchObject({ settledSeq: 2, sentSeq: 2 })

      await settleNow(store, ada, { settledSeq: 99, sentSeq: 99 })
      expect(await positionOf(store, ada)).toMatchObject({ settledSeq: 3, sentSeq: 3, pendingBytes: 0 })
      expect((await store.clients.load()).clients).toMatchObject([{ echoesCursor: true }])
    })

    test('a settlement for a client that has gone is nothing', async (store) => {
      const ada = await register(store, 'ada')
      await store.clients.remove(ada.id, NOW)

      await expect(settleNow(store, ada, { settledSeq: 3 })).resolves.toBeUndefined()
    })

    test('a record tells the queued, the sent, the acknowledged and what was only assumed', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 6)
      const at = NOW
      store.deliveries.settle(settlement(ada, { settledSeq: 1, acks: [{ fromSeq: 1, toSeq: 1, kind: 'assumed', at }] }))
      store.deliveries.settle(settlement(ada, { settledSeq: 2, acks: [{ fromSeq: 2, toSeq: 2, kind: 'assumed', at }] }))
      store.deliveries.settle(settlement(ada, { settledSeq: 3, acks: [{ fromSeq: 3, toSeq: 3, kind: 'used', at }] }))
      const acks = [{ fromSeq: 4, toSeq: 4, kind: 'cursor' as const, at }]
      await settleNow(store, ada, { settledSeq: 4, sentSeq: 5, acks })

      expect(await statesOf(store, ada)).toEqual(['acked_assumed', 'acked_assumed', 'acked', 'acked', 'sent', 'queued'])
    })

    test('a proof beats an assumption, whichever came first', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 6)
      const ack = (fromSeq: number, toSeq: number, kind: 'used' | 'assumed') => ({ fromSeq, toSeq, kind, at: NOW })
      const acks = [ack(1, 2, 'assumed'), ack(3, 4, 'assumed'), ack(5, 6, 'used')]
      await settleNow(store, ada, { settledSeq: 6, acks })
      await settleNow(store, ada, { settledSeq: 6, acks: [ack(3, 3, 'used'), ack(5, 6, 'assumed')] })
      expect(await statesOf(store, ada)).toEqual([
        'acked_assumed',
        'acked_assumed',
        'acked',
        'acked_assumed',
        'acked',
        'acked',
      ])

      await settleNow(store, ada, { settledSeq: 6, acks: [ack(1, 4, 'used')] })
      expect(new Set(await statesOf(store, ada))).toEqual(new Set(['acked']))
    })

    test('what is buried leaves the front of the queue for the dead letters', async (store) => {
      const ada = await register(store, 'ada')
      const entries = await queueMessages(store, ada, 4)
      const bytes = (await readAll(store, ada))[3]?.bytes

      const expired = await store.deliveries.bury(ada.id, 2, 'expired', NOW + 1)
      expect(expired).toMatchObject({ count: 2, sends: [], position: { settledSeq: 2, sentSeq: 2, lastSeq: 4 } })
      const dead = await store.deliveries.bury(ada.id, 3, 'undeliverable', NOW + 2)
      expect(dead).toMatchObject({ count: 1, position: { settledSeq: 3, pendingBytes: bytes } })
      expect(await store.deliveries.bury(ada.id, 3, 'undeliverable', NOW)).toMatchObject({ count: 0 })

      expect(await positionOf(store, ada)).toEqual(dead.position)
      expect((await readAll(store, ada)).map(({ seq }) => seq)).toEqual([4])
      expect(await statesOf(store, ada)).toEqual(['expired', 'expired', 'dead', 'queued'])
      const letters = await store.deadLetters.list({ limit: 9 })
      expect(letters.map(({ reason }) => reason)).toEqual(['undeliverable', 'expired', 'expired'])
      expect(letters[0]).toMatchObject({ clientName: 'ada', spec: entries[2]?.spec, createdAt: NOW + 2 })
      expect(await store.deliveries.bury(ada.id, 99, 'expired', NOW)).toMatchObject({
        count: 1,
        position: { settledSeq: 4 },
      })
      await expect(store.deliveries.bury(99, 1, 'expired', NOW)).rejects.toMatchObject({ code: 'not_found' })
    })

    test('the users of what is buried are told, once each', async (store) => {
      const ada = await register(store, 'ada')
      await ingest(store, ...['u1', 'U1', 'u2', 'u1'].map((userId) => entryFor([ada], { userId })))
      const notice = { kind: 'expired', onceMs: 10 * MINUTE_MS, text: '{client} did not come' }

      const { sends } = await store.deliveries.bury(ada.id, 3, 'expired', NOW, notice)
      expect(sends.map(({ userId }) => userId.toLowerCase()).sort()).toEqual(['u1', 'u2'])
      expect(sends[0]?.parts[0]?.body).toContain('ada did not come')
      expect((await store.deliveries.bury(ada.id, 4, 'expired', NOW + 1, notice)).sends).toEqual([])
    })

    test('a context token speaks of its client, message and user', async (store) => {
      const ada = await register(store, 'ada')
      const one = entryFor([ada], { userId: 'Alice' })
      const { entries } = await ingest(store, one)

      expect(await store.deliveries.resolveContext(one.deliveries[0]?.contextToken ?? '')).toEqual({
        clientId: ada.id,
        seq: 1,
        messageId: entries[0]?.messageId,
        account: ACCOUNT,
        userId: 'Alice',
        createdAt: NOW,
      })
      expect(await store.deliveries.resolveContext(freshToken())).toBeNull()
    })

    test('nothing lazy is lost when the store closes at once', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 1)
      store.deliveries.settle(settlement(ada, { settledSeq: 1 }))
      await store.close()

      await expect(register(store, 'late')).rejects.toMatchObject({ code: 'store_failed' })
      expect(() => store.deliveries.settle(settlement(ada, { settledSeq: 1 }))).not.toThrow()
    })
  })
}
