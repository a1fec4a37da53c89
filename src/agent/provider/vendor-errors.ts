import { redact } from '../../kit/log.ts'
import { ProviderError, type ProviderFailure } from './port.ts'

/** Whom an error is about. */
export interface Party {
  /** As it is told to a person. */
  vendor: string
  /** Where the key comes from, e.g. `OPENAI_API_KEY`. */
  keyNames: readonly string[]
  /** What must not stand in any message. */
  secrets: readonly string[]
}

/**
 * What a vendor's error means to us. Its text becomes part of ours, without keys and addresses' queries; the error itself
 * is not kept as the cause, since it holds the whole request.
 */
export function toProviderError(error: unknown, party: Party, now: number): ProviderError {
  const failure = readFailure(error)
  const kind = classify(failure)
  const retryAfterMs = readRetryAfter(failure, now)
  return new ProviderError(kind, describe(kind, failure, party), { retryAfterMs })
}

interface Failure {
  /** null when there was no answer, or not an answer of HTTP. */
  status: number | null
  text: string
  /** The vendor's own words for the kind of error. */
  code: string
  headers: Record<string, unknown>
  body: string
  /** It came from the network or from what was on it, not from our own request. */
  foreign: boolean
}

function readFailure(error: unknown): Failure {
  const fields = isRecord(error) ? error : {}
  const data = isRecord(fields.data) ? fields.data : {}
  const inner = isRecord(data.error) ? data.error : data
  const code = [fields.code, fields.type, inner.code, inner.type, inner.status].filter(isWord).join(' ')
  const status = typeof fields.statusCode === 'number' ? fields.statusCode : statusOf(code)
  return {
    // A stream that breaks off after a good start has the status of its start.
    status: status !== null && status < 400 ? null : status,
    text: typeof fields.message === 'string' ? fields.message.slice(0, MAX_READ) : '',
    code,
    headers: isRecord(fields.responseHeaders) ? fields.responseHeaders : {},
    body: typeof fields.responseBody === 'string' ? fields.responseBody.slice(0, MAX_READ) : '',
    foreign: !(error instanceof Error) || FOREIGN.test(`${error.name} ${error.message} ${code} ${causeCode(error)}`),
  }
}

const FOREIGN =
  /AI_(APICall|JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoOutputGenerated)Error|fetch failed|terminated|socket|AbortError|TimeoutError|UND_ERR_|E(CONN|PIPE|TIMEDOUT|HOST|NET|AI_)/

/** In a stream that has begun an error has words but no status. */
function statusOf(code: string): number | null {
  if (/rate_limit|RESOURCE_EXHAUSTED/.test(code)) return 429
  if (/authentication|UNAUTHENTICATED/.test(code)) return 401
  if (/permission/i.test(code)) return 403
  if (/overloaded|unavailable/i.test(code)) return 503
  if (/invalid_request|not_found|context_length|INVALID_ARGUMENT/.test(code)) return 400
  return null
}

/** Google says it with a 400. */
const BAD_KEY = /API_KEY_INVALID|API key not valid/

const OVERFLOW =
  /(prompt|input|request) (is|was) too (long|large)|context[_ ](length|window|size)[_ ]?(was )?exceed|exceed[^.]{0,80}(context (window|length|size|limit)|maximum number of tokens|token limit)|maximum (context|prompt|input) length|(greater|longer|larger) than the (model'?s )?context|reduce the length of the (messages|prompt|input)|too many (input )?tokens|request_too_large/i

function classify({ status, text, code, body, foreign }: Failure): ProviderFailure {
  // Said with a 429, but no pause helps: nothing has been paid for.
  if (/insufficient_quota/.test(`${code} ${body}`)) return 'other'
  if (status === 429) return 'rate_limited'
  if (status === 401 || status === 403 || BAD_KEY.test(body)) return 'auth'
  if (status === 413 || OVERFLOW.test(`${text} ${code} ${body}`)) return 'context_overflow'
  if (status === null) return foreign ? 'transient' : 'other'
  if (status >= 500 || status === 408 || status === 409 || status === 425) return 'transient'
  return 'bad_request'
}

/** `retry-after-ms`, `Retry-After` in seconds or as a date, or Google's `retryDelay`. */
function readRetryAfter({ headers, body }: Failure, now: number): number | null {
  const ms = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (ms >= 0) return ms
  const after = headers['retry-after']
  if (typeof after === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(after)) return Math.round(Number(after) * 1_000)
  if (typeof after === 'string' && !Number.isNaN(Date.parse(after))) return Math.max(0, Date.parse(after) - now)
  const delay = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1]
  return delay === undefined ? null : Math.round(Number(delay) * 1_000)
}

function describe(kind: ProviderFailure, failure: Failure, party: Party): string {
  const { vendor, keyNames } = party
  const status = failure.status === null ? '' : ` (${failure.status})`
  // What is said of a refused key repeats a part of it.
  if (kind === 'auth') return `${vendor} refused the key${status}. Check ${keyNames.join(' or ')} and what it may use.`
  const said = clean(failure.text || failure.code || failure.body, party.secrets)
  const tail = said === '' ? '.' : `: ${said}`
  if (kind === 'rate_limited') return `${vendor} takes no more requests for now${status}${tail}`
  if (kind === 'context_overflow') return `The conversation is too long for the model of ${vendor}${status}${tail}`
  if (kind === 'bad_request') return `${vendor} refused the request${status}${tail}`
  if (kind === 'transient' && failure.status === null) return `The answer of ${vendor} broke off or never came${tail}`
  return `${vendor} failed${status}${tail}`
}

const MAX_TEXT = 300
/** No error says anything of use after so many letters. */
const MAX_READ = 10_000
const KEY_LIKE = /\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp)[-_][\w*-]{8,}|AIza[\w-]{12,})/g
const URL_DETAILS = /(https?:\/\/)(?:[^\s/@]*@)?([^\s?#"']+)(?:[?#][^\s"']*)?/g

/** A vendor's text on one line, without what could be a key. */
function clean(text: string, secrets: readonly string[]): string {
  let safe = text
  for (const secret of secrets) if (secret !== '') safe = safe.replaceAll(secret, '…')
  // Cut first: an answer may be of any length, and the patterns are not meant for that.
  safe = redact(safe.slice(0, 3 * MAX_TEXT))
    .replace(URL_DETAILS, '$1$2')
    .replace(KEY_LIKE, '…')
    .replace(/\s+/g, ' ')
    .trim()
  return safe.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT)}…` : safe
}

function causeCode(error: Error): string {
  return isRecord(error.cause) && typeof error.cause.code === 'string' ? error.cause.code : ''
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
