import { describe, expect } from 'vitest'
import type { NewSend, SendState } from '../model.ts'
import {
  ACCOUNT,
  batch,
  DAY_MS,
  entry,
  entryFor,
  ingest,
  MINUTE_MS,
  NOW,
  newSend,
  type OpenStore,
  queueMessages,
  register,
  storeTests,
} from './fixtures.contract.ts'
import type { HubStore } from './port.ts'

/** What {@link SendStore} and {@link ConversationStore} promise. */
export function sendsContract(open: OpenStore): void {
  const test = storeTests(open)

  describe('conversations', () => {
    test('a client is chosen, changed and forgotten, also by a user who never wrote', async (store) => {
      const ada = await register(store, 'ada')
      await store.conversations.choose(ACCOUNT, 'Alice', ada.id)
      expect(await store.conversations.get(ACCOUNT, 'alice')).toEqual({
        account: ACCOUNT,
        userId: 'Alice',
        upstreamToken: null,
        upstreamTokenAt: null,
        lastInboundAt: null,
        sendsUsed: 0,
        chosenClientId: ada.id,
      })
      await ingest(store, entry())
      expect(await store.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: ada.id })
      await ingest(store, entry({ choose: null }))
      expect(await store.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: null })
      await store.conversations.choose(ACCOUNT, 'ALICE', 99)
      expect(await store.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: null })
    })

    test('the last choice in a batch counts', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await ingest(store, entry({ choose: ada.id }), entry({ choose: bob.id }), entry())

      expect(await store.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: bob.id })
    })

    test('a client has seen whose messages stood in its queue, and nobody else', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await ingest(store, entryFor([ada], { userId: 'Alice' }))

      expect(await store.conversations.hasSeen(ada.id, ACCOUNT, 'aLICE')).toBe(true)
      expect(await store.conversations.hasSeen(bob.id, ACCOUNT, 'alice')).toBe(false)
      expect(await store.conversations.hasSeen(ada.id, 'other', 'alice')).toBe(false)
      expect(await store.conversations.hasSeen(ada.id, ACCOUNT, 'carol')).toBe(false)
    })
  })

  describe('sends', () => {
    test('a send begins with its first part under way', async (store) => {
      const ada = await register(store, 'ada')
      const send = await store.sends.begin(newSend({ clientId: ada.id, parts: ['a', 'b'] }))

      expect(send).toEqual({
        id: send.id,
        clientId: ada.id,
        account: ACCOUNT,
        userId: 'alice',
        createdAt: NOW,
        parts: [
          { part: 0, body: 'a', state: 'sending', upstreamId: null },
          { part: 1, body: 'b', state: 'queued', upstreamId: null },
        ],
      })
    })

    test('the newest send under a key and body is found, with its answer', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const begin = (overrides: Partial<NewSend>) =>
        store.sends.begin(newSend({ clientId: ada.id, key: 'k', bodyHash: 'h', ...overrides }))
      await begin({ now: NOW })
      const newest = await begin({ now: NOW + 5 })
      await begin({ now: NOW + 9, bodyHash: 'other' })
      await begin({ now: NOW + 9, key: null })
      expect(await store.sends.find(ada.id, 'k', 'h', NOW)).toEqual({
        id: newest.id,
        state: 'sending',
        answer: null,
        createdAt: NOW + 5,
      })

      await store.sends.progress({ sendId: newest.id, parts: [], state: 'accepted', answer: '{"ret":0}', now: NOW })
      expect(await store.sends.find(ada.id, 'k', 'h', NOW)).toMatchObject({ state: 'accepted', answer: '{"ret":0}' })
      await store.sends.progress({ sendId: newest.id, parts: [{ part: 0, state: 'accepted' }], now: NOW })
      expect(await store.sends.find(ada.id, 'k', 'h', NOW)).toMatchObject({ state: 'accepted', answer: '{"ret":0}' })
      expect(await store.sends.find(ada.id, 'k', 'h', NOW + 6)).toBeNull()
      expect(await store.sends.find(bob.id, 'k', 'h', 0)).toBeNull()
    })

    test('each part that the upstream may have taken is counted once, until a new message comes', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 1)
      const used = async () => (await store.conversations.get(ACCOUNT, 'alice'))?.sendsUsed
      const { id } = await store.sends.begin(newSend({ clientId: ada.id, userId: 'ALICE', parts: ['a', 'b', 'c'] }))
      const report = (...states: SendState[]) =>
        store.sends.progress({ sendId: id, parts: states.map((state, part) => ({ part, state })), now: NOW })

      await report('accepted', 'sending')
      expect(await used()).toBe(1)
      await report('accepted', 'unconfirmed', 'failed')
      expect(await used()).toBe(2)
      await report('accepted', 'accepted', 'unknown')
      expect(await used()).toBe(3)
      await ingest(store, entry({ upstreamToken: null }))
      expect(await used()).toBe(3)
      await ingest(store, entry())
      expect(await used()).toBe(0)
    })

    test('progress of a send or part that is not there fails and changes nothing', async (store) => {
      const ada = await register(store, 'ada')
      const { id } = await store.sends.begin(newSend({ clientId: ada.id, key: 'k' }))
      const parts = [
        { part: 0, state: 'accepted' as const },
        { part: 7, state: 'accepted' as const },
      ]
      await expect(store.sends.progress({ sendId: id, parts, state: 'accepted', now: NOW })).rejects.toMatchObject({
        code: 'not_found',
      })
      await expect(store.sends.progress({ sendId: id + 1, parts: [], now: NOW })).rejects.toMatchObject({
        code: 'not_found',
      })
      expect(await store.sends.find(ada.id, 'k', 'hash', 0)).toMatchObject({ state: 'sending' })
    })

    test('the author of a quote is found by the upstream’s id, else by its exact text within a day', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await say(store, { clientId: ada.id, text: 'same', now: NOW }, '111')
      await say(store, { clientId: bob.id, text: 'same', now: NOW + 1 }, '222')
      await say(store, { clientId: ada.id, text: 'failed', now: NOW }, null, 'failed')
      await say(store, { clientId: null, text: '', now: NOW }, '333')
      const author = (quote: { upstreamId?: string; text?: string }, now = NOW, userId = 'Alice') =>
        store.sends.author(ACCOUNT, userId, quote, now)

      expect(await author({ upstreamId: '111', text: 'same' })).toBe(ada.id)
      expect(await author({ upstreamId: '222' })).toBe(bob.id)
      expect(await author({ upstreamId: '999', text: 'same' })).toBe(bob.id)
      expect(await author({ upstreamId: '333', text: 'same' })).toBeNull()
      expect(await author({ text: 'Same' })).toBeNull()
      expect(await author({ text: 'failed' })).toBeNull()
      expect(await author({ text: 'same' }, NOW, 'carol')).toBeNull()
      expect(await author({ upstreamId: '111' }, NOW, 'carol')).toBeNull()
      expect(await author({ text: 'same' }, NOW + DAY_MS + 2)).toBeNull()
      expect(await author({ upstreamId: '111' }, NOW + DAY_MS + 2)).toBe(ada.id)
      expect(await author({})).toBeNull()
      await store.clients.remove(bob.id, NOW)
      expect(await author({ upstreamId: '222' })).toBeNull()
      expect(await author({ text: 'same' })).toBe(ada.id)
    })

    test('after a crash what was in flight is unknown, and only the rest of what had begun goes on', async (store) => {
      const ada = await register(store, 'ada')
      await queueMessages(store, ada, 1)
      const begin = (key: string) => store.sends.begin(newSend({ clientId: ada.id, key, parts: ['a', 'b', 'c'] }))
      const [lost, begun, ending] = [await begin('lost'), await begin('begun'), await begin('ending')]
      const accepted = { state: 'accepted' as const, upstreamId: '5' }
      const sending = { part: 1, state: 'sending' as const }
      await store.sends.progress({ sendId: begun.id, parts: [{ part: 0, ...accepted }, sending], now: NOW })
      const all = [
        { part: 0, ...accepted },
        { part: 1, state: 'unconfirmed' as const },
        { ...sending, part: 2 },
      ]
      await store.sends.progress({ sendId: ending.id, parts: all, now: NOW })
      const used = (await store.conversations.get(ACCOUNT, 'alice'))?.sendsUsed ?? 0

      const open = await store.sends.recover(NOW)

      expect(open.map(({ id }) => id)).toEqual([begun.id])
      expect(open[0]?.parts).toEqual([
        { part: 0, body: 'a', state: 'accepted', upstreamId: '5' },
        { part: 1, body: 'b', state: 'unknown', upstreamId: null },
        { part: 2, body: 'c', state: 'queued', upstreamId: null },
      ])
      const state = async (key: string) => (await store.sends.find(ada.id, key, 'hash', 0))?.state
      expect(await state('lost')).toBe('unknown')
      expect(await state('ending')).toBe('unknown')
      expect((await store.conversations.get(ACCOUNT, 'alice'))?.sendsUsed).toBe(used + 3)
      expect(await store.sends.recover(NOW)).toEqual(open)
      expect(lost.id).toBeLessThan(begun.id)
    })

    test('an answer that was given stands after a crash', async (store) => {
      const ada = await register(store, 'ada')
      const { id } = await store.sends.begin(newSend({ clientId: ada.id, key: 'k', parts: ['a', 'b'] }))
      const parts = [
        { part: 0, state: 'accepted' as const },
        { part: 1, state: 'sending' as const },
      ]
      await store.sends.progress({ sendId: id, parts, state: 'accepted', answer: '{}', now: NOW })

      expect(await store.sends.recover(NOW)).toEqual([])
      expect(await store.sends.find(ada.id, 'k', 'hash', 0)).toMatchObject({ state: 'accepted', answer: '{}' })
    })

    test('a notice that nobody has begun to send goes on for 10 minutes after a crash', async (store) => {
      const tell = async (now: number) => {
        const notices = [{ kind: 'help', onceMs: 0, text: 'help' }]
        const { sends } = await store.messages.ingest(batch([entry({ notices })], { now }))
        return sends[0]
      }
      const [old, inFlight, young] = [await tell(NOW), await tell(NOW + 1), await tell(NOW + 1)]
      await store.sends.progress({ sendId: inFlight?.id ?? 0, parts: [{ part: 0, state: 'sending' }], now: NOW })

      expect(await store.sends.recover(NOW + 10 * MINUTE_MS)).toEqual([young])
      expect(await store.sends.recover(NOW)).toEqual([young])
      expect(old?.parts).toMatchObject([{ state: 'queued' }])
    })
  })
}

async function say(
  store: HubStore,
  send: Partial<NewSend>,
  upstreamId: string | null,
  state: SendState = 'accepted',
): Promise<void> {
  const { id } = await store.sends.begin(newSend(send))
  await store.sends.progress({ sendId: id, parts: [{ part: 0, state, upstreamId }], state, now: NOW })
}
