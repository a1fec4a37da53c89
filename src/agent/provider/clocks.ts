import { cancelled } from './cancelled.ts'
import { type Provider, ProviderError, type ProviderRequest, type TurnEvent } from './port.ts'

/** How long a provider may be silent. */
export interface Clocks {
  /** Before the first sign of life. */
  firstByteMs: number
  /** Between two signs of life. */
  betweenChunksMs: number
  /** All in all. */
  wholeTurnMs: number
}

/** What counts when nothing else is said. */
const DEFAULT_CLOCKS: Clocks = { firstByteMs: 90_000, betweenChunksMs: 120_000, wholeTurnMs: 600_000 }

/**
 * Ends a turn that has gone silent with a `transient` error and aborts the call. Works on any provider, also on one that
 * ignores its signal or never settles: it is left behind. The clocks stand still while the caller does not ask for more.
 */
export function withClocks(provider: Provider, clocks: Partial<Clocks> = {}): Provider {
  const { name, contextWindow, price } = provider
  const limits = { ...DEFAULT_CLOCKS, ...clocks }
  return { name, contextWindow, price, stream: (request, signal) => watchTurn(provider, limits, { request, signal }) }
}

async function* watchTurn(
  provider: Provider,
  clocks: Clocks,
  { request, signal }: { request: ProviderRequest; signal: AbortSignal },
): AsyncGenerator<TurnEvent, void, undefined> {
  const call = new AbortController()
  const watch: Watch = { clocks, anything: false, waitedMs: 0, restart: () => {} }
  const onActivity = () => {
    hear(watch)
    request.onActivity?.()
  }
  const events = provider.stream({ ...request, onActivity }, call.signal)[Symbol.asyncIterator]()
  try {
    while (true) {
      const step = await within(watch, signal, () => events.next())
      if (step.done) return
      hear(watch)
      yield step.value
    }
  } finally {
    call.abort(signal.reason)
    abandon(events)
  }
}

interface Watch {
  clocks: Clocks
  /** Whether there was a sign of life yet. */
  anything: boolean
  /** How long the turn has been waited for. */
  waitedMs: number
  /** Starts the clock of silence anew. */
  restart: () => void
}

function hear(watch: Watch): void {
  watch.anything = true
  watch.restart()
}

/** What `next` gives, or an error when that takes too long or `signal` aborts. */
async function within<T>(watch: Watch, signal: AbortSignal, next: () => Promise<T>): Promise<T> {
  if (signal.aborted) throw cancelled(signal)
  const alarm = startAlarm(watch, signal)
  const startedAt = performance.now()
  try {
    return await Promise.race([alarm.rings, next()])
  } finally {
    alarm.stop()
    watch.waitedMs += performance.now() - startedAt
  }
}

function startAlarm(watch: Watch, signal: AbortSignal): { rings: Promise<never>; stop: () => void } {
  const { firstByteMs, betweenChunksMs, wholeTurnMs } = watch.clocks
  let ring: (error: ProviderError) => void = () => {}
  const rings = new Promise<never>((_resolve, reject) => {
    ring = reject
  })
  const late = (text: string) => ring(new ProviderError('transient', text))
  const tooLong = `The model took longer than ${wholeTurnMs} ms for a turn.`
  const whole = setTimeout(late, wholeTurnMs - watch.waitedMs, tooLong)
  let silence: NodeJS.Timeout | undefined
  watch.restart = () => {
    clearTimeout(silence)
    const silentMs = watch.anything ? betweenChunksMs : firstByteMs
    silence = setTimeout(late, silentMs, `The model was silent for ${silentMs} ms.`)
  }
  watch.restart()
  const onAbort = () => ring(cancelled(signal))
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    rings,
    stop() {
      clearTimeout(whole)
      clearTimeout(silence)
      watch.restart = () => {}
      signal.removeEventListener('abort', onAbort)
    },
  }
}

/** Tells an iterator that no more is wanted. Not awaited: one that hangs would hang its caller here. */
function abandon(events: AsyncIterator<TurnEvent>): void {
  events.return?.().then(undefined, () => {})
}
