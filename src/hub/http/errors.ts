import { randomBytes } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import type { ErrorAnswer } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'

const STATUS: Record<string, number> = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  unknown_context: 404,
  unknown_media: 404,
  method_not_allowed: 405,
  name_taken: 409,
  client_gone: 409,
  queue_full: 409,
  displaced: 409,
  conflict: 409,
  too_large: 413,
  upstream_refused: 422,
  too_many_requests: 429,
  too_many_polls: 429,
  too_many_sends: 429,
  too_many_tries: 429,
  upstream_throttled: 429,
  send_budget_used: 429,
  upstream_down: 503,
  store_failed: 503,
  lease_lost: 503,
  no_leader: 503,
  media_busy: 503,
}

const MEDIA_PATH = '/c2c/'

/** Paths of the bot protocol, whose clients look for a code in the body. */
function isRelayPath(url: string): boolean {
  return url.startsWith('/relay/') || url.startsWith('/ilink/') || url.startsWith(MEDIA_PATH)
}

/** What an answer depends on beside the error. */
export interface FailedRequest {
  url: string
  method: string
  routeOptions?: { url?: string | undefined }
}

/** The one place where errors of the hub become answers. */
export function hubErrorAnswer(log: Log): (error: unknown, request: FailedRequest) => ErrorAnswer {
  return (error, request) => {
    const known =
      error instanceof AppError && STATUS[error.code] !== undefined ? error : unexpected(error, request, log)
    const status = STATUS[known.code] ?? 500
    const headers: Record<string, string> = {}
    if (status === 401) headers['www-authenticate'] = 'Bearer'
    if (known.retryAfterMs !== undefined) headers['retry-after'] = String(Math.ceil(known.retryAfterMs / 1000))
    if (typeof known.details?.allow === 'string') headers.allow = known.details.allow
    // Clients of the file store look for the reason here.
    if (request.url.startsWith(MEDIA_PATH)) headers['x-error-message'] = known.message.replace(/[^ -~]/g, '?')
    return { status, headers, body: isRelayPath(request.url) ? relayBody(known, status) : hubBody(known) }
  }
}

function relayBody({ message, details, retryAfterMs }: AppError, status: number): unknown {
  const retry = retryAfterMs === undefined ? {} : { retry_after_ms: Math.ceil(retryAfterMs) }
  return { ...details, ret: status, errcode: status, errmsg: message, ...retry }
}

function hubBody({ code, message, details, retryAfterMs }: AppError): unknown {
  const retry = retryAfterMs === undefined ? {} : { retry_after_ms: Math.ceil(retryAfterMs) }
  const more = { ...details, ...retry }
  return { error: { code, message, ...(Object.keys(more).length > 0 ? { details: more } : {}) } }
}

function unexpected(error: unknown, request: FailedRequest, log: Log): AppError {
  const reference = randomBytes(6).toString('hex')
  log.error('request failed unexpectedly', {
    reference,
    method: request.method,
    route: request.routeOptions?.url ?? 'getupdates',
    error,
  })
  return new AppError('internal', `Something went wrong in the hub; its log says more under ${reference}.`, {
    details: { reference },
  })
}
