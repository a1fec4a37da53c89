/** One of many waits. What waits can be this itself: then the wait costs nothing but its place. */
export interface Due {
  /** Set by `add`. */
  dueAt?: number
  onDue(): void
}

/** Many waits of one length on a single timer. */
export interface Deadlines {
  /** Has `onDue` called once `waitMs` have passed, unless it is removed before. */
  add(wait: Due): void
  remove(wait: Due): void
  /** How many wait. */
  readonly size: number
}

/**
 * All waits are equally long, so they fall due in the order they came: one timer for the oldest serves them all, where a
 * timer each would cost memory and wake-ups with thousands of parked polls.
 */
export function sharedDeadlines(waitMs: number, now: () => number = performance.now.bind(performance)): Deadlines {
  const waiting = new Set<Due>()
  let timer: NodeJS.Timeout | undefined

  return {
    add(wait) {
      // Whole, since a fraction would be an object of its own for each of thousands.
      wait.dueAt = Math.ceil(now() + waitMs)
      waiting.add(wait)
      timer ??= setTimeout(sweep, waitMs)
    },
    remove(wait) {
      // A timer for nobody would keep the process alive.
      if (waiting.delete(wait) && waiting.size === 0) arm()
    },
    get size() {
      return waiting.size
    },
  }

  function sweep(): void {
    const at = now()
    try {
      for (const wait of waiting) {
        if (dueAt(wait) > at + 1) return
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
    timer = oldest && setTimeout(sweep, Math.ceil(dueAt(oldest) - now()))
  }
}

function dueAt({ dueAt: at = 0 }: Due): number {
  return at
}
