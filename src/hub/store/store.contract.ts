import { describe, expect, test } from 'vitest'
import { clientsContract } from './clients.contract.ts'
import { deadLettersContract } from './dead-letters.contract.ts'
import { deliveriesContract } from './deliveries.contract.ts'
import {
  ACCOUNT,
  batch,
  entryFor,
  NOW,
  newSend,
  type OpenStore,
  positionOf,
  readAll,
  register,
  settlement,
  storeTests,
} from './fixtures.contract.ts'
import { ingestContract } from './ingest.contract.ts'
import { messagesContract } from './messages.contract.ts'
import { sendsContract } from './sends.contract.ts'

/** Everything that {@link HubStore} promises; the test of an adapter is one call of this. */
export function hubStoreContract(name: string, open: OpenStore): void {
  describe(`the hub's store: ${name}`, () => {
    clientsContract(open)
    ingestContract(open)
    messagesContract(open)
    deliveriesContract(open)
    deadLettersContract(open)
    sendsContract(open)

    storeTests(open)('it has a random id of its own, and closes twice without harm', async (store) => {
      const other = (await open()).store
      expect(store.hubId).toMatch(/^[0-9a-f]{8}$/)
      expect(other.hubId).not.toBe(store.hubId)
      await Promise.all([other.close(), other.close()])
    })

    test('where it keeps anything, it keeps everything', async () => {
      const { store, reopen } = await open()
      if (reopen === undefined) return store.close()
      const ada = await register(store, 'ada')
      const one = entryFor([ada], { choose: ada.id })
      await store.messages.ingest(batch([one, entryFor([ada])], { cursor: { source: 's', value: 'c' } }))
      await store.sends.begin(newSend({ clientId: ada.id, key: 'k' }))
      store.clients.touch([{ id: ada.id, lastSeen: NOW + 7, stopped: true }])
      store.deliveries.settle(settlement(ada, { settledSeq: 1, sentSeq: 2, echoesCursor: true }))

      const again = await reopen()

      expect(again.hubId).toBe(store.hubId)
      const { clients, tokens } = await again.clients.load()
      expect(clients).toEqual([{ ...ada, lastSeen: NOW + 7, stopped: true, echoesCursor: true }])
      expect(tokens).toHaveLength(1)
      expect(await positionOf(again, ada)).toMatchObject({ lastSeq: 2, sentSeq: 2, settledSeq: 1 })
      expect(await readAll(again, ada)).toHaveLength(2)
      expect(await again.messages.cursor(ACCOUNT, 's')).toBe('c')
      expect(await again.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: ada.id })
      expect((await again.messages.ingest(batch([one]))).entries).toMatchObject([{ state: 'suppressed' }])
      expect(await again.sends.recover(NOW)).toEqual([])
      expect(await again.sends.find(ada.id, 'k', 'hash', 0)).toMatchObject({ state: 'unknown' })
      await again.close()
    })
  })
}
