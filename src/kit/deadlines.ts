/** Many waits of one length on a single timer. */
export interface Deadlines {
  /** Calls `onDue` once `waitMs` have passed, unless the returned function is called before. */
  add(onDue: () => void): () => void
  /** How many wait. */
  readonly size: number
}

/**
 * All waits are equally long, so they fall due in the order they came: one timer for the oldest serves them all, where a
 * timer each would cost memory and wake-ups with thousands of parked polls.
 */
export function sharedDeadlines(waitMs: number, now: () => number = performance.now.bind(performance)): Deadlines {
  const waiting = new Set<{ dueAt: number; onDue: () => void }>()
  let timer: NodeJS.Timeout | undefined

  return {
    add(onDue) {
      const wait = { dueAt: now() + waitMs, onDue }
      waiting.add(wait)
      timer ??= setTimeout(sweep, waitMs)
      return () => {
        // A timer for nobody would keep the process alive.
        if (waiting.delete(wait) && waiting.size === 0) arm()
      }
    },
    get size() {
      return waiting.size
    },
  }

  function sweep(): void {
    const at = now()
    try {
      for (const wait of waiting) {
        if (wait.dueAt > at + 1) return
        waiting.delete(wait)
        wait.onDue()
      }
    } finally {
      // Here and not before: an `onDue` may add, cancel or throw, and there must be one timer whatever it does.
      arm()
    }
  }

  function arm(): void {
    clearTimeout(timer)
    const oldest = waiting.values().next().value
    timer = oldest && setTimeout(sweep, Math.ceil(oldest.dueAt - now()))
  }
}
