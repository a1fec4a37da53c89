import { errorText } from '../../kit/errors.ts'
import type { Claim, Lease } from '../../kit/lease.ts'
import type { Log } from '../../kit/log.ts'
import { sleep } from '../../kit/retry.ts'

/** How long this node may lead, by its own clocks. */
export interface Tenure {
  readonly claim: Claim
  /** Aborts when the lease is lost, or soon may be. */
  readonly over: AbortSignal
  /**
   * False from the moment on that another may lead, also for a process that slept through it and has not heard yet. Asked
   * before anything that is no write to the log: that one the database refuses.
   */
  holds(): boolean
  /** Renews no more. The claim is still to be released. */
  end(): Promise<void>
}

export interface TenureOptions {
  lease: Pick<Lease, 'claim' | 'renew'>
  leaseMs: number
  logger: Log
  elapsed?: () => () => number
}

/** Takes the lease and keeps renewing it, three times in its life; null while it is another's. */
export async function beginTenure(key: string, options: TenureOptions): Promise<Tenure | null> {
  const { lease, leaseMs, logger, elapsed = startWatch } = options
  // From before the question: the database counts from when it answers it, which is later.
  let sinceRenewed = elapsed()
  const claim = await lease.claim(key)
  if (claim === null) return null
  const over = new AbortController()
  const renewing = renew(claim)

  return {
    claim,
    over: over.signal,
    holds() {
      if (sinceRenewed() >= leaseMs) over.abort()
      return !over.signal.aborted
    },
    async end() {
      over.abort()
      await renewing
    },
  }

  async function renew(mine: Claim): Promise<void> {
    const renewEveryMs = leaseMs / 3
    while (!over.signal.aborted) {
      await sleep(renewEveryMs, over.signal)
      if (over.signal.aborted) return
      const sinceAsked = elapsed()
      try {
        const lost = await Promise.race([lease.renew([mine]), sleep(renewEveryMs, over.signal).then(() => null)])
        if (lost !== null && lost.length > 0) break
        if (lost !== null) sinceRenewed = sinceAsked
      } catch (error) {
        logger.warn('the lease could not be renewed', { reason: errorText(error) })
      }
      // Without an answer from the database for this long it is time to finish, so that another may lead.
      if (sinceRenewed() > 2 * renewEveryMs) break
    }
    over.abort()
  }
}

/** Neither clock alone: one stands still while a machine sleeps, the other is set by people. */
function startWatch(): () => number {
  const [steady, wall] = [performance.now(), Date.now()]
  return () => Math.max(performance.now() - steady, Date.now() - wall)
}
