import { describe, expect } from 'vitest'
import { freshDeliveries } from '../fresh.ts'
import {
  ACCOUNT,
  batch,
  DAY_MS,
  entry,
  entryFor,
  ingest,
  MINUTE_MS,
  NOW,
  type OpenStore,
  positionOf,
  queueMessages,
  readAll,
  register,
  storeTests,
} from './fixtures.contract.ts'

/** What {@link MessageStore.ingest} promises. */
export function ingestContract(open: OpenStore): void {
  const test = storeTests(open)

  describe('ingest', () => {
    test('a batch is kept with its texts to the letter, in the queues of the clients it is for', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const one = entryFor([ada], { spec: '{"content":"ä\\u0000😀"}', raw: '{"id": 9223372036854775807}' })
      const both = entryFor([ada, bob])
      const result = await ingest(store, one, both)

      const bytes = (of: { raw: string }) => Buffer.byteLength(of.raw)
      expect(result.entries.map(({ state, duplicateOf }) => [state, duplicateOf])).toEqual([
        ['routed', null],
        ['routed', null],
      ])
      expect(result).toMatchObject({ died: [], sends: [] })
      expect(result.positions).toEqual([
        { clientId: ada.id, lastSeq: 2, sentSeq: 0, settledSeq: 0, pendingBytes: bytes(one) + bytes(both) },
        { clientId: bob.id, lastSeq: 1, sentSeq: 0, settledSeq: 0, pendingBytes: bytes(both) },
      ])
      expect(await store.deliveries.positions()).toEqual(result.positions)
      expect((await readAll(store, ada))[0]).toEqual({
        seq: 1,
        messageId: result.entries[0]?.messageId,
        contextToken: one.deliveries[0]?.contextToken,
        failures: 0,
        queuedAt: NOW,
        bytes: bytes(one),
        wireId: one.upstreamId,
        spec: one.spec,
        raw: one.raw,
      })
      expect((await readAll(store, bob)).map(({ spec }) => spec)).toEqual([both.spec])
    })

    test('what it says it has queued is what is read, to the letter', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      await queueMessages(store, ada, 2)
      const repeated = entryFor([ada])
      const entries = [entryFor([ada, bob]), repeated, repeated, entryFor([ada], { upstreamId: null }), entryFor([bob])]
      const kept = batch(entries)
      const fresh = freshDeliveries(kept, await store.messages.ingest(kept))
      expect([...fresh.keys()]).toEqual([ada.id, bob.id])
      expect(fresh.get(ada.id)).toEqual((await readAll(store, ada)).slice(2))
      expect(fresh.get(bob.id)).toEqual(await readAll(store, bob))
    })

    test('the cursor is kept per source', async (store) => {
      await store.messages.ingest(batch([], { cursor: { source: 'a', value: '1' } }))
      await store.messages.ingest(batch([], { cursor: { source: 'b', value: '9' } }))
      await store.messages.ingest(batch([], { cursor: { source: 'a', value: '2' } }))
      await store.messages.ingest(batch([entry()], { cursor: null }))

      expect(await store.messages.cursor(ACCOUNT, 'a')).toBe('2')
      expect(await store.messages.cursor(ACCOUNT, 'b')).toBe('9')
      expect(await store.messages.cursor(ACCOUNT, 'c')).toBe('')
      expect(await store.messages.cursor('other', 'a')).toBe('')
    })

    for (const same of ['upstreamId', 'fingerprint'] as const) {
      test(`a message with a known ${same} is suppressed, and nothing else of its entry happens`, async (store) => {
        const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
        const original = entryFor([ada], { choose: ada.id })
        const [kept] = (await ingest(store, original)).entries
        const before = await store.conversations.get(ACCOUNT, 'alice')

        const repetition = entryFor([bob], {
          [same]: original[same],
          userId: 'ALICE',
          state: 'command',
          choose: bob.id,
          notices: [{ kind: 'help', onceMs: 0, text: 'help' }],
        })
        const result = await store.messages.ingest(batch([repetition], { now: NOW + 29 * DAY_MS }))

        expect(result).toMatchObject({ positions: [], died: [], sends: [] })
        expect(result.entries).toMatchObject([{ state: 'suppressed', duplicateOf: kept?.messageId }])
        expect(await positionOf(store, bob)).toMatchObject({ lastSeq: 0 })
        expect(await store.conversations.get(ACCOUNT, 'alice')).toEqual(before)
        expect(await store.messages.list({ state: 'suppressed', limit: 9 })).toMatchObject([
          { id: result.entries[0]?.messageId, duplicateOf: kept?.messageId, deliveries: [] },
        ])
      })
    }

    test('a repetition is found within its own batch, and found again', async (store) => {
      const ada = await register(store, 'ada')
      const one = entryFor([ada])
      const again = () => entryFor([ada], { upstreamId: one.upstreamId })
      const { entries } = await ingest(store, one, again(), entryFor([ada]), again())

      const first = entries[0]?.messageId
      expect(entries.map(({ state }) => state)).toEqual(['routed', 'suppressed', 'routed', 'suppressed'])
      expect(entries.map(({ duplicateOf }) => duplicateOf)).toEqual([null, first, null, first])
      expect(await positionOf(store, ada)).toMatchObject({ lastSeq: 2 })
    })

    test('a suppressed unrouted message is no dead letter', async (store) => {
      const one = entry({ state: 'unrouted' })
      await ingest(store, one, { ...one })

      expect(await store.deadLetters.count()).toBe(1)
    })

    test('the same id is new in another account, and where there is neither id nor fingerprint', async (store) => {
      const one = entry()
      await ingest(store, one)
      const other = await store.messages.ingest(batch([one], { account: 'other' }))
      const nameless = () => entry({ upstreamId: null, fingerprint: null })
      const { entries } = await ingest(store, nameless(), nameless())

      expect([...other.entries, ...entries].map(({ state }) => state)).toEqual(['routed', 'routed', 'routed'])
    })

    test('an id is forgotten after 30 days, also when nothing was pruned', async (store) => {
      const one = entry()
      await ingest(store, one)
      const later = await store.messages.ingest(batch([one], { now: NOW + 31 * DAY_MS }))
      const again = await store.messages.ingest(batch([one], { now: NOW + 32 * DAY_MS }))

      expect(later.entries).toMatchObject([{ state: 'routed', duplicateOf: null }])
      expect(again.entries).toMatchObject([{ state: 'suppressed', duplicateOf: later.entries[0]?.messageId }])
    })

    test('an unrouted message becomes a dead letter without a client', async (store) => {
      const one = entry({ state: 'unrouted', reason: 'nobody' })
      const { entries, died } = await ingest(store, one)

      expect(died).toEqual([])
      expect(await store.deadLetters.list({ limit: 9 })).toMatchObject([
        { clientId: null, clientName: null, messageId: entries[0]?.messageId, reason: 'no_client', spec: one.spec },
      ])
    })

    test('a delivery to a client that has gone becomes a dead letter, the others go on', async (store) => {
      const [gone, ada] = [await register(store, 'gone'), await register(store, 'ada')]
      await store.clients.remove(gone.id, NOW)
      const result = await ingest(store, entryFor([gone, ada], { choose: gone.id }), entryFor([gone]))

      expect(result.died).toEqual([{ clientId: gone.id, reason: 'client_removed', count: 2 }])
      expect(result.positions).toMatchObject([{ clientId: ada.id, lastSeq: 1 }])
      expect(await store.deadLetters.list({ clientId: gone.id, limit: 9 })).toHaveLength(2)
      expect(await store.conversations.get(ACCOUNT, 'alice')).toMatchObject({ chosenClientId: null })
    })

    test('an entry that cannot be kept leaves nothing of its batch', async (store) => {
      const ada = await register(store, 'ada')
      const [taken] = await queueMessages(store, ada, 1)
      const bad = entry({ deliveries: taken?.deliveries ?? [] })
      const broken = batch([entryFor([ada]), bad], { cursor: { source: 's', value: 'lost' } })

      await expect(store.messages.ingest(broken)).rejects.toMatchObject({ name: 'AppError', code: 'store_failed' })
      expect(await positionOf(store, ada)).toMatchObject({ lastSeq: 1 })
      expect(await store.messages.list({ limit: 9 })).toHaveLength(1)
      expect(await store.messages.cursor(ACCOUNT, 's')).toBe('')

      await ingest(store, entryFor([ada]))
      expect((await readAll(store, ada)).map(({ seq }) => seq)).toEqual([1, 2])
    })

    test('a wire id is the upstream’s digits as long as they grow, else the last one plus one', async (store) => {
      const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
      const ids = [
        '7497484083968569736',
        null,
        'not-digits',
        '5',
        '007',
        '7497484083968569999',
        '18446744073709551615',
        null,
      ]
      await ingest(store, ...ids.map((upstreamId) => entryFor([ada], { upstreamId })))
      await ingest(store, entryFor([bob], { upstreamId: null }), entryFor([ada], { upstreamId: null }))

      const wireIds = async (client: { id: number }) => (await readAll(store, client)).map(({ wireId }) => wireId)
      expect(await wireIds(ada)).toEqual([
        '7497484083968569736',
        '7497484083968569737',
        '7497484083968569738',
        '7497484083968569739',
        '7497484083968569740',
        '7497484083968569999',
        '18446744073709551615',
        '7497484083968570000',
        '7497484083968570001',
      ])
      expect(await wireIds(bob)).toEqual([String(NOW * 1000)])
    })

    test('a notice is told once in its time, per conversation and kind, and always when that time is 0', async (store) => {
      const notice = { kind: 'offline', onceMs: 10 * MINUTE_MS, text: 'Ada is away' }
      const told = async (now: number, overrides: Parameters<typeof entry>[0] = {}) =>
        (await store.messages.ingest(batch([entry({ notices: [notice], ...overrides })], { now }))).sends

      const [send] = await told(NOW)
      expect(send).toMatchObject({ clientId: null, account: ACCOUNT, userId: 'alice', createdAt: NOW })
      expect(send?.parts).toMatchObject([{ part: 0, state: 'queued', upstreamId: null }])
      expect(JSON.parse(send?.parts[0]?.body ?? '')).toEqual({
        item_list: [{ type: 1, text_item: { text: 'Ada is away' } }],
        message_type: 2,
        message_state: 2,
        client_id: expect.stringMatching(/^hub-[0-9a-f]+$/),
      })
      expect(await told(NOW + 10 * MINUTE_MS - 1, { userId: 'Alice' })).toEqual([])
      expect(await told(NOW + 1, { userId: 'bob' })).toHaveLength(1)
      expect(await told(NOW + 1, { notices: [{ ...notice, kind: 'other' }] })).toHaveLength(1)
      expect(await told(NOW + 10 * MINUTE_MS)).toHaveLength(1)
      const always = { ...notice, onceMs: 0 }
      expect(await told(NOW + 10 * MINUTE_MS, { notices: [always, always] })).toHaveLength(2)
    })

    test('past its count a queue loses its oldest messages, and their users are told once', async (store) => {
      const ada = await register(store, 'ada')
      const overflowNotice = { kind: 'overflow', onceMs: 10 * MINUTE_MS, text: '{client} is behind ({client})' }
      const bounds = { maxMessages: 2, maxBytes: 1_000_000, overflowNotice }
      const keep = (userIds: string[], now: number) =>
        store.messages.ingest(
          batch(
            userIds.map((userId) => entryFor([ada], { userId })),
            { bounds, now },
          ),
        )

      expect(await keep(['u1', 'u2'], NOW)).toMatchObject({ died: [], sends: [] })
      const full = await keep(['u3', 'u1'], NOW)
      expect(full.died).toEqual([{ clientId: ada.id, reason: 'overflow', count: 2 }])
      expect(full.positions).toMatchObject([{ lastSeq: 4, sentSeq: 2, settledSeq: 2 }])
      expect(full.sends.map(({ userId }) => userId).sort()).toEqual(['u1', 'u2'])
      expect(full.sends[0]?.parts[0]?.body).toContain('"ada is behind (ada)"')
      expect((await keep(['u4', 'u5'], NOW + 1)).sends.map(({ userId }) => userId)).toEqual(['u3'])

      expect((await readAll(store, ada)).map(({ seq }) => seq)).toEqual([5, 6])
      expect(await store.deadLetters.list({ reason: 'overflow', limit: 9 })).toHaveLength(4)
    })

    test('past its bytes a queue loses no more than it must', async (store) => {
      const ada = await register(store, 'ada')
      const bounds = { ...batch([]).bounds, maxBytes: 1_000 }
      const weighing = (bytes: number) => entryFor([ada], { spec: 's', raw: 'r'.repeat(bytes) })
      const keep = (...sizes: number[]) => store.messages.ingest(batch(sizes.map(weighing), { bounds }))

      expect(await keep(400, 300, 300)).toMatchObject({ died: [], positions: [{ pendingBytes: 1_000 }] })
      expect(await keep(500)).toMatchObject({ died: [{ count: 2 }], positions: [{ settledSeq: 2, pendingBytes: 800 }] })
      expect(await keep(1_000)).toMatchObject({
        died: [{ count: 2 }],
        positions: [{ settledSeq: 4, pendingBytes: 1_000 }],
      })
    })

    test('a user is one in any case, with the newest upstream token and spelling', async (store) => {
      await ingest(store, entry({ userId: 'Alice@Im', upstreamToken: 'one' }))
      const two = entry({ userId: 'alice@im', upstreamToken: 'two' })
      const silent = entry({ userId: 'ALICE@im', upstreamToken: null })
      await store.messages.ingest(batch([two, silent], { now: NOW + 1 }))
      await store.messages.ingest(batch([entry({ userId: 'ALICE@im', upstreamToken: null })], { now: NOW + 2 }))

      expect(await store.conversations.get(ACCOUNT, 'aLICE@IM')).toEqual({
        account: ACCOUNT,
        userId: 'ALICE@im',
        upstreamToken: 'two',
        upstreamTokenAt: NOW + 1,
        lastInboundAt: NOW + 2,
        sendsUsed: 0,
        chosenClientId: null,
      })
      expect(await store.conversations.get('other', 'alice@im')).toBeNull()
    })

    test('what was quarantined is kept and makes no conversation of its own', async (store) => {
      await ingest(store, entry({ userId: '', state: 'quarantined', reason: 'malformed' }))

      expect(await store.messages.list({ state: 'quarantined', limit: 9 })).toMatchObject([{ reason: 'malformed' }])
      expect(await store.conversations.get(ACCOUNT, '')).toBeNull()
    })
  })
}
