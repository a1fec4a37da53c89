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

/** For sums of parts of a millisecond. */
const ROUNDING_MS = 0.01

/**
 * Each caller has room for the calls of two seconds, which comes back all the time; `perSecond` 0 sets no limit. `by` ends
 * the sentence of a refusal. Of a caller one number is kept: when all of its room will be back.
 */
export function rateLimit(perSecond: number, now: () => number, by = 'with this token'): RateLimit {
  const backAt = new Map<string | number, number>()
  const roomMs = BURST_SECONDS * 1000
  const callMs = 1000 / perSecond
  let sweptAt = 0
  return {
    take(caller) {
      if (perSecond === 0) return { limit: 0, remaining: 0, resetSeconds: 0 }
      const at = now()
      if (backAt.size > MANY) sweep(at)
      const usedMs = (backAt.get(caller) ?? at) - at
      // It cannot be more than there is, unless the clock was set back.
      const takenMs = (usedMs < 0 || usedMs > 2 * roomMs ? 0 : usedMs) + callMs
      if (takenMs > roomMs + ROUNDING_MS) {
        throw new AppError('too_many_requests', `More than ${perSecond} calls a second ${by}; slow down.`, {
          retryAfterMs: 1_000,
        })
      }
      backAt.set(caller, at + takenMs)
      const remaining = Math.max(0, Math.floor((roomMs - takenMs + ROUNDING_MS) / callMs))
      return { limit: perSecond * BURST_SECONDS, remaining, resetSeconds: Math.ceil(takenMs / 1000) }
    },
  }

  /** Who has all of its room is as good as unknown. */
  function sweep(at: number): void {
    if (at - sweptAt < roomMs) return
    sweptAt = at
    for (const [caller, back] of backAt) if (back <= at) backAt.delete(caller)
  }
}
