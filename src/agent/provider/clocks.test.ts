import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { withClocks } from './clocks.ts'
import type { Provider, ProviderRequest, TurnEvent } from './port.ts'
import { collect, failure, request, user } from './provider.contract.ts'
import { scriptedProvider } from './scripted.ts'

const ASKED = request(user('hi'))
const TEXT: TurnEvent = { type: 'text', delta: 'Hel' }
const FINISH: TurnEvent = { type: 'finish', reason: 'stop', inputTokens: 1, outputTokens: 1 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

verifies(
  'agent:loop:clocks',
  'a provider that says nothing at all is given up after 90 s, and its call is aborted',
  async () => {
    const { provider, signals } = handmade(() => new Promise(() => {}))
    const failed = failure(withClocks(provider), ASKED)
    await vi.advanceTimersByTimeAsync(89_999)
    expect(signals[0]?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    const { error } = await failed
    expect(error).toMatchObject({ kind: 'transient', message: 'The model was silent for 90000 ms.' })
    expect(signals[0]?.aborted).toBe(true)
  },
)

verifies('agent:loop:clocks', 'one that falls silent after a start is given up after 120 s', async () => {
  const provider = scriptedProvider([[{ text: 'Hel' }, { stall: 119_999 }, { text: 'lo' }, { stall: 'forever' }]])
  const failed = failure(withClocks(provider), ASKED)
  await vi.advanceTimersByTimeAsync(119_999 + 119_999)
  await vi.advanceTimersByTimeAsync(1)
  const { error, before } = await failed
  expect(error).toMatchObject({ kind: 'transient', message: 'The model was silent for 120000 ms.' })
  expect(before).toEqual([TEXT, { type: 'text', delta: 'lo' }])
})

verifies('agent:loop:clocks', 'signs of life that are no events count, up to the length of a whole turn', async () => {
  let asked: ProviderRequest | undefined
  const { provider } = handmade(
    () => new Promise(() => {}),
    (seen) => {
      asked = seen
    },
  )
  const heard = vi.fn()
  const failed = failure(withClocks(provider), { ...ASKED, onActivity: heard })
  for (let waitedMs = 0; waitedMs < 600_000; waitedMs += 60_000) {
    asked?.onActivity?.()
    await vi.advanceTimersByTimeAsync(60_000)
  }
  expect((await failed).error).toMatchObject({
    kind: 'transient',
    message: 'The model took longer than 600000 ms for a turn.',
  })
  expect(heard).toHaveBeenCalledTimes(10)
})

test('the time that the reader takes for itself does not count', async () => {
  const { provider } = handmade(steps({ value: TEXT }, { value: TEXT }, { value: FINISH }))
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of withClocks(provider).stream(ASKED, new AbortController().signal)) {
      seen.push(event.type)
      await new Promise((resolve) => setTimeout(resolve, 500_000))
    }
  })()
  await vi.advanceTimersByTimeAsync(1_500_000)
  await reading
  expect(seen).toEqual(['text', 'text', 'finish'])
})

test('no timer is left after the end, an error, an abort, or a reader who leaves', async () => {
  await collect(withClocks(handmade(steps({ value: TEXT }, { value: FINISH })).provider), ASKED)
  await failure(withClocks(scriptedProvider([[{ error: { kind: 'auth', message: 'no' } }]])), ASKED)
  const aborting = new AbortController()
  const waiting = withClocks(scriptedProvider([[{ stall: 'forever' }]])).stream(ASKED, aborting.signal)
  const next = waiting[Symbol.asyncIterator]().next()
  aborting.abort()
  await expect(next).rejects.toMatchObject({ kind: 'other' })
  for await (const _event of withClocks(scriptedProvider([[{ text: 'a' }, { stall: 'forever' }]])).stream(
    ASKED,
    new AbortController().signal,
  ))
    break
  expect(vi.getTimerCount()).toBe(0)
})

test('a provider that neither settles nor heeds its signal is left behind without an unhandled rejection', async () => {
  vi.useRealTimers()
  const rejected = vi.fn()
  process.on('unhandledRejection', rejected)
  let fail: (error: Error) => void = () => {}
  const { provider } = handmade(
    () =>
      new Promise((_resolve, reject) => {
        fail = reject
      }),
  )
  const { error } = await failure(withClocks(provider, { firstByteMs: 1 }), ASKED)
  expect(error.kind).toBe('transient')
  fail(new Error('too late'))
  await new Promise(setImmediate)
  process.off('unhandledRejection', rejected)
  expect(rejected).not.toHaveBeenCalled()
})

test('an abort is not waited for, however deaf the provider is', async () => {
  const { provider, signals } = handmade(() => new Promise(() => {}))
  const controller = new AbortController()
  const next = withClocks(provider).stream(ASKED, controller.signal)[Symbol.asyncIterator]().next()
  controller.abort('enough')
  await expect(next).rejects.toMatchObject({ kind: 'other', cause: 'enough' })
  expect(signals[0]).toMatchObject({ aborted: true, reason: 'enough' })
})

test('an error of the provider passes as it is', async () => {
  const provider = scriptedProvider([[{ error: { kind: 'rate_limited', message: 'slow', retry_after_ms: 5 } }]])
  expect((await failure(withClocks(provider), ASKED)).error).toMatchObject({ kind: 'rate_limited', retryAfterMs: 5 })
})

/** A provider by hand: its iterator does just what `next` does, and has no `return`. */
function handmade(
  next: () => Promise<IteratorResult<TurnEvent>>,
  onAsked: (asked: ProviderRequest) => void = () => {},
): { provider: Provider; signals: AbortSignal[] } {
  const signals: AbortSignal[] = []
  const stream: Provider['stream'] = (asked, signal) => {
    onAsked(asked)
    signals.push(signal)
    return { [Symbol.asyncIterator]: () => ({ next }) }
  }
  return { provider: { name: 'test', contextWindow: null, price: null, stream }, signals }
}

function steps(...values: { value: TurnEvent }[]): () => Promise<IteratorResult<TurnEvent>> {
  const left = [...values]
  return async () => {
    const step = left.shift()
    return step === undefined ? { done: true, value: undefined } : { done: false, ...step }
  }
}
