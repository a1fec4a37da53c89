import { type DestinationStream, pino } from 'pino'

/** What a log line may carry: never message text, never a token. */
export type LogFields = Record<string, string | number | boolean | null | undefined>

/** One line per event: a short constant text and fields. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields & { error?: unknown }): void
}

/** Log levels in rising order; `silent` writes nothing. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** JSON lines on `destination` (standard error when not given). */
export function jsonLog(level: LogLevel, destination: DestinationStream = pino.destination({ fd: 2, sync: true })): Log {
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return {
    debug: (message, fields = {}) => logger.debug(clean(fields), message),
    info: (message, fields = {}) => logger.info(clean(fields), message),
    warn: (message, fields = {}) => logger.warn(clean(fields), message),
    error: (message, { error, ...fields } = {}) =>
      logger.error({ ...clean(fields), ...(error === undefined ? {} : { err: error }) }, message),
  }
}

/** A log that keeps nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

const SECRET = /\b(vhub_[0-9a-f]{4})[0-9a-f]{28}\b|(bearer\s+)\S+/gi

/** Tokens that slip into a text are cut here, so that no call site can leak one. */
function clean(fields: LogFields): LogFields {
  const safe: LogFields = {}
  for (const [key, value] of Object.entries(fields)) {
    safe[key] = typeof value === 'string' ? redact(value) : value
  }
  return safe
}

/** `text` with bearer tokens and virtual tokens cut off. */
export function redact(text: string): string {
  return text.replace(SECRET, (_whole, virtual?: string, bearer?: string) => `${virtual ?? bearer ?? ''}…`)
}
