import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { backoff, sleep, timeLimit } from './retry.ts'

describe('backoff', () => {
  test('doubles from the first pause to the longest and stays there', () => {
    const pauses = backoff({ firstMs: 1_000, mostMs: 30_000, random: () => 0.999999 })
    expect(Array.from({ length: 8 }, () => pauses.next())).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ])
  })

  test('draws each pause from the upper half of its step', () => {
    const low = backoff({ firstMs: 1_000, mostMs: 30_000, random: () => 0 })
    expect([low.next(), low.next(), low.next()]).toEqual([500, 1_000, 2_000])
    const pauses = backoff({ firstMs: 1_000, mostMs: 1_000 })
    const drawn = Array.from({ length: 200 }, () => pauses.next())
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(500)
    expect(Math.max(...drawn)).toBeLessThanOrEqual(1_000)
    expect(new Set(drawn).size).toBeGreaterThan(50)
  })

  test('counts failures and starts over when reset', () => {
    const pauses = backoff({ firstMs: 100, mostMs: 1_000, random: () => 0 })
    pauses.next()
    pauses.next()
    expect(pauses.failures).toBe(2)
    pauses.reset()
    expect(pauses.failures).toBe(0)
    expect(pauses.next()).toBe(50)
  })

  test('stays finite after any number of failures', () => {
    const pauses = backoff({ firstMs: 1_000, mostMs: 30_000, random: () => 0.5 })
    for (let failure = 0; failure < 5_000; failure++) pauses.next()
    expect(pauses.next()).toBe(22_500)
  })
})

describe('sleep', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('lasts as long as it was told', async () => {
    let awake = false
    const slept = sleep(1_000).then(() => {
      awake = true
    })
    await vi.advanceTimersByTimeAsync(999)
    expect(awake).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await slept
    expect(awake).toBe(true)
  })

  test('ends without an error when its signal aborts, and leaves no timer', async () => {
    const stop = new AbortController()
    const slept = sleep(1_000_000, stop.signal)
    stop.abort()
    await slept
    expect(vi.getTimerCount()).toBe(0)
  })

  test('does not begin when its signal has aborted before', async () => {
    await sleep(1_000_000, AbortSignal.abort())
    expect(vi.getTimerCount()).toBe(0)
  })

  test('lets go of its signal when it is over', async () => {
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    const slept = sleep(10, signal)
    await vi.advanceTimersByTimeAsync(10)
    await slept
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(added.mock.calls.map(([, listener]) => listener))
  })
})

describe('timeLimit', () => {
  test('aborts when the time is up, also after garbage was collected', async () => {
    const stop = new AbortController()
    const ends = Array.from({ length: 20 }, () => endOf(timeLimit(100, stop.signal)))
    // What was made in one turn is held until the turn is over.
    await new Promise(setImmediate)
    collectGarbage()
    for (const reason of await Promise.all(ends)) expect(reason).toMatchObject({ name: 'TimeoutError' })
  })

  test('aborts with any of its signals, and at once with one that has aborted', () => {
    const stop = new AbortController()
    const limit = timeLimit(1_000_000, new AbortController().signal, stop.signal)
    stop.abort('enough')
    expect(limit.reason).toBe('enough')
    expect(timeLimit(1_000_000, stop.signal).reason).toBe('enough')
  })
})

function endOf(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect !== 'function') throw new Error('no garbage collector to call')
  collect()
}
