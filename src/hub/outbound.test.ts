import { expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { soon } from '../../test/support/soon.ts'
import { ACCOUNT, hear, startTestOutbound, USER } from '../../test/support/test-outbound.ts'
import { verifies } from '../../test/support/verifies.ts'
import { AppError } from '../kit/errors.ts'
import { MAX_TEXT_CHARS } from './split-text.ts'
import { openMemoryStore } from './store/memory.ts'
import { UpstreamError, type UpstreamFailure } from './upstream/port.ts'

function failure(kind: UpstreamFailure, more: { upstreamCode?: number; ambiguous?: boolean } = {}) {
  return new UpstreamError(kind, 'as told', more)
}

/** What a promise was rejected with. */
async function refusal(promise: Promise<unknown>): Promise<AppError> {
  const error = await promise.then(
    () => 'it resolved',
    (reason: unknown) => reason,
  )
  if (!(error instanceof AppError)) throw new Error(`no AppError: ${String(error)}`)
  return error
}

verifies('sends:answer:only-accepted', 'nothing is answered before the service has accepted', async () => {
  const call = gate()
  const { send, outcomes } = await startTestOutbound({ answers: () => call.pass().then(() => ({ upstreamId: '12' })) })
  let answered = false
  const sending = send('hello').finally(() => {
    answered = true
  })
  await call.reached
  expect([answered, outcomes]).toEqual([false, []])
  call.open()
  expect(await sending).toMatchObject({ upstreamId: '12' })
  expect(outcomes).toEqual(['accepted'])
})

test.each([
  ['refused', { upstreamCode: -3 }, 'upstream_refused', { upstream_code: -3 }],
  ['throttled', { upstreamCode: -2 }, 'upstream_throttled', { upstream_code: -2 }],
  ['unreachable', {}, 'upstream_down', {}],
  ['unreachable', { ambiguous: true }, 'upstream_down', { send_state: 'unknown' }],
  ['unreachable', { upstreamCode: 502, ambiguous: true }, 'upstream_down', { upstream_code: 502 }],
  ['bad_answer', { ambiguous: true }, 'upstream_down', { send_state: 'unknown' }],
  // The code of an expired login would make clients throw their own credentials away.
  ['expired', { upstreamCode: -14 }, 'upstream_down', {}],
] as const)('a send that fails as %s %j is told as %s', async (kind, more, code, details) => {
  const { send, outcomes, calls } = await startTestOutbound({ answers: () => Promise.reject(failure(kind, more)) })
  const error = await refusal(send('hello'))
  expect(error.code).toBe(code)
  expect(error.details).toMatchObject(details)
  expect(JSON.stringify(error.details)).not.toContain('-14')
  expect(error.message).not.toContain('hello')
  expect([outcomes, calls.length]).toEqual([[kind], 1])
})

test('an answer without an id is a yes that is counted apart', async () => {
  const { send, outcomes } = await startTestOutbound({ answers: () => ({ upstreamId: null }) })
  expect(await send('hello')).toMatchObject({ upstreamId: null })
  expect(outcomes).toEqual(['unconfirmed'])
})

verifies('sends:split:long-text', async () => {
  const { send, texts, calls } = await startTestOutbound()
  const text = Array.from({ length: 900 }, (_, n) => `word${n}${n % 40 === 39 ? '\n' : ' '}`).join('')
  await send(text)
  expect(text.length).toBeGreaterThan(3 * MAX_TEXT_CHARS)
  expect(texts().join('')).toBe(text)
  for (const part of texts()) expect(part.length).toBeLessThanOrEqual(MAX_TEXT_CHARS)
  expect(calls.length).toBeLessThanOrEqual(Math.ceil(text.length / MAX_TEXT_CHARS) + 1)
  // The service shows only the first of several messages under one client_id.
  const ids = calls.map(({ body }) => JSON.parse(body).client_id)
  expect(new Set(ids).size).toBe(calls.length)
  await send('x'.repeat(MAX_TEXT_CHARS))
  expect(texts().at(-1)).toHaveLength(MAX_TEXT_CHARS)
})

verifies('sends:context:counter', async () => {
  const { store, send, answer } = await startTestOutbound()
  const used = async () => (await store.conversations.get(ACCOUNT, USER))?.sendsUsed
  await hear(store, '1')
  expect(await used()).toBe(0)
  await send('one')
  await send(`${'x'.repeat(MAX_TEXT_CHARS)} and more`)
  expect(await used()).toBe(3)
  answer(() => Promise.reject(failure('refused')))
  await refusal(send('refused'))
  expect(await used()).toBe(3)
  // What may have arrived counts too; a new message of the user starts a new count.
  answer(() => Promise.reject(failure('unreachable', { ambiguous: true })))
  await refusal(send('lost'))
  expect(await used()).toBe(4)
  await hear(store, '2', { token: 'newer' })
  expect(await used()).toBe(0)
})

verifies('sends:retry:not-on-throttle', async () => {
  const { send, calls, advance, answer, silences, lane } = await startTestOutbound({
    answers: () => Promise.reject(failure('throttled', { upstreamCode: -2 })),
  })
  const error = await refusal(send('one'))
  expect(error.code).toBe('upstream_throttled')
  expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000)
  expect(silences).toEqual([1_000])
  // During the silence nothing goes out at all, and the next no makes it longer.
  expect((await refusal(send('two'))).code).toBe('upstream_throttled')
  expect(calls).toHaveLength(1)
  advance(1_001)
  await refusal(send('three'))
  expect([calls.length, silences]).toEqual([2, [1_000, 2_000]])
  advance(2_001)
  answer(() => ({ upstreamId: '5' }))
  await send('four')
  expect([calls.length, lane.size]).toEqual([3, 0])
  answer(() => Promise.reject(failure('throttled')))
  await refusal(send('five'))
  expect(silences.at(-1)).toBe(1_000)
})

verifies('sends:retry:not-on-throttle', 'after a -2 in the middle of a long text its rest is not sent', async () => {
  const { send, calls, answer, advance } = await startTestOutbound({
    answers: (n) => (n === 2 ? Promise.reject(failure('throttled')) : { upstreamId: String(n) }),
  })
  expect(await refusal(send('x'.repeat(3 * MAX_TEXT_CHARS)))).toMatchObject({
    code: 'upstream_throttled',
    details: { send_state: 'unknown', accepted_parts: 1 },
  })
  answer((n) => ({ upstreamId: String(n) }))
  advance(60_000)
  await send('next')
  expect(calls).toHaveLength(3)
})

verifies('sends:slow:none-accepted', 'what waited too long for its turn is a 503 and is never sent', async () => {
  const call = gate()
  const { send, texts, answer, lane, advance } = await startTestOutbound({
    patienceMs: 40,
    answers: (_, __, signal) => {
      // A service that hangs, and a call that does not even end when it is told to.
      signal.addEventListener('abort', () => undefined)
      return call.pass().then(() => ({ upstreamId: '1' }))
    },
  })
  const [first, second] = await Promise.all([refusal(send('first')), refusal(send('second'))])
  expect(first).toMatchObject({ code: 'upstream_down', details: { send_state: 'unknown' } })
  expect(second).toMatchObject({ code: 'upstream_down', details: { send_state: 'failed' } })
  expect(lane.size).toBe(0)
  answer((n) => ({ upstreamId: String(n) }))
  call.open()
  advance(60_000)
  await send('third')
  expect(texts()).toEqual(['first', 'third'])
})

verifies('sends:slow:none-accepted', 'giving up cancels the call, and a repetition does not send again', async () => {
  let cancelled = false
  const { send, calls, answer } = await startTestOutbound({
    patienceMs: 40,
    answers: (_, __, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          cancelled = true
          reject(failure('unreachable', { ambiguous: true }))
        })
      }),
  })
  expect(await refusal(send('hello', { key: 'k' }))).toMatchObject({ code: 'upstream_down' })
  expect(cancelled).toBe(true)
  answer(() => ({ upstreamId: '1' }))
  expect(await refusal(send('hello', { key: 'k' }))).toMatchObject({ details: { send_state: 'unknown' } })
  expect(calls).toHaveLength(1)
})

test('a send given up while its conversation is looked up is not sent after all', async () => {
  const store = await openMemoryStore()
  const lookup = gate()
  const get: typeof store.conversations.get = async (...who) => {
    await lookup.pass()
    return store.conversations.get(...who)
  }
  const { send, calls } = await startTestOutbound({
    store: { ...store, conversations: { ...store.conversations, get } },
    patienceMs: 30,
  })
  const error = await refusal(send('hello'))
  expect(error.details).toEqual({ send_state: 'failed' })
  lookup.open()
  await new Promise(setImmediate)
  expect(calls).toEqual([])
  await store.close()
})

verifies(
  'sends:slow:some-accepted',
  'with one part accepted in time the answer is yes, and the rest follows',
  async () => {
    const second = gate()
    const { send, texts, calls } = await startTestOutbound({
      patienceMs: 40,
      answers: async (n) => {
        if (n === 2) await second.pass()
        return { upstreamId: String(n) }
      },
    })
    const text = `${'a'.repeat(MAX_TEXT_CHARS)}${'b'.repeat(MAX_TEXT_CHARS)}c`
    const answer = await send(text, { key: 'k' })
    expect(answer).toMatchObject({ upstreamId: '1' })
    expect(calls).toHaveLength(2)
    // The same again, while the rest is still on its way, gets the same answer and sends nothing.
    expect(await send(text, { key: 'k' })).toEqual(answer)
    second.open()
    await soon(() => expect(texts().join('')).toBe(text))
    await soon(async () => expect(await send(text, { key: 'k' })).toEqual(answer))
    expect(calls).toHaveLength(3)
  },
)

test('an answer that was given stands when a later part fails', async () => {
  const second = gate()
  const { send, calls, outcomes } = await startTestOutbound({
    patienceMs: 40,
    answers: async (n) => {
      if (n === 1) return { upstreamId: '1' }
      await second.pass()
      throw failure('refused')
    },
  })
  const text = 'x'.repeat(3 * MAX_TEXT_CHARS)
  expect(await send(text, { key: 'k' })).toMatchObject({ upstreamId: '1' })
  second.open()
  await soon(() => expect(outcomes).toEqual(['accepted', 'refused']))
  await new Promise(setImmediate)
  expect(await send(text, { key: 'k' })).toMatchObject({ upstreamId: '1' })
  expect(calls).toHaveLength(2)
})

test('a client with a thousand waiting sends is told to slow down; others are not', async () => {
  const call = gate()
  const { send, lane } = await startTestOutbound({ answers: () => call.pass().then(() => ({ upstreamId: '1' })) })
  const sending = Array.from({ length: 1_001 }, (_, n) => send(String(n)))
  await soon(() => expect(lane.waiting('client:1')).toBe(1_000))
  expect(await refusal(send('too many'))).toMatchObject({ code: 'too_many_sends', retryAfterMs: 2_000 })
  const other = send('mine', { clientId: 2, userId: 'bob@im.wechat' })
  call.open()
  await expect(Promise.all([other, ...sending])).resolves.toHaveLength(1_002)
})

test('sends go to the user under the id and with the token that came last', async () => {
  const { store, send, calls } = await startTestOutbound()
  await hear(store, '1', { token: 'old' })
  await hear(store, '2', { userId: 'Ann@im.wechat', token: 'new' })
  await send('hello')
  expect(calls[0]).toMatchObject({ userId: 'Ann@im.wechat', contextToken: 'new' })
})
