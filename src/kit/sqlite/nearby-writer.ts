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
/** A commit this long is slow: by a disk, or because this thread was stopped in the middle. */
const SLOW_MS = 1.5
/** So many more slow ones than quick ones, and it is the disk: then only the thread is to wait for it. */
const SLOW_DISK = 8
/** No machine stops a thread for so long; a disk may, and everyone was held up. */
const STALLED_MS = 50
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
  let slow = 0
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
      weigh(clock() - startedAt)
    }

    function by(one: Committer<Call>) {
      if (last !== one) one.forget()
      last = one
      return one.commit(calls)
    }
  }

  /** A slow disk is tried again with one commit. */
  function weigh(tookMs: number): void {
    slow = tookMs < SLOW_MS ? Math.max(slow - 1, 0) : tookMs < STALLED_MS ? Math.min(slow + 1, SLOW_DISK) : SLOW_DISK
    if (slow === SLOW_DISK) notBefore = clock() + AFTER_SLOW_MS
  }
}
