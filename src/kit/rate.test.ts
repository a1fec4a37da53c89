import { expect, test } from 'vitest'
import { AppError } from './errors.ts'
import { type RateLimit, rateLimit } from './rate.ts'

/** How many of `calls` pass. */
function passing(limit: RateLimit, clientId: number, calls: number): number {
  let passed = 0
  for (let call = 0; call < calls; call += 1) {
    try {
      limit.take(clientId)
      passed += 1
    } catch (error) {
      if (!(error instanceof AppError)) throw error
    }
  }
  return passed
}

test('a client may make two seconds worth of calls at once, and then so many a second', () => {
  let now = 1_000_000
  const limit = rateLimit(10, () => now)
  expect(passing(limit, 1, 100)).toBe(20)
  now += 1_000
  expect(passing(limit, 1, 100)).toBe(10)
  now += 60_000
  expect(passing(limit, 1, 100)).toBe(20)
})

test('calls that are refused do not count, so a hasty client is not shut out', () => {
  let now = 0
  const limit = rateLimit(1, () => now)
  passing(limit, 1, 1_000)
  for (let second = 1; second <= 5; second += 1) {
    now = second * 1_000
    expect(passing(limit, 1, 100)).toBe(1)
  }
})

test('a refusal says when to come back', () => {
  const limit = rateLimit(1, () => 0)
  passing(limit, 1, 2)
  expect(() => limit.take(1)).toThrow(expect.objectContaining({ code: 'too_many_requests', retryAfterMs: 1_000 }))
})

test('clients do not touch one another', () => {
  const limit = rateLimit(1, () => 0)
  expect(passing(limit, 1, 10)).toBe(2)
  expect(passing(limit, 2, 10)).toBe(2)
})

test('0 sets no limit', () => {
  expect(
    passing(
      rateLimit(0, () => 0),
      1,
      10_000,
    ),
  ).toBe(10_000)
})

test('says what is left, and when all of it is back', () => {
  let now = 1_700_000_000_000
  const limit = rateLimit(3, () => now)
  expect(limit.take(1)).toEqual({ limit: 6, remaining: 5, resetSeconds: 1 })
  for (const remaining of [4, 3, 2, 1, 0]) expect(limit.take(1).remaining).toBe(remaining)
  expect(() => limit.take(1)).toThrow('More than 3 calls a second')
  now += 334
  expect(limit.take(1)).toEqual({ limit: 6, remaining: 0, resetSeconds: 2 })
})

test.each([1, 3, 7, 30, 1_000])('%i a second are that many, also over a long time', (perSecond) => {
  let now = 1_700_000_000_000
  const limit = rateLimit(perSecond, () => now)
  let passed = 0
  for (let tenth = 0; tenth < 600; tenth += 1) {
    passed += passing(limit, 1, Math.ceil(perSecond / 5))
    now += 100
  }
  expect(Math.abs(passed - 62 * perSecond)).toBeLessThanOrEqual(Math.ceil(perSecond / 5) + 1)
})

test('thousands who have called once are forgotten again', () => {
  let now = 0
  const limit = rateLimit(1, () => now)
  for (let caller = 0; caller < 3_000; caller += 1) limit.take(caller)
  now += 10_000
  for (let caller = 0; caller < 3_000; caller += 1) expect(limit.take(caller).remaining).toBe(1)
})

test('a clock that is set back shuts nobody out', () => {
  let now = 10_000_000
  const limit = rateLimit(10, () => now)
  expect(passing(limit, 1, 5)).toBe(5)
  now -= 3_600_000
  expect(passing(limit, 1, 5)).toBe(5)
  now += 1_000
  expect(passing(limit, 1, 100)).toBe(20)
})
