import { AppError } from '../../kit/errors.ts'
import type { ErrorAnswer, Request } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'

const STATUS: Record<string, number> = {
  bad_request: 400,
  upload_refused: 400,
  foreign_origin: 403,
  not_found: 404,
  unknown_bot: 404,
  unknown_message: 404,
  unknown_qr: 404,
  no_media: 404,
  media_gone: 404,
  method_not_allowed: 405,
  bot_exists: 409,
  qr_used: 409,
  qr_expired: 410,
  too_large: 413,
  bad_media: 422,
  inbox_full: 503,
}

/** Business errors of the bot protocol come with HTTP 200; this is their `ret`. */
const RET: Record<string, number> = { bad_request: -2, too_large: -2, unknown_user: -3, session_timeout: -14 }

/** How the sim tells that something failed: in the shape of the API that was called. */
export function errorAnswers(log: Log): (error: unknown, request: Request) => ErrorAnswer {
  return (error, request) => {
    const { code, message, details } = error instanceof AppError ? error : internal(error, log)
    if (request.url.startsWith('/ilink/')) return { status: 200, ...protocolError(code, message) }
    const headers: Record<string, string> = typeof details?.allow === 'string' ? { allow: details.allow } : {}
    if (request.url.startsWith('/c2c/')) headers['x-error-message'] = message.replace(/[^ -~]/g, '?')
    return { status: STATUS[code] ?? 500, body: { error: { code, message, ...details } }, headers }
  }
}

/** A refusal in the bot protocol, as JSON text. */
export function refusal(ret: number, errmsg: string): string {
  return JSON.stringify({ ret, errcode: ret, errmsg })
}

function protocolError(code: string, errmsg: string): { status?: number; body: unknown } {
  const ret = RET[code]
  if (ret === undefined) return { status: STATUS[code] ?? 500, body: { ret: -1, errcode: -1, errmsg } }
  return { body: { ret, errcode: ret, errmsg } }
}

function internal(error: unknown, log: Log): AppError {
  log.error('call failed', { error })
  return new AppError('internal', 'The sim failed; its log says why.')
}
