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

test('a clock that is set back shuts nobody out', () => {
  let now = 10_000_000
  const limit = rateLimit(10, () => now)
  expect(passing(limit, 1, 5)).toBe(5)
  now -= 3_600_000
  expect(passing(limit, 1, 5)).toBe(5)
  now += 1_000
  expect(passing(limit, 1, 100)).toBe(20)
})
