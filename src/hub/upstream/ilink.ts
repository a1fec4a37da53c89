import { randomBytes } from 'node:crypto'
import { Agent, type Dispatcher } from 'undici'
import { elementsOf, parseLossless, withMembers } from '../../kit/lossless-json.ts'
import { type Upstream, type UpstreamBatch, UpstreamError } from './port.ts'

export interface IlinkOptions {
  /** E.g. `https://host`, with or without a path in front of `/ilink/bot/`. */
  baseUrl: string
  botToken: string
  /** How long the service may hold a poll. */
  pollTimeoutMs?: number
  callTimeoutMs?: number
}

const APP_ID = 'bot'
const APP_VERSION = '2.4.9'
const APP_VERSION_NUMBER = String((2 << 16) | (4 << 8) | 9)
const BASE_INFO = `"base_info":{"channel_version":"${APP_VERSION}","bot_agent":"Switchboard"}`
const POLL_TIMEOUT_MS = 45_000 // the service holds about 35 s
const CALL_TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

const LOGIN_GONE = new Set([-14, -13])
const THROTTLED = new Set([-1, -2, 45011, 210205])
/** -2 is overloaded: with one of these words it speaks of the request, not of its rate. */
const BAD_PARAMETER = /required|param|invalid|missing|context|empty/i

/** The real bot protocol over HTTP, as the service's own clients speak it. */
export function ilinkUpstream({
  baseUrl,
  botToken,
  pollTimeoutMs = POLL_TIMEOUT_MS,
  callTimeoutMs = CALL_TIMEOUT_MS,
}: IlinkOptions): Upstream & { close(): Promise<void> } {
  const base = new URL(baseUrl)
  const prefix = `${base.pathname.replace(/\/+$/, '')}/ilink/bot/`
  let agent = newAgent()

  return {
    async poll(cursor, signal) {
      const body = `{"get_updates_buf":${JSON.stringify(cursor)},${BASE_INFO}}`
      return readBatch(await call('getupdates', body, pollTimeoutMs, signal))
    },
    async notify(what, signal) {
      const text = await call(`msg/notify${what}`, `{${BASE_INFO}}`, callTimeoutMs, signal)
      readAnswer(text, { ambiguous: false })
    },
    async send({ userId, contextToken, body }, signal) {
      const token = contextToken === null ? '' : `,"context_token":${JSON.stringify(contextToken)}`
      const msg = withMembers(body, `"from_user_id":"","to_user_id":${JSON.stringify(userId)}${token}`)
      const text = await call('sendmessage', `{"msg":${msg},${BASE_INFO}}`, callTimeoutMs, signal)
      if (text.trim() === '') return { upstreamId: null }
      const { message_id: id } = readAnswer(text, { ambiguous: true, parse: parseLossless })
      return {
        upstreamId: (typeof id === 'number' && id > 0) || (typeof id === 'string' && id !== '') ? String(id) : null,
      }
    },
    async typing({ userId, ticket, on }, signal) {
      const body = `{"ilink_user_id":${JSON.stringify(userId)},"typing_ticket":${JSON.stringify(ticket)},"status":${on ? 1 : 2},${BASE_INFO}}`
      const text = await call('sendtyping', body, callTimeoutMs, signal)
      if (text.trim() !== '') readAnswer(text, { ambiguous: true })
    },
    async typingTicket({ userId, contextToken }, signal) {
      const token = contextToken === null ? '' : `"context_token":${JSON.stringify(contextToken)},`
      const text = await call(
        'getconfig',
        `{"ilink_user_id":${JSON.stringify(userId)},${token}${BASE_INFO}}`,
        callTimeoutMs,
        signal,
      )
      const { typing_ticket: ticket } = readAnswer(text, { ambiguous: false })
      if (typeof ticket !== 'string')
        throw new UpstreamError('bad_answer', 'getconfig answered without a typing ticket')
      return ticket
    },
    async uploadUrl(body, signal) {
      const text = await call('getuploadurl', withMembers(body, BASE_INFO), callTimeoutMs, signal)
      readAnswer(text, { ambiguous: false })
      return text
    },
    async close() {
      await agent.destroy()
    },
  }

  async function call(path: string, body: string, timeoutMs: number, signal: AbortSignal): Promise<string> {
    let answer: Dispatcher.ResponseData
    let text: string
    try {
      answer = await agent.request({
        origin: base.origin,
        path: prefix + path,
        method: 'POST',
        headers: ilinkHeaders(botToken),
        body,
        signal,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      })
      // Of a poll: head and all within two holds of the service.
      text = await readWithin(timeoutMs / 2, answer.body)
    } catch (error) {
      throw networkError(path, error, signal)
    }
    if (answer.statusCode === 200) return text
    throw httpError(path, answer.statusCode)
  }

  function networkError(path: string, error: unknown, signal: AbortSignal): UpstreamError {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
    const isTimeout = (reason: unknown) => reason instanceof Error && reason.name === 'TimeoutError'
    const timedOut =
      code === 'UND_ERR_HEADERS_TIMEOUT' ||
      code === 'UND_ERR_BODY_TIMEOUT' ||
      isTimeout(error) ||
      isTimeout(signal.reason)
    if (timedOut && path === 'getupdates') {
      // A poll that is never answered may hang on a connection that is dead at the other end: start over on new ones. What
      // is under way on the old ones has a time limit of its own.
      void agent.close()
      agent = newAgent()
    }
    const neverSent = [
      'ECONNREFUSED',
      'ENOTFOUND',
      'EAI_AGAIN',
      'EHOSTUNREACH',
      'ENETUNREACH',
      'UND_ERR_CONNECT_TIMEOUT',
    ]
    const tooLarge = code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE'
    const failed = tooLarge ? `was answered with more than ${MAX_ANSWER_BYTES / 2 ** 20} MiB` : `failed (${code})`
    const reason = timedOut ? 'was not answered in time' : signal.aborted ? 'was given up' : failed
    return new UpstreamError('unreachable', `${path} ${reason}`, {
      ambiguous: !neverSent.includes(code),
      timedOut,
      cause: error,
    })
  }
}

/** An answer that trickles in byte by byte is none. Costs no signal of its own: polls may come fast. */
async function readWithin(ms: number, body: Dispatcher.ResponseData['body']): Promise<string> {
  const giveUp = setTimeout(() => body.destroy(new DOMException('The time is up.', 'TimeoutError')), ms)
  try {
    return await body.text()
  } finally {
    clearTimeout(giveUp)
  }
}

function newAgent(): Agent {
  return new Agent({
    connections: 128,
    keepAliveTimeout: 30_000,
    connectTimeout: 10_000,
    maxResponseSize: MAX_ANSWER_BYTES,
  })
}

/** What the service's own clients send with every call; without a token on those before the login. */
export function ilinkHeaders(botToken: string | null): Record<string, string> {
  return {
    'content-type': 'application/json',
    authorizationtype: 'ilink_bot_token',
    ...(botToken === null ? {} : { authorization: `Bearer ${botToken}` }),
    'x-wechat-uin': Buffer.from(String(randomBytes(4).readUInt32BE())).toString('base64'),
    'ilink-app-id': APP_ID,
    'ilink-app-clientversion': APP_VERSION_NUMBER,
  }
}

function httpError(path: string, status: number): UpstreamError {
  const text = `${path} was answered with HTTP ${status}`
  if (status === 401 || status === 403) return new UpstreamError('expired', text, { upstreamCode: status })
  if (status === 429) return new UpstreamError('throttled', text, { upstreamCode: status })
  if (status >= 500) return new UpstreamError('unreachable', text, { upstreamCode: status, ambiguous: true })
  return new UpstreamError('bad_answer', text, { upstreamCode: status })
}

/** The answer to a poll. */
function readBatch(text: string): UpstreamBatch {
  const answer = readAnswer(text, { ambiguous: false })
  const parsed = answer.msgs ?? []
  if (!Array.isArray(parsed)) throw new UpstreamError('bad_answer', 'getupdates answered msgs that are no list')
  const next = answer.get_updates_buf
  const cursor = typeof next === 'string' && next !== '' ? next : null
  return parsed.length === 0 ? { messages: [], cursor } : { messages: elementsOf(text, 'msgs'), parsed, cursor }
}

/** The fields of an answer, or what its code means. */
export function readAnswer(
  text: string,
  { ambiguous, parse = JSON.parse }: { ambiguous: boolean; parse?: (text: string) => unknown },
): Record<string, unknown> {
  let answer: unknown
  try {
    answer = parse(text)
  } catch {
    throw new UpstreamError('bad_answer', 'the answer is not JSON', { ambiguous })
  }
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) {
    throw new UpstreamError('bad_answer', 'the answer is not a JSON object', { ambiguous })
  }
  const fields: Record<string, unknown> = { ...answer }
  const code = [fields.ret, fields.errcode].map(codeOf).find((value) => value !== 0)
  if (code === undefined) return fields
  const said = typeof fields.errmsg === 'string' ? fields.errmsg : ''
  if (LOGIN_GONE.has(code)) throw new UpstreamError('expired', `the service answered ${code}`, { upstreamCode: code })
  const throttled = THROTTLED.has(code) && !(code === -2 && BAD_PARAMETER.test(said))
  throw new UpstreamError(throttled ? 'throttled' : 'refused', `the service answered ${code}`, { upstreamCode: code })
}

/** A code is a number; one in quotes counts too, so that a refusal is never taken for a yes. */
function codeOf(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : 0
}
