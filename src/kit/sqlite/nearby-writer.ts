import type { AnyCall, Outcome } from './commit-group.ts'

/** One of two that may write. */
export interface Committer<Call extends AnyCall> {
  /** Commits a group in one transaction; fails when nothing was written. */
  commit(calls: Call[]): Outcome[] | Promise<Outcome[]>
  /** The other one has written: what was kept in memory of the tables may be wrong. */
  forget(): void
}

export interface NearbyWriterOptions<Call extends AnyCall> {
  /** The thread that writes: an fsync stops nothing but it. */
  thread: Committer<Call>
  /** On the calling thread: no other has to wake up for it, and back. */
  here: Committer<Call>
  isSmall: (call: Call) => boolean
  /** Milliseconds that only go forward. */
  clock?: () => number
}

/** So many small groups in a row say that there is time. */
const CALM_AFTER = 16
/** Now and then the thread has its turn, which also writes the log back into the database when it has grown. */
const THREAD_EVERY = 256
/** When commits take this long, taken over some ten of them, everyone would be held up: for a while the thread waits alone. */
const SLOW_MS = 1.5
const SLOW_SHARE = 0.1
/** More than this is no sign of the disk alone: the thread may have been stopped in the middle. */
const MOST_COUNTED_MS = 5
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
  let notBefore = 0
  let usualMs = 0
  let last = thread

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
      usualMs += SLOW_SHARE * (Math.min(clock() - startedAt, MOST_COUNTED_MS) - usualMs)
      if (usualMs >= SLOW_MS) notBefore = clock() + AFTER_SLOW_MS
    }

    function by(one: Committer<Call>) {
      if (last !== one) one.forget()
      last = one
      return one.commit(calls)
    }
  }
}
