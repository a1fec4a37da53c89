import { describe, expect } from 'vitest'
import {
  ACCOUNT,
  batch,
  DAY_MS,
  entry,
  entryFor,
  ingest,
  NOW,
  newSend,
  type OpenStore,
  positionOf,
  queueMessages,
  readAll,
  register,
  settleNow,
  storeTests,
} from './fixtures.contract.ts'

/** What {@link MessageStore} promises beside `ingest`. */
export function messagesContract(open: OpenStore): void {
  const test = storeTests(open)

  describe('messages', () => {
    test('they are listed newest first, by client, user, state, and before an id', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const { entries } = await ingest(
        store,
        entryFor([ada]),
        entryFor([ada, bob], { userId: 'Bert' }),
        entryFor([bob], { state: 'command', reason: 'list' }),
        entry({ userId: 'bert', fingerprint: null }),
      )
      const [first, second, third, fourth] = entries.map(({ messageId }) => messageId)
      const ids = async (filter: Partial<Parameters<typeof store.messages.list>[0]>) =>
        (await store.messages.list({ limit: 9, ...filter })).map(({ id }) => id)

      expect(await ids({})).toEqual([fourth, third, second, first])
      expect(await ids({ limit: 2 })).toEqual([fourth, third])
      expect(await ids({ before: third ?? 0 })).toEqual([second, first])
      expect(await ids({ clientId: ada.id })).toEqual([second, first])
      expect(await ids({ clientId: bob.id, limit: 1 })).toEqual([third])
      expect(await ids({ clientId: bob.id, before: third ?? 0 })).toEqual([second])
      expect(await ids({ userId: 'BERT' })).toEqual([fourth, second])
      expect(await ids({ state: 'routed' })).toEqual([fourth, second, first])
      expect(await ids({ state: 'command' })).toEqual([third])
      expect(await ids({ state: 'command', clientId: bob.id, userId: 'ALICE' })).toEqual([third])
      expect(await ids({ state: 'unrouted' })).toEqual([])
    })

    test('a user’s messages are found in every account, with those that were suppressed, page by page', async (store) => {
      const ada = await register(store, 'ada')
      const twice = entryFor([ada], { userId: 'Bert' })
      const first = await ingest(store, entryFor([ada], { userId: 'bert' }), twice, entryFor([ada]), twice)
      const second = await store.messages.ingest(batch([entry({ userId: 'BERT' })], { account: 'another' }))
      const third = await ingest(store, twice, entry({ userId: 'bert' }))
      const all = [...first.entries, ...second.entries, ...third.entries].map(({ messageId }) => messageId)
      const own = all.filter((_, index) => index !== 2).toReversed()
      const ids = async (filter: Partial<Parameters<typeof store.messages.list>[0]>) =>
        (await store.messages.list({ userId: 'bert', limit: 9, ...filter })).map(({ id }) => id)

      expect(await ids({})).toEqual(own)
      expect(await ids({ limit: 2 })).toEqual(own.slice(0, 2))
      expect(await ids({ limit: 2, before: own[1] ?? 0 })).toEqual(own.slice(2, 4))
      expect(await ids({ state: 'suppressed' })).toEqual([own[1], own[3]])
      expect(await ids({ clientId: ada.id })).toEqual(own.slice(4))
      expect(await store.conversations.get(ACCOUNT, 'bert')).toMatchObject({ userId: 'bert' })
    })

    test('a record says where the message went and why', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const one = entryFor([ada, bob], { reason: 'broadcast' })
      await ingest(store, one)

      expect(await store.messages.list({ limit: 1 })).toEqual([
        {
          id: expect.any(Number),
          account: ACCOUNT,
          upstreamId: one.upstreamId,
          userId: 'alice',
          receivedAt: NOW,
          state: 'routed',
          reason: 'broadcast',
          duplicateOf: null,
          spec: one.spec,
          deliveries: [
            { clientId: ada.id, clientName: 'ada', seq: 1, state: 'queued', failures: 0 },
            { clientId: bob.id, clientName: 'bob', seq: 1, state: 'queued', failures: 0 },
          ],
        },
      ])
    })

    test('a replayed message stands at the tail with its token and wire id, as new', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 3)
      const [old] = await readAll(store, ada)
      await settleNow(store, ada, { settledSeq: 2, failed: [{ fromSeq: 1, toSeq: 1 }] })
      const before = await positionOf(store, ada)

      const position = await store.messages.replay(old?.messageId ?? 0, ada.id, NOW + 9)

      const bytes = old?.bytes ?? 0
      expect(position).toEqual({ ...before, lastSeq: 4, pendingBytes: (before?.pendingBytes ?? 0) + bytes })
      const waiting = await store.deliveries.read(ada.id, 2, 9, 0)
      expect(waiting.map(({ seq }) => seq)).toEqual([3, 4])
      expect(waiting[1]).toEqual({ ...old, seq: 4, queuedAt: NOW + 9, failures: 0 })
      expect(await store.deliveries.resolveContext(old?.contextToken ?? '')).toMatchObject({
        seq: 4,
        createdAt: NOW + 9,
      })
      await settleNow(store, ada, { settledSeq: 4 })
      expect(await positionOf(store, ada)).toMatchObject({ settledSeq: 4, pendingBytes: 0 })
    })

    test('a message that still waits is not queued twice', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 2)
      await settleNow(store, ada, { settledSeq: 0, sentSeq: 1 })
      const [sent, waiting] = await readAll(store, ada)

      for (const one of [sent, waiting]) {
        expect(await store.messages.replay(one?.messageId ?? 0, ada.id, NOW)).toMatchObject({ lastSeq: 2 })
      }
      expect(await readAll(store, ada)).toHaveLength(2)
    })

    test('what became a dead letter is none once it is replayed', async (store) => {
      const ada = await register(store, 'ada')
      const { entries } = await ingest(store, entryFor([ada]))
      await store.deliveries.bury(ada.id, 1, 'undeliverable', NOW)

      expect(await store.messages.replay(entries[0]?.messageId ?? 0, ada.id, NOW)).toMatchObject({ lastSeq: 2 })
      expect(await store.deadLetters.count()).toBe(0)
      expect(await readAll(store, ada)).toMatchObject([{ seq: 2 }])
    })

    test('there is nothing to replay for a client that never had it, or has gone', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const { entries } = await ingest(store, entryFor([ada]))
      const id = entries[0]?.messageId ?? 0

      expect(await store.messages.replay(id, bob.id, NOW)).toBeNull()
      expect(await store.messages.replay(id + 1, ada.id, NOW)).toBeNull()
      await store.clients.remove(ada.id, NOW)
      expect(await store.messages.replay(id, ada.id, NOW)).toBeNull()
    })

    test('texts go after 7 days and ids after 30', async (store) => {
      const ada = await register(store, 'ada')
      const one = entryFor([ada])
      const { entries } = await ingest(store, one)
      const id = entries[0]?.messageId ?? 0
      await settleNow(store, ada, { settledSeq: 1, acks: [{ fromSeq: 1, toSeq: 1, kind: 'cursor', at: NOW }] })
      const sent = await store.sends.begin(newSend({ clientId: ada.id, key: 'k', text: 'a reply' }))
      await store.sends.progress({
        sendId: sent.id,
        parts: [{ part: 0, state: 'accepted', upstreamId: '77' }],
        now: NOW,
      })
      const author = () => store.sends.author(ACCOUNT, 'alice', { upstreamId: '77' }, NOW)

      expect(await store.messages.prune(NOW + 7 * DAY_MS)).toBe(0)
      expect(await readAll(store, ada)).toHaveLength(1)

      expect(await store.messages.prune(NOW + 7 * DAY_MS + 1)).toBe(2)
      expect(await readAll(store, ada)).toEqual([])
      expect(await store.messages.list({ limit: 9 })).toMatchObject([
        { id, spec: '', deliveries: [{ state: 'acked' }] },
      ])
      expect(await store.messages.replay(id, ada.id, NOW)).toBeNull()
      expect(await store.deliveries.resolveContext(one.deliveries[0]?.contextToken ?? '')).not.toBeNull()
      expect(await author()).toBe(ada.id)

      expect(await store.messages.prune(NOW + 30 * DAY_MS + 1)).toBe(2)
      expect(await store.messages.list({ limit: 9 })).toEqual([])
      expect(await store.deliveries.resolveContext(one.deliveries[0]?.contextToken ?? '')).toBeNull()
      expect(await author()).toBeNull()
      expect(await store.messages.prune(NOW + 30 * DAY_MS + 1)).toBe(0)
      expect(await positionOf(store, ada)).toMatchObject({ lastSeq: 1, settledSeq: 1, pendingBytes: 0 })
    })

    test('what waits and what is a young dead letter is not pruned, in however many steps', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await queueMessages(store, ada, 2)
      await queueMessages(store, bob, 1_200)
      await ingest(store, entry({ state: 'unrouted' }))
      await store.deliveries.bury(ada.id, 1, 'expired', NOW + 15 * DAY_MS)
      await settleNow(store, bob, { settledSeq: 1_199 })

      // 1,199 that were received, and the letter that nobody wanted for 40 days with its message.
      expect(await store.messages.prune(NOW + 40 * DAY_MS)).toBe(1_199 + 2)
      expect(await readAll(store, ada)).toHaveLength(1)
      expect(await readAll(store, bob)).toHaveLength(1)
      const letters = await store.deadLetters.list({ limit: 9 })
      expect(letters.map(({ spec }) => spec)).not.toContain('')
      expect(await store.deadLetters.replay(letters[0]?.id ?? 0, null, NOW, 'fresh')).not.toBeNull()
      expect(letters).toHaveLength(1)
      expect(await store.messages.prune(NOW + 40 * DAY_MS)).toBe(0)
    })

    test('a message that comes after everything was pruned gets an id of its own', async (store) => {
      const { entries } = await ingest(store, entry())
      await store.messages.prune(NOW + 40 * DAY_MS)
      const later = await store.messages.ingest(batch([entry()]))

      expect(later.entries[0]?.messageId).toBeGreaterThan(entries[0]?.messageId ?? 0)
    })
  })
}
