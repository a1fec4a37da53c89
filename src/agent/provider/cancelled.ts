import { ProviderError } from './port.ts'

/** What a turn throws when its caller no longer wants it. */
export function cancelled(signal: AbortSignal): ProviderError {
  return new ProviderError('other', 'The call of the model was cancelled.', { cause: signal.reason })
}
