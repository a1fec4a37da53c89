import { AppError } from '../kit/errors.ts'

/** Holds each client to a number of calls per second. */
export interface RateLimit {
  /** Counts a call; throws `too_many_requests` when there were too many. */
  take(clientId: number): void
}

const BURST_SECONDS = 2

/** A bucket per client that refills all the time; `perSecond` 0 sets no limit. */
export function rateLimit(perSecond: number, now: () => number): RateLimit {
  const buckets = new Map<number, { left: number; at: number }>()
  const most = perSecond * BURST_SECONDS
  return {
    take(clientId) {
      if (perSecond === 0) return
      const at = now()
      const bucket = buckets.get(clientId) ?? { left: most, at }
      bucket.left = Math.min(most, bucket.left + (Math.max(0, at - bucket.at) / 1000) * perSecond)
      bucket.at = at
      buckets.set(clientId, bucket)
      if (bucket.left < 1) {
        throw new AppError('too_many_requests', `More than ${perSecond} calls a second with this token; slow down.`, {
          retryAfterMs: 1_000,
        })
      }
      bucket.left -= 1
    },
  }
}
