import { describe, expect } from 'vitest'
import {
  ACCOUNT,
  entryFor,
  ingest,
  NOW,
  type OpenStore,
  positionOf,
  queueMessages,
  register,
  settleNow,
  storeTests,
} from './fixtures.contract.ts'

/** What {@link ClientStore} promises. */
export function clientsContract(open: OpenStore): void {
  const test = storeTests(open)

  describe('clients', () => {
    test('a new client is loaded with its token and counts as seen when it was made', async (store) => {
      const made = await store.clients.create({
        name: 'Ada',
        label: 'The first',
        fallback: true,
        tokenHash: 'h',
        now: NOW,
      })

      expect(made).toEqual({
        id: made.id,
        name: 'Ada',
        label: 'The first',
        createdAt: NOW,
        lastSeen: NOW,
        stopped: false,
        isDefault: false,
        fallback: true,
        passthrough: [],
        echoesCursor: false,
        account: null,
      })
      expect(await store.clients.load()).toEqual({
        clients: [made],
        tokens: [{ hash: 'h', clientId: made.id, expiresAt: null }],
      })
      expect(await positionOf(store, made)).toEqual({
        clientId: made.id,
        lastSeq: 0,
        sentSeq: 0,
        settledSeq: 0,
        pendingBytes: 0,
      })
    })

    test('a name is taken in any case', async (store) => {
      await register(store, 'Grüße')

      await expect(register(store, 'GRÜSSE')).resolves.toMatchObject({ name: 'GRÜSSE' })
      await expect(register(store, 'GRÜßE')).rejects.toMatchObject({ name: 'AppError', code: 'name_taken' })
      expect((await store.clients.load()).tokens).toHaveLength(2)
    })

    test('an update changes what is given and nothing else', async (store) => {
      const made = await register(store, 'ada')
      const passthrough = ['help', 'list']

      expect(await store.clients.update(made.id, { passthrough })).toEqual({ ...made, passthrough })
      expect(await store.clients.update(made.id, { label: 'L', fallback: true })).toEqual({
        ...made,
        passthrough,
        label: 'L',
        fallback: true,
      })
      await expect(store.clients.update(made.id + 1, { label: 'x' })).rejects.toMatchObject({ code: 'not_found' })
    })

    test('at most one client is the default', async (store) => {
      const [first, second] = [await register(store, 'first'), await register(store, 'second')]
      const defaults = async () =>
        (await store.clients.load()).clients.filter(({ isDefault }) => isDefault).map(({ name }) => name)

      await store.clients.update(first.id, { isDefault: true })
      await store.clients.update(second.id, { isDefault: true })
      expect(await defaults()).toEqual(['second'])
      await store.clients.update(second.id, { isDefault: true })
      expect(await defaults()).toEqual(['second'])
      await store.clients.update(first.id, { isDefault: false })
      expect(await defaults()).toEqual(['second'])
      await store.clients.update(second.id, { isDefault: false })
      expect(await defaults()).toEqual([])
    })

    test('tokens are replaced as a whole', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const tokens = [
        { hash: 'new', clientId: ada.id, expiresAt: null },
        { hash: 'old', clientId: ada.id, expiresAt: NOW + 1 },
      ]
      await store.clients.setTokens(ada.id, tokens)

      const stored = (await store.clients.load()).tokens
      expect(stored).toHaveLength(3)
      expect(stored.filter(({ clientId }) => clientId === ada.id)).toEqual(expect.arrayContaining(tokens))
      expect(stored.some(({ clientId }) => clientId === bob.id)).toBe(true)
      await expect(store.clients.setTokens(99, [])).rejects.toMatchObject({ code: 'not_found' })
    })

    test('a removed client leaves its queue as dead letters and nothing else', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const first = entryFor([ada])
      const second = entryFor([ada, bob], { choose: ada.id })
      await ingest(store, first, second)
      await settleNow(store, ada, { settledSeq: 1 })

      expect(await store.clients.remove(ada.id, NOW + 5)).toBe(1)

      const { clients, tokens } = await store.clients.load()
      expect(clients.map(({ name }) => name)).toEqual(['bob'])
      expect(tokens.map(({ clientId }) => clientId)).toEqual([bob.id])
      expect(await store.deadLetters.list({ limit: 9 })).toMatchObject([
        { clientId: ada.id, clientName: 'ada', reason: 'client_removed', spec: second.spec, createdAt: NOW + 5 },
      ])
      expect(await store.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: null })
      expect(await store.conversations.hasSeen(ada.id, ACCOUNT, 'alice')).toBe(false)
      expect(await store.conversations.hasSeen(bob.id, ACCOUNT, 'alice')).toBe(true)
      expect(await store.deliveries.resolveContext(first.deliveries[0]?.contextToken ?? '')).toBeNull()
      expect((await store.deliveries.positions()).map(({ clientId }) => clientId)).toEqual([bob.id])
      const [newest] = await store.messages.list({ limit: 1 })
      expect(newest?.deliveries).toMatchObject([{ clientName: 'bob' }])
    })

    test('the id of a removed client is never used again, its name is free', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 3)
      await store.clients.remove(ada.id, NOW)
      const again = await register(store, 'Ada')

      expect(again.id).toBeGreaterThan(ada.id)
      expect(await positionOf(store, again)).toMatchObject({ lastSeq: 0, pendingBytes: 0 })
      expect(await store.clients.remove(ada.id, NOW)).toBe(0)
    })

    test('the newest word about when a client was seen counts, and its time never goes back', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      store.clients.touch([{ id: ada.id, lastSeen: NOW + 20, stopped: true }])
      store.clients.touch([
        { id: ada.id, lastSeen: NOW + 10, stopped: false },
        { id: bob.id, lastSeen: NOW + 30, stopped: true },
        { id: 99, lastSeen: NOW, stopped: false },
      ])
      await store.deliveries.flush()
      store.clients.touch([{ id: bob.id, lastSeen: NOW + 5, stopped: true }])
      await store.deliveries.flush()

      expect((await store.clients.load()).clients).toMatchObject([
        { name: 'ada', lastSeen: NOW + 20, stopped: false },
        { name: 'bob', lastSeen: NOW + 30, stopped: true },
      ])
    })
  })
}
