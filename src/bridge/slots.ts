/** A bound on how much is under way at once; who comes first goes first. */
export interface Slots {
  /** Runs `work` when there is room. Rejects without running it when `signal` aborts before. */
  run(work: () => Promise<void>, signal: AbortSignal): Promise<void>
}

export function openSlots(most: number): Slots {
  const waiting = new Set<() => void>()
  let taken = 0
  return {
    async run(work, signal) {
      await enter(signal)
      try {
        await work()
      } finally {
        taken -= 1
        const [next] = waiting
        next?.()
      }
    },
  }

  function enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (taken < most) {
      taken += 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const go = () => {
        leave()
        taken += 1
        resolve()
      }
      const stop = () => {
        leave()
        reject(signal.reason)
      }
      const leave = () => {
        waiting.delete(go)
        signal.removeEventListener('abort', stop)
      }
      waiting.add(go)
      signal.addEventListener('abort', stop, { once: true })
    })
  }
}
