import { AppError } from './errors.ts'

/** Holds each caller to a number of calls per second. */
export interface RateLimit {
  /** Counts a call; throws `too_many_requests` when there were too many. */
  take(caller: string | number): Allowance
}

/** What a caller may still do, as it is told in headers. */
export interface Allowance {
  /** Calls that may be made at once; 0 where there is no limit. */
  limit: number
  remaining: number
  /** When all of them may be made again. */
  resetSeconds: number
}

/** A caller may make this many seconds' worth of calls at once. */
export const BURST_SECONDS = 2
const MANY = 1_000

/** A bucket per caller that refills all the time; `perSecond` 0 sets no limit. `by` ends the sentence of a refusal. */
export function rateLimit(perSecond: number, now: () => number, by = 'with this token'): RateLimit {
  const buckets = new Map<string | number, { left: number; at: number }>()
  const most = perSecond * BURST_SECONDS
  let sweptAt = 0
  return {
    take(caller) {
      if (perSecond === 0) return { limit: 0, remaining: 0, resetSeconds: 0 }
      const at = now()
      if (buckets.size > MANY) sweep(at)
      const bucket = buckets.get(caller) ?? { left: most, at }
      bucket.left = Math.min(most, bucket.left + (Math.max(0, at - bucket.at) / 1000) * perSecond)
      bucket.at = at
      buckets.set(caller, bucket)
      if (bucket.left < 1) {
        throw new AppError('too_many_requests', `More than ${perSecond} calls a second ${by}; slow down.`, {
          retryAfterMs: 1_000,
        })
      }
      bucket.left -= 1
      const resetSeconds = Math.ceil((most - bucket.left) / perSecond)
      return { limit: most, remaining: Math.floor(bucket.left), resetSeconds }
    },
  }

  /** A bucket that is full again says no more than none. */
  function sweep(at: number): void {
    if (at - sweptAt < BURST_SECONDS * 1000) return
    sweptAt = at
    for (const [caller, bucket] of buckets) if (at - bucket.at >= BURST_SECONDS * 1000) buckets.delete(caller)
  }
}
