/** Pauses between tries: doubling from `firstMs` to `mostMs`, each drawn from the upper half of its step. */
export interface BackoffOptions {
  firstMs: number
  mostMs: number
  /** A number in [0, 1), for the jitter. */
  random?: () => number
}

/** Counts failures in a row and says how long to pause after each. */
export interface Backoff {
  next(): number
  reset(): void
  readonly failures: number
}

/** Jitter keeps many clients of one server from coming back in the same instant. */
export function backoff({ firstMs, mostMs, random = Math.random }: BackoffOptions): Backoff {
  let failures = 0
  return {
    next() {
      const stepMs = Math.min(mostMs, firstMs * 2 ** Math.min(failures, 30))
      failures += 1
      return Math.round(stepMs / 2 + (stepMs / 2) * random())
    },
    reset() {
      failures = 0
    },
    get failures() {
      return failures
    },
  }
}

/** Waits; ends early, without an error, when `signal` aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/**
 * Aborts after `ms`, or with any of the signals. Node 20 forgets an `AbortSignal.timeout` that only an `AbortSignal.any`
 * refers to once garbage is collected, and such a call would wait for ever: here the timer itself holds the signal.
 */
export function timeLimit(ms: number, ...signals: AbortSignal[]): AbortSignal {
  const late = new AbortController()
  setTimeout(() => late.abort(new DOMException(`took longer than ${ms} ms`, 'TimeoutError')), ms).unref()
  return AbortSignal.any([late.signal, ...signals])
}

/** Resolves when `signal` aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
