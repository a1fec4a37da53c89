import { type DestinationStream, pino } from 'pino'
import { errorText } from './errors.ts'

/** What a log line may carry: never message text, never a token. */
export type LogFields = Record<string, string | number | boolean | null | undefined>

/** Fields of an error line. */
export interface ErrorFields {
  error?: unknown
  [field: string]: unknown
}

/** One line per event: a short constant text and fields. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  /** `error` may be anything that was thrown; its text, code, stack and causes are logged. */
  error(message: string, fields?: ErrorFields): void
}

/** Log levels in rising order; `silent` writes nothing. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** JSON lines on `destination` (standard error when not given). */
export function jsonLog(
  level: LogLevel,
  destination: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Log {
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return {
    debug: (message, fields = {}) => logger.debug(clean(fields), redact(message)),
    info: (message, fields = {}) => logger.info(clean(fields), redact(message)),
    warn: (message, fields = {}) => logger.warn(clean(fields), redact(message)),
    error: (message, { error, ...fields } = {}) =>
      logger.error({ ...clean(fields), ...(error === undefined ? {} : { error: describe(error) }) }, redact(message)),
  }
}

/** A log that keeps nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** `text` with what looks like a token cut off: bearer tokens, virtual tokens, the bot's own, and those in a URL's query. */
export function redact(text: string): string {
  return text.replace(
    SECRET,
    (_whole, ...groups: (string | undefined)[]) => `${groups.slice(0, 4).find(Boolean) ?? ''}…`,
  )
}

const SECRET =
  /(vhub_[0-9a-f]{0,4})[0-9a-f]*|(bearer\s+)[^\s"']+|(@im\.bot:)[^\s"']+|([?&]\w{0,40}(?:token|key|secret)=)[^&\s"']+/gi
const SECRET_NAME = /token|secret|password|authorization|cookie/i
const OWN_NAMES = new Set(['level', 'time', 'msg'])
const MAX_CAUSES = 5

/** Tokens that slip into a text are cut here, so that no call site can leak one. */
function clean(fields: Record<string, unknown>): Record<string, unknown> {
  const safe: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields)) {
    // A name of pino's own would stand twice in the line.
    const name = OWN_NAMES.has(key) ? `${key}_` : key
    if (isHarmless(value)) safe[name] = value
    else safe[name] = SECRET_NAME.test(key) ? '…' : redact(errorText(value))
  }
  return safe
}

function isHarmless(value: unknown): boolean {
  return value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean'
}

interface ErrorRecord {
  type: string
  message: string
  code?: string
  stack?: string
  cause?: ErrorRecord
}

/** An error without its other properties: requests, headers and bodies hang on some of them. */
function describe(error: unknown, depth = 0): ErrorRecord {
  if (!(error instanceof Error)) return { type: typeof error, message: redact(errorText(error)) }
  return {
    type: error.name,
    message: redact(errorText(error)),
    ...('code' in error && typeof error.code === 'string' ? { code: redact(error.code) } : {}),
    ...(error.stack === undefined ? {} : { stack: redact(error.stack) }),
    ...(error.cause === undefined || depth >= MAX_CAUSES ? {} : { cause: describe(error.cause, depth + 1) }),
  }
}
