import { expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { temporaryFolder } from '../../test/support/processes.ts'
import { soon } from '../../test/support/soon.ts'
import { ACCOUNT, hear, startTestOutbound, USER } from '../../test/support/test-outbound.ts'
import { verifies } from '../../test/support/verifies.ts'
import { MAX_TEXT_CHARS } from './split-text.ts'
import type { HubStore } from './store/port.ts'
import { openSqliteStore } from './store/sqlite.ts'
import { UpstreamError } from './upstream/port.ts'

const TEN_MINUTES_MS = 10 * 60_000
const never = new Promise<never>(() => {})

/** A store on disk, and how to open it again as after a crash. */
async function diskStore(): Promise<{ store: HubStore; reopen(): Promise<HubStore> }> {
  const dir = temporaryFolder()
  let store = await openSqliteStore({ dir })
  onTestFinished(() => store.close())
  return {
    store,
    async reopen() {
      await store.close()
      store = await openSqliteStore({ dir })
      return store
    },
  }
}

verifies(['sends:repeat:client-id', 'sends:repeat:not-by-content'], async () => {
  const { send, calls } = await startTestOutbound()
  const first = await send('pong', { key: 'k1' })
  expect(await send('pong', { key: 'k1' })).toEqual(first)
  expect(calls).toHaveLength(1)
  const others = [await send('pong', { key: 'k2' }), await send('pong'), await send('pong')]
  expect(new Set([first, ...others].map(({ upstreamId }) => upstreamId)).size).toBe(4)
  expect(calls).toHaveLength(4)
})

verifies(['sends:repeat:per-client', 'sends:repeat:other-body'], async () => {
  const { send, texts } = await startTestOutbound()
  await send('pong', { key: 'k', clientId: 1 })
  await send('pong', { key: 'k', clientId: 2 })
  await send('ping', { key: 'k', clientId: 1 })
  await send('pong', { key: 'k', clientId: 1 })
  expect(texts()).toEqual(['pong', 'pong', 'ping'])
})

verifies('sends:repeat:window', async () => {
  const { send, calls, advance } = await startTestOutbound()
  await send('pong', { key: 'k' })
  advance(TEN_MINUTES_MS)
  await send('pong', { key: 'k' })
  expect(calls).toHaveLength(1)
  advance(1)
  await send('pong', { key: 'k' })
  expect(calls).toHaveLength(2)
})

verifies('sends:repeat:in-flight', async () => {
  const call = gate()
  const { send, calls } = await startTestOutbound({ answers: () => call.pass().then(() => ({ upstreamId: '7' })) })
  const all = [send('pong', { key: 'k' }), send('pong', { key: 'k' })]
  await call.reached
  all.push(send('pong', { key: 'k' }))
  const others = [send('pong', { key: 'k', clientId: 2 }), send('ping', { key: 'k' })]
  call.open()
  expect(await Promise.all(all)).toMatchObject([{ upstreamId: '7' }, { upstreamId: '7' }, { upstreamId: '7' }])
  await Promise.all(others)
  expect(calls).toHaveLength(3)
})

verifies('sends:repeat:in-flight', 'a repetition of a send under way that fails is told the same failure', async () => {
  const call = gate()
  const { send, calls } = await startTestOutbound({
    answers: () => call.pass().then(() => Promise.reject(new UpstreamError('refused', 'no', { upstreamCode: -3 }))),
  })
  const all = Promise.allSettled([send('pong', { key: 'k' }), send('pong', { key: 'k' })])
  await call.reached
  call.open()
  for (const one of await all) expect(one).toMatchObject({ reason: { code: 'upstream_refused' } })
  expect(calls).toHaveLength(1)
})

test('what failed for sure may be tried again under its key; what may have arrived may not', async () => {
  const { send, calls, answer } = await startTestOutbound({
    answers: () => Promise.reject(new UpstreamError('unreachable', 'refused')),
  })
  await expect(send('pong', { key: 'k' })).rejects.toMatchObject({ code: 'upstream_down' })
  answer(() => Promise.reject(new UpstreamError('unreachable', 'reset', { ambiguous: true })))
  await expect(send('pong', { key: 'k' })).rejects.toMatchObject({ details: { send_state: 'unknown' } })
  answer(() => ({ upstreamId: '1' }))
  await expect(send('pong', { key: 'k' })).rejects.toMatchObject({ details: { send_state: 'unknown' } })
  expect(calls).toHaveLength(2)
})

test('a message of which only a part went out is not sent again under its key', async () => {
  const { send, calls, answer } = await startTestOutbound({
    answers: (n) => (n === 1 ? { upstreamId: '1' } : Promise.reject(new UpstreamError('refused', 'no'))),
  })
  const text = 'x'.repeat(3 * MAX_TEXT_CHARS)
  await expect(send(text, { key: 'k' })).rejects.toMatchObject({ details: { accepted_parts: 1 } })
  answer(() => ({ upstreamId: '2' }))
  await expect(send(text, { key: 'k' })).rejects.toMatchObject({ details: { send_state: 'unknown' } })
  expect(calls).toHaveLength(2)
})

verifies('sends:repeat:durable', async () => {
  const { store, reopen } = await diskStore()
  const before = await startTestOutbound({ store })
  const first = await before.send('pong', { key: 'k' })
  const after = await startTestOutbound({ store: await reopen() })
  after.outbound.resume(await after.store.sends.recover(after.now()))
  expect(await after.send('pong', { key: 'k' })).toEqual(first)
  expect(after.calls).toEqual([])
})

verifies('sends:crash:unknown', async () => {
  const { store, reopen } = await diskStore()
  const before = await startTestOutbound({ store, answers: () => never })
  await hear(store, '1')
  void before.send('pong', { key: 'k' }).catch(() => undefined)
  void before.send('x'.repeat(2 * MAX_TEXT_CHARS), { userId: 'bob@im.wechat' }).catch(() => undefined)
  await soon(() => expect(before.calls).toHaveLength(2))

  const after = await startTestOutbound({ store: await reopen() })
  const open = await after.store.sends.recover(after.now())
  expect(open).toEqual([])
  after.outbound.resume(open)
  await expect(after.send('pong', { key: 'k' })).rejects.toMatchObject({
    code: 'upstream_down',
    details: { send_state: 'unknown' },
  })
  expect(after.calls).toEqual([])
  // It may have arrived, so it counts.
  expect((await after.store.conversations.get(ACCOUNT, USER))?.sendsUsed).toBe(1)
})

verifies('sends:slow:some-accepted', 'the rest of a message goes out after a crash, and only the rest', async () => {
  const { store, reopen } = await diskStore()
  const text = ['a', 'b', 'c'].map((letter) => letter.repeat(MAX_TEXT_CHARS)).join('')
  const before = await startTestOutbound({
    store,
    patienceMs: 300,
    answers: (n) => (n === 1 ? { upstreamId: '71' } : never),
  })
  expect(await before.send(text, { key: 'k' })).toMatchObject({ upstreamId: '71' })
  await soon(() => expect(before.calls).toHaveLength(2))

  const after = await startTestOutbound({ store: await reopen() })
  after.outbound.resume(await after.store.sends.recover(after.now()))
  // The second part was under way at the crash: it is unknown, and not sent twice.
  await soon(() => expect(after.outcomes).toEqual(['accepted']))
  expect(after.texts()).toEqual(['c'.repeat(MAX_TEXT_CHARS)])
  expect(await after.store.sends.recover(after.now())).toEqual([])
  expect(await after.send(text, { key: 'k' })).toMatchObject({ upstreamId: '71' })
  expect(after.calls).toHaveLength(1)
})

test('a crash before the answer, with a part accepted: the rest goes out and a repetition gets a yes', async () => {
  const { store, reopen } = await diskStore()
  const text = `${'a'.repeat(MAX_TEXT_CHARS)}b`
  const before = await startTestOutbound({ store, pacingMs: 60_000 })
  void before.send(text, { key: 'k' }).catch(() => undefined)
  // Accepted and stored, while the second part waits for its turn.
  await soon(() => expect(before.lane.size).toBe(1))

  const after = await startTestOutbound({ store: await reopen() })
  after.outbound.resume(await after.store.sends.recover(after.now()))
  await soon(() => expect(after.texts()).toEqual(['b']))
  await soon(async () =>
    expect(await after.send(text, { key: 'k' })).toMatchObject({ upstreamId: expect.stringMatching(/1$/) }),
  )
  expect(after.calls).toHaveLength(1)
})

test('at a stop what waits is refused, what has begun is a yes, and what is at the service ends', async () => {
  const { outbound, send, lane, calls } = await startTestOutbound({ pacingMs: 60_000 })
  const begun = send(`${'a'.repeat(MAX_TEXT_CHARS)}b`)
  await soon(() => expect([calls.length, lane.size]).toEqual([1, 1]))
  const waiting = send('waiting', { userId: 'bob@im.wechat' })
  await soon(() => expect(lane.size).toBe(2))
  outbound.stop()
  await expect(waiting).rejects.toMatchObject({ code: 'upstream_down', details: { send_state: 'failed' } })
  expect(await begun).toMatchObject({ upstreamId: expect.stringMatching(/1$/) })
  await expect(send('new')).rejects.toMatchObject({ code: 'upstream_down' })
  expect(calls).toHaveLength(1)

  const call = gate()
  const other = await startTestOutbound({ answers: () => call.pass().then(() => ({ upstreamId: '9' })) })
  const under = other.send('under way')
  await call.reached
  other.outbound.stop()
  call.open()
  expect(await under).toMatchObject({ upstreamId: '9' })
})

test("a notice of the hub's own waits for a service that is away, for ten minutes and no longer", async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const refused = () => Promise.reject(new UpstreamError('unreachable', 'refused'))
  const { store, outbound, calls, answer, advance, outcomes, now } = await startTestOutbound({ answers: refused })
  const notify = async () => {
    const { sends } = await store.messages.ingest({
      account: ACCOUNT,
      cursor: null,
      now: now(),
      bounds: { maxMessages: 1, maxBytes: 1, overflowNotice: { kind: 'o', onceMs: 0, text: 'o' } },
      entries: [
        {
          upstreamId: null,
          fingerprint: null,
          userId: USER,
          upstreamToken: null,
          spec: '{}',
          raw: '{}',
          state: 'command',
          reason: 'command:help',
          deliveries: [],
          notices: [{ kind: 'command:help', onceMs: 0, text: 'help' }],
        },
      ],
    })
    outbound.resume(sends)
  }
  await notify()
  await soon(() => expect(calls).toHaveLength(1))
  await vi.advanceTimersByTimeAsync(1_000)
  await soon(() => expect(calls).toHaveLength(2))
  answer(() => ({ upstreamId: '1' }))
  await vi.advanceTimersByTimeAsync(2_000)
  await soon(() => expect(outcomes).toEqual(['accepted']))

  answer(refused)
  await notify()
  await soon(() => expect(calls).toHaveLength(4))
  advance(TEN_MINUTES_MS)
  await vi.advanceTimersByTimeAsync(1_000)
  await soon(() => expect(outcomes).toEqual(['accepted', 'unreachable']))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(calls).toHaveLength(5)
  expect(await store.sends.recover(now())).toEqual([])
})
