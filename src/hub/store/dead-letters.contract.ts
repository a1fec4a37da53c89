import { describe, expect } from 'vitest'
import {
  ACCOUNT,
  entry,
  entryFor,
  freshToken,
  ingest,
  NOW,
  type OpenStore,
  positionOf,
  queueMessages,
  readAll,
  register,
  statesOf,
  storeTests,
} from './fixtures.contract.ts'

/** What {@link DeadLetterStore} promises. */
export function deadLettersContract(open: OpenStore): void {
  const test = storeTests(open)

  describe('dead letters', () => {
    test('they are listed newest first, by client, reason, and before an id', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await queueMessages(store, ada, 2)
      await queueMessages(store, bob, 1)
      await store.deliveries.bury(ada.id, 1, 'expired', NOW)
      await store.deliveries.bury(ada.id, 2, 'undeliverable', NOW)
      await store.deliveries.bury(bob.id, 1, 'expired', NOW)
      const [third, second, first] = await store.deadLetters.list({ limit: 9 })

      expect(await store.deadLetters.list({ clientId: ada.id, limit: 9 })).toEqual([second, first])
      expect(await store.deadLetters.list({ reason: 'expired', limit: 9 })).toEqual([third, first])
      expect(await store.deadLetters.list({ before: third?.id ?? 0, limit: 1 })).toEqual([second])
      expect(await store.deadLetters.list({ clientId: bob.id, reason: 'overflow', limit: 9 })).toEqual([])
      expect(await store.deadLetters.count()).toBe(3)
    })

    test('one that goes back to its client keeps its context token and wire id', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 2)
      const [old] = await readAll(store, ada)
      await store.deliveries.bury(ada.id, 1, 'undeliverable', NOW)
      const [letter] = await store.deadLetters.list({ limit: 1 })

      const position = await store.deadLetters.replay(letter?.id ?? 0, null, NOW + 1, freshToken())

      expect(position).toMatchObject({ clientId: ada.id, lastSeq: 3, settledSeq: 1 })
      expect(await positionOf(store, ada)).toEqual(position)
      expect((await readAll(store, ada)).at(-1)).toEqual({ ...old, seq: 3, queuedAt: NOW + 1 })
      expect(await statesOf(store, ada)).toEqual(['queued', 'queued'])
      expect(await store.deadLetters.count()).toBe(0)
      expect(await store.deadLetters.replay(letter?.id ?? 0, null, NOW, freshToken())).toBeNull()
    })

    test('one that goes to another client gets the new context token', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const [one] = await queueMessages(store, ada, 1)
      await store.deliveries.bury(ada.id, 1, 'expired', NOW)
      const [letter] = await store.deadLetters.list({ limit: 1 })

      expect(await store.deadLetters.replay(letter?.id ?? 0, bob.id, NOW, 'fresh')).toMatchObject({ clientId: bob.id })
      const [moved] = await readAll(store, bob)
      expect(moved).toMatchObject({ seq: 1, contextToken: 'fresh', wireId: one?.upstreamId, raw: one?.raw })
      expect(moved?.bytes).toBe((await positionOf(store, bob))?.pendingBytes)
      expect(await store.deliveries.resolveContext('fresh')).toMatchObject({ clientId: bob.id, userId: 'alice' })
      expect(await store.conversations.hasSeen(bob.id, ACCOUNT, 'alice')).toBe(true)
      expect(await readAll(store, ada)).toEqual([])
    })

    test('one that goes to a client which had the message keeps that client’s token', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await ingest(store, entryFor([ada, bob]))
      await store.deliveries.bury(ada.id, 1, 'expired', NOW)
      const [letter] = await store.deadLetters.list({ limit: 1 })
      const before = await readAll(store, bob)

      expect(await store.deadLetters.replay(letter?.id ?? 0, bob.id, NOW, 'fresh')).toMatchObject({ lastSeq: 1 })
      expect(await readAll(store, bob)).toEqual(before)
    })

    test('one without a client to go to stays', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await ingest(store, entry({ state: 'unrouted' }), entryFor([ada]))
      await store.clients.remove(ada.id, NOW)
      const letters = await store.deadLetters.list({ limit: 9 })

      for (const { id } of letters) {
        await expect(store.deadLetters.replay(id, null, NOW, freshToken())).rejects.toMatchObject({
          code: 'client_gone',
        })
        await expect(store.deadLetters.replay(id, ada.id, NOW, freshToken())).rejects.toMatchObject({
          code: 'client_gone',
        })
      }
      expect(await store.deadLetters.count()).toBe(2)
      for (const { id } of letters) await store.deadLetters.replay(id, bob.id, NOW, freshToken())
      expect(await readAll(store, bob)).toHaveLength(2)
    })

    test('one is discarded once', async (store) => {
      await ingest(store, entry({ state: 'unrouted' }))
      const [letter] = await store.deadLetters.list({ limit: 1 })

      expect(await store.deadLetters.discard(letter?.id ?? 0, NOW)).toBe(true)
      expect(await store.deadLetters.discard(letter?.id ?? 0, NOW)).toBe(false)
      expect(await store.deadLetters.count()).toBe(0)
    })
  })
}
