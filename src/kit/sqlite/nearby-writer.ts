import type { AnyCall, Outcome } from './commit-group.ts'

/** One of two that may write. */
export interface Committer<Call extends AnyCall> {
  /** Commits a group in one transaction; fails when nothing was written. */
  commit(calls: Call[]): Outcome[] | Promise<Outcome[]>
  /** The other one has written: what was kept in memory of the tables may be wrong. */
  forget(): void
}

export interface ThreadCommitter<Call extends AnyCall> extends Committer<Call> {
  /** Writes the log back into the database, beside what is committed meanwhile. */
  tidy(): void
}

export interface NearbyWriterOptions<Call extends AnyCall> {
  /** The thread that writes: an fsync stops nothing but it. */
  thread: ThreadCommitter<Call>
  /** On the calling thread: no other has to wake up for it, and back. */
  here: Committer<Call>
  isSmall: (call: Call) => boolean
  /** Milliseconds that only go forward. */
  clock?: () => number
}

/** So many small groups in a row say that there is time. */
const CALM_AFTER = 16
/** After so many groups here the log is written back: by the thread, since that takes a while. */
const TIDY_EVERY = 256
/** The log only starts anew when all of it was written back, which those who go on writing may prevent: then they wait. */
const THREAD_EVERY = 1_500
/** What a commit takes longer than this holds everyone up. */
const QUICK_MS = 1.5
/** So much of that, and only the thread is to wait for the disk; a fiftieth of the time is forgiven. */
const MOST_HELD_UP_MS = 100
const FORGIVEN = 1 / 50
const AFTER_SLOW_MS = 5_000

/**
 * Commits on the calling thread while little is to be written and the disk is quick, else on the writer's. On a machine with
 * few cores a thread that is to wake up may wait for milliseconds, twice a commit; a small commit takes half of one.
 */
export function nearbyWriter<Call extends AnyCall>(
  options: NearbyWriterOptions<Call>,
): (calls: Call[]) => Promise<Outcome[]> {
  const { thread, here, isSmall, clock = () => performance.now() } = options
  let calm = 0
  let made = 0
  let heldUpMs = 0
  let weighedAt = 0
  let notBefore = 0
  let last: Committer<Call> = thread

  return async (calls) => {
    calm = calls.every(isSmall) ? calm + 1 : 0
    if (calm <= CALM_AFTER || calm % THREAD_EVERY === 0 || clock() < notBefore) return by(thread)
    const startedAt = clock()
    try {
      return await by(here)
    } catch {
      // Nothing was written: somebody else has the database, or the disk is full. Waiting is the thread's.
      return await by(thread)
    } finally {
      made += 1
      if (made % TIDY_EVERY === 0) thread.tidy()
      weigh(startedAt)
    }

    function by(one: Committer<Call>) {
      if (last !== one) one.forget()
      last = one
      return one.commit(calls)
    }
  }

  function weigh(startedAt: number): void {
    const now = clock()
    const left = Math.max(0, heldUpMs - FORGIVEN * (now - weighedAt))
    heldUpMs = Math.min(left + Math.max(0, now - startedAt - QUICK_MS), 2 * MOST_HELD_UP_MS)
    weighedAt = now
    if (heldUpMs > MOST_HELD_UP_MS) notBefore = now + AFTER_SLOW_MS
  }
}
