import { expect, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { type Provider, ProviderError, type ProviderFailure, type TurnEvent } from './port.ts'
import { collect, failure, request, user } from './provider.contract.ts'
import { withRetries } from './retry.ts'

const FINISH: TurnEvent = { type: 'finish', reason: 'stop', inputTokens: 1, outputTokens: 1 }
const ASKED = request(user('hi'))

verifies(
  'agent:loop:retries',
  'tries again after transient failures and rate limits, with growing pauses',
  async () => {
    const waits: number[] = []
    const failures = [fail('transient'), fail('rate_limited'), fail('transient'), fail('transient')]
    const { provider, tries } = inTurn(...failures, [FINISH])
    const patient = withRetries(provider, { sleep: async (ms) => void waits.push(ms), random: () => 0.999999 })
    expect(await collect(patient, ASKED)).toEqual([FINISH])
    expect(tries()).toBe(5)
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000])
  },
)

test('gives up with the last error after five tries, or as many as it is told', async () => {
  for (const [options, most] of [
    [{}, 5],
    [{ tries: 2 }, 2],
    [{ tries: 1 }, 1],
  ] as const) {
    const { provider, tries } = inTurn(fail('transient', { message: 'again' }))
    const { error } = await failure(withRetries(provider, { ...options, sleep: async () => {} }), ASKED)
    expect(error).toMatchObject({ kind: 'transient', message: 'again' })
    expect(tries()).toBe(most)
  }
})

test('what will not pass is not tried again', async () => {
  for (const kind of ['context_overflow', 'auth', 'bad_request', 'other'] as const) {
    const { provider, tries } = inTurn(fail(kind))
    expect((await failure(withRetries(provider, { sleep: never }), ASKED)).error.kind).toBe(kind)
    expect(tries()).toBe(1)
  }
  const bug = new TypeError('a bug')
  const { provider, tries } = inTurn(bug)
  await expect(collect(withRetries(provider, { sleep: never }), ASKED)).rejects.toBe(bug)
  expect(tries()).toBe(1)
})

verifies('agent:loop:no-retry-after-output', 'never after something of the turn was told', async () => {
  const { provider, tries } = inTurn([{ type: 'text', delta: 'Hel' }, fail('transient')])
  const { error, before } = await failure(withRetries(provider, { sleep: never }), ASKED)
  expect(error.kind).toBe('transient')
  expect(before).toEqual([{ type: 'text', delta: 'Hel' }])
  expect(tries()).toBe(1)
})

verifies(
  'agent:loop:retries',
  'waits as long as the provider asks, and not at all when that is over a minute',
  async () => {
    const waits: number[] = []
    const sleep = async (ms: number) => void waits.push(ms)
    const some = inTurn(fail('rate_limited', { retryAfterMs: 60_000 }), fail('transient', { retryAfterMs: 1 }), [
      FINISH,
    ])
    expect(await collect(withRetries(some.provider, { sleep, random: () => 0 }), ASKED)).toEqual([FINISH])
    expect(waits).toEqual([60_000, 2_000])
    const long = inTurn(fail('rate_limited', { retryAfterMs: 60_001 }))
    expect((await failure(withRetries(long.provider, { sleep: never }), ASKED)).error.retryAfterMs).toBe(60_001)
    expect(long.tries()).toBe(1)
  },
)

test('an abort ends the pause and nothing more is tried', async () => {
  const { provider, tries } = inTurn(fail('transient'))
  const controller = new AbortController()
  const onRetry = vi.fn(() => controller.abort())
  const events = withRetries(provider, { onRetry }).stream(ASKED, controller.signal)
  const error = await events[Symbol.asyncIterator]()
    .next()
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ kind: 'other', message: 'The call of the model was cancelled.' })
  expect(tries()).toBe(1)
  expect(onRetry).toHaveBeenCalledWith({ error: expect.any(ProviderError), attempt: 1, waitMs: expect.any(Number) })
})

test('the provider looks as before', () => {
  const { provider } = inTurn([FINISH])
  expect(withRetries(provider)).toMatchObject({ name: 'test', contextWindow: 5, price: { input: 1, output: 2 } })
})

type Outcome = (TurnEvent | Error)[] | Error

/** A provider that does these things one after the other; the last one again and again. */
function inTurn(...outcomes: Outcome[]): { provider: Provider; tries: () => number } {
  let tries = 0
  async function* stream() {
    const outcome = outcomes[Math.min(tries, outcomes.length - 1)] ?? []
    tries += 1
    for (const one of [outcome].flat()) {
      if (one instanceof Error) throw one
      yield one
    }
  }
  return { provider: { name: 'test', contextWindow: 5, price: { input: 1, output: 2 }, stream }, tries: () => tries }
}

function fail(
  kind: ProviderFailure,
  { message = 'no', retryAfterMs = null }: { message?: string; retryAfterMs?: number | null } = {},
): ProviderError {
  return new ProviderError(kind, message, { retryAfterMs })
}

async function never(): Promise<void> {
  throw new Error('there must be no pause')
}
