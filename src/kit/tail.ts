import type { Doorbell } from './doorbell.ts'

/** How a reader is told what it waited for. */
export interface Wait<T> {
  /** The first batch that is not empty, or `undefined` when `stop` was called first. */
  batch: Promise<T[] | undefined>
  /** Ends the wait; harmless when it has ended already. */
  stop(): void
}

/**
 * The first batch that `read` finds, now or after a ring. Listening starts before the first read, so nothing that is
 * appended in between is missed. Holds no timer and no signal: thousands of these may be parked at once.
 */
export function nextBatch<T>(doorbell: Doorbell, key: string, read: () => T[] | Promise<T[]>): Wait<T> {
  let settle: (value: T[] | undefined) => void = () => {}
  let fail: (error: unknown) => void = () => {}
  const batch = new Promise<T[] | undefined>((resolve, reject) => {
    settle = resolve
    fail = reject
  })
  let reading = false
  let rungMeanwhile = false
  let ended = false
  const end = () => {
    ended = true
    unlisten()
  }
  const unlisten = doorbell.listen(key, () => void look())
  void look()
  return {
    batch,
    stop() {
      if (ended) return
      end()
      settle(undefined)
    },
  }

  async function look(): Promise<void> {
    if (ended) return
    if (reading) {
      rungMeanwhile = true
      return
    }
    reading = true
    try {
      do {
        rungMeanwhile = false
        const found = await read()
        if (ended) return
        if (found.length > 0) {
          end()
          return settle(found)
        }
      } while (rungMeanwhile)
    } catch (error) {
      if (ended) return
      end()
      fail(error)
    } finally {
      reading = false
    }
  }
}

/** Every batch after `afterSeq`, as it comes, until `signal` aborts. */
export async function* tail<T extends { seq: number }>(
  doorbell: Doorbell,
  key: string,
  read: (afterSeq: number) => T[] | Promise<T[]>,
  { afterSeq, signal }: { afterSeq: number; signal: AbortSignal },
): AsyncGenerator<T[], void> {
  let after = afterSeq
  while (!signal.aborted) {
    const wait = nextBatch(doorbell, key, () => read(after))
    signal.addEventListener('abort', wait.stop, { once: true })
    // The first read has begun; a signal that it aborted is not told again.
    if (signal.aborted) wait.stop()
    try {
      const batch = await wait.batch
      if (batch === undefined) return
      yield batch
      after = batch.at(-1)?.seq ?? after
    } finally {
      signal.removeEventListener('abort', wait.stop)
      wait.stop()
    }
  }
}
