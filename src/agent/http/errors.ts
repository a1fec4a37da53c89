import { randomUUID } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import type { ErrorAnswer, Request } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'

const STATUS: Record<string, number> = {
  bad_request: 422,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  session_busy: 409,
  no_plan: 409,
  plan_decided: 409,
  key_reused: 409,
  cursor_expired: 410,
  too_large: 413,
  unsupported_media_type: 415,
  unknown_model: 422,
  model_not_configured: 422,
  workspace_outside: 422,
  workspace_not_a_folder: 422,
  outside_workspace: 422,
  queue_full: 429,
  too_many_requests: 429,
  too_many_runs: 429,
  too_many_sessions: 429,
  provider_failed: 502,
  shutting_down: 503,
  store_failed: 503,
}

/** The one place where errors of the agent server become answers. */
export function agentErrorAnswer(
  log: Log,
  onRefused: (code: string) => void,
): (error: unknown, request: Request) => ErrorAnswer {
  return (error, request) => {
    const requestId = randomUUID()
    const known =
      error instanceof AppError && STATUS[error.code] !== undefined ? error : unexpected(error, request, requestId, log)
    const status = statusOf(known)
    onRefused(known.code)
    const headers: Record<string, string> = { 'x-request-id': requestId }
    if (status === 401) headers['www-authenticate'] = 'ApiKey header="X-API-Key"'
    if (known.retryAfterMs !== undefined) headers['retry-after'] = String(Math.ceil(known.retryAfterMs / 1000))
    if (typeof known.details?.allow === 'string') headers.allow = known.details.allow
    const details = known.details === undefined ? {} : { details: known.details }
    return {
      status,
      headers,
      body: { error: { code: known.code, message: known.message, ...details }, request_id: requestId },
    }
  }
}

/** A body that cannot be read is 400; one that can, with a field that is wrong, 422. */
function statusOf({ code, details }: AppError): number {
  if (code === 'bad_request' && details?.field === undefined) return 400
  return STATUS[code] ?? 500
}

function unexpected(error: unknown, request: Request, reference: string, log: Log): AppError {
  log.error('request failed unexpectedly', {
    reference,
    method: request.method,
    route: request.routeOptions.url ?? '?',
    error,
  })
  return new AppError('internal', `Something went wrong in the server; its log says more under ${reference}.`, {
    details: { reference },
  })
}
