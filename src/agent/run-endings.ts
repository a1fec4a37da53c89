import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import type { FinishReason, Run } from './model.ts'
import { ProviderError } from './provider/port.ts'

/** How a run ended, and with which error. */
export interface Finished {
  type: 'finished'
  reason: FinishReason
  error?: { code: string; message: string }
}

/** Said to who comes with something new while the server ends. */
export function shuttingDown(): AppError {
  return new AppError('shutting_down', 'The server is shutting down; try again shortly.', { retryAfterMs: 2_000 })
}

/** The ending of a run that threw: what a person is told of it, and the log if nobody foresaw it. */
export function failureOf(error: unknown, log: Log, run: Pick<Run, 'id'>): Finished {
  if (error instanceof ProviderError) {
    return {
      type: 'finished',
      reason: 'ProviderStop',
      error: { code: `provider_${error.kind}`, message: error.message },
    }
  }
  if (error instanceof AppError)
    return { type: 'finished', reason: 'ProviderStop', error: { code: error.code, message: error.message } }
  log.error('a run failed unexpectedly', { runId: run.id, error })
  return {
    type: 'finished',
    reason: 'Interrupted',
    error: { code: 'internal', message: `Something went wrong in the server; its log says more under ${run.id}.` },
  }
}
