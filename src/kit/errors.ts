/** What an {@link AppError} may carry beside its text. */
export interface AppErrorOptions {
  cause?: unknown
  /** Fields added to the error body, e.g. the name of the field that was wrong. Never a secret. */
  details?: Record<string, unknown>
  /** When trying again makes sense; becomes `Retry-After`. */
  retryAfterMs?: number
}

/**
 * A failure that was foreseen. `code` is stable and for programs; `message` is for a person and says what to do.
 * Anything else that is thrown is a bug and is shown as `internal`.
 */
export class AppError extends Error {
  readonly code: string
  readonly details: Record<string, unknown> | undefined
  readonly retryAfterMs: number | undefined

  constructor(code: string, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.details = options.details
    this.retryAfterMs = options.retryAfterMs
  }
}

/** The text of anything that was thrown, for a log line. */
export function errorText(error: unknown): string {
  // Not every object can be made a string (`Object.create(null)`), but this always works.
  if (typeof error === 'object' && !(error instanceof Error)) return Object.prototype.toString.call(error)
  if (!(error instanceof Error)) return String(error)
  // A refused connection to a name with several addresses has no text of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(errorText).join('; ')
  return error.message || error.name
}
