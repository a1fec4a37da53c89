import { request } from 'undici'
import { ilinkHeaders, readAnswer } from './ilink.ts'
import { type QrProgress, type QrService, UpstreamError } from './port.ts'

export interface IlinkLoginOptions {
  /** Where logins begin. */
  baseUrl: string
  callTimeoutMs?: number
  /** The service may hold a status call for about 35 s. */
  statusTimeoutMs?: number
}

const CALL_TIMEOUT_MS = 15_000
const STATUS_TIMEOUT_MS = 45_000
const BOT_TYPE = '3'
const MOST_CONTENT = 2_000

/** The service's words for the states of a code, and ours. */
const STATUSES = {
  wait: 'wait',
  scaned: 'scanned',
  need_verifycode: 'need_verify_code',
  verify_code_blocked: 'verify_code_blocked',
  binded_redirect: 'already_bound',
  expired: 'expired',
} as const

/** Logins by QR code as the service's own clients make them. */
export function ilinkLogin({
  baseUrl,
  callTimeoutMs = CALL_TIMEOUT_MS,
  statusTimeoutMs = STATUS_TIMEOUT_MS,
}: IlinkLoginOptions): QrService {
  return {
    async begin(signal) {
      // The list is for telling the service which bots one has; their tokens stay here.
      const body = '{"local_token_list":[]}'
      const text = await call(`get_bot_qrcode?bot_type=${BOT_TYPE}`, { body, timeoutMs: callTimeoutMs, signal })
      const { qrcode, qrcode_img_content: content } = readAnswer(text, { ambiguous: false })
      if (!isText(qrcode) || !isText(content) || content.length > MOST_CONTENT)
        throw new UpstreamError('bad_answer', 'get_bot_qrcode answered without a QR code')
      return { qrcode, content }
    },
    async status({ qrcode, verifyCode, baseUrl: moved }, signal) {
      const query = new URLSearchParams({ qrcode, ...(verifyCode === null ? {} : { verify_code: verifyCode }) })
      const path = `get_qrcode_status?${query}`
      try {
        const at = moved ?? baseUrl
        const text = await call(path, { at, timeoutMs: statusTimeoutMs, signal })
        return readProgress(readAnswer(text, { ambiguous: false }))
      } catch (error) {
        // A status call that is held too long says as much as one that is answered with `wait`.
        if (error instanceof UpstreamError && error.timedOut) return { status: 'wait' }
        throw error
      }
    },
  }

  async function call(
    path: string,
    how: { at?: string; body?: string; timeoutMs: number; signal: AbortSignal },
  ): Promise<string> {
    const { at = baseUrl, body, timeoutMs, signal } = how
    const name = path.slice(0, path.indexOf('?'))
    const url = new URL(at)
    try {
      const answer = await request(`${url.origin}${url.pathname.replace(/\/+$/, '')}/ilink/bot/${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: ilinkHeaders(null),
        ...(body === undefined ? {} : { body }),
        signal,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      })
      const text = await answer.body.text()
      if (answer.statusCode === 200) return text
      throw new UpstreamError(
        answer.statusCode >= 500 ? 'unreachable' : 'bad_answer',
        `${name} was answered with HTTP ${answer.statusCode}`,
        { upstreamCode: answer.statusCode },
      )
    } catch (error) {
      if (error instanceof UpstreamError) throw error
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
      const timedOut = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT'
      throw new UpstreamError('unreachable', `${name} ${timedOut ? 'was not answered in time' : `failed (${code})`}`, {
        timedOut,
        cause: error,
      })
    }
  }
}

function readProgress(answer: Record<string, unknown>): QrProgress {
  const { status, bot_token: botToken, ilink_bot_id: botId, ilink_user_id: userId, baseurl } = answer
  if (status === 'scaned_but_redirect') {
    // Without a host the login stays where it is.
    return isText(answer.redirect_host) ? { status: 'redirect', host: answer.redirect_host } : { status: 'scanned' }
  }
  if (status === 'confirmed') {
    if (!isText(botToken) || !isText(botId))
      throw new UpstreamError('bad_answer', 'the login was confirmed without a bot token and id')
    return {
      status,
      botToken,
      botId,
      userId: isText(userId) ? userId : null,
      baseUrl: isText(baseurl) ? baseurl : null,
    }
  }
  const known = typeof status === 'string' && isStatus(status) ? STATUSES[status] : undefined
  if (known === undefined) throw new UpstreamError('bad_answer', 'get_qrcode_status answered a status nobody knows')
  return { status: known }
}

function isStatus(status: string): status is keyof typeof STATUSES {
  return Object.hasOwn(STATUSES, status)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}
