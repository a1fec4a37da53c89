import { backoff, sleep as realSleep } from '../../kit/retry.ts'
import { cancelled } from './cancelled.ts'
import { type Provider, ProviderError, type ProviderFailure, type ProviderRequest, type TurnEvent } from './port.ts'

/** How often and how patiently a turn is tried. */
export interface RetryOptions {
  /** How often a turn is asked for at most, the first time included. */
  tries?: number
  firstMs?: number
  mostMs?: number
  /** A provider that wants a longer pause than this is not waited for. */
  mostRetryAfterMs?: number
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>
  random?: () => number
  /** Told before each pause. */
  onRetry?: (retry: { error: ProviderError; attempt: number; waitMs: number }) => void
}

/** Asks again after a failure that may pass, with growing pauses. Never once something of the turn has been told. */
export function withRetries(provider: Provider, options: RetryOptions = {}): Provider {
  const { name, contextWindow, price } = provider
  return { name, contextWindow, price, stream: (request, signal) => tryTurn(provider, options, { request, signal }) }
}

const MAY_PASS: ReadonlySet<ProviderFailure> = new Set<ProviderFailure>(['transient', 'rate_limited'])

async function* tryTurn(
  provider: Provider,
  { tries = 5, firstMs = 2_000, mostMs = 30_000, mostRetryAfterMs = 60_000, ...options }: RetryOptions,
  { request, signal }: { request: ProviderRequest; signal: AbortSignal },
): AsyncGenerator<TurnEvent, void, undefined> {
  const { sleep = realSleep, random = Math.random, onRetry } = options
  const pauses = backoff({ firstMs, mostMs, random })
  for (let attempt = 1; ; attempt++) {
    let told = false
    try {
      for await (const event of provider.stream(request, signal)) {
        told = true
        yield event
      }
      return
    } catch (error) {
      if (signal.aborted) throw error instanceof ProviderError ? error : cancelled(signal)
      if (told || attempt >= tries || !(error instanceof ProviderError) || !MAY_PASS.has(error.kind)) throw error
      if ((error.retryAfterMs ?? 0) > mostRetryAfterMs) throw error
      const waitMs = Math.max(pauses.next(), error.retryAfterMs ?? 0)
      onRetry?.({ error, attempt, waitMs })
      await sleep(waitMs, signal)
      if (signal.aborted) throw cancelled(signal)
    }
  }
}
