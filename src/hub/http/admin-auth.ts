import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import { isLocalCaller, type Request } from '../../kit/http.ts'
import { bearer } from './relay-auth.ts'

export interface AdminAuthOptions {
  /** null: open to callers on this machine. */
  adminToken: string | null
  /** Open to everybody when there is no token. */
  insecure: boolean
  /** Names under which the hub may be called in open mode, beside localhost and IP addresses. */
  allowedHosts: readonly string[]
  now: () => number
}

/** Who may use `/hub/*`. */
export interface AdminAuth {
  /** Throws `unauthorized`, `forbidden` or `too_many_tries`. */
  check(request: Request): void
  /** The cookie for a right token; throws for a wrong one. */
  signIn(token: string, request: Request): string
  readonly signOutCookie: string
  readonly needsToken: boolean
}

const COOKIE = 'switchboard_admin'
const SESSION_MS = 7 * 24 * 60 * 60_000
const MAX_WRONG_TRIES = 20
const TRIES_WINDOW_MS = 60_000
const COOKIE_RULES = 'Path=/hub; HttpOnly; SameSite=Strict'

export function adminAuth({ adminToken, insecure, allowedHosts, now }: AdminAuthOptions): AdminAuth {
  let windowStart = 0
  let wrongTries = 0

  return {
    needsToken: adminToken !== null,
    signOutCookie: `${COOKIE}=; ${COOKIE_RULES}; Max-Age=0`,
    check(request) {
      if (adminToken === null) return checkOpen(request)
      const given = bearer(request)
      // A right token is never refused for wrong tries before it.
      if (given !== null && same(given, adminToken)) return
      if (given === null && hasSession(request, adminToken)) return checkOrigin(request)
      refuse(
        given === null
          ? 'Authorization is missing; send "Authorization: Bearer <admin token>".'
          : 'This admin token is wrong.',
        given !== null,
      )
    },
    signIn(token, request) {
      checkOrigin(request)
      if (adminToken === null)
        throw new AppError('bad_request', 'This hub has no admin token; there is nothing to sign in to.')
      if (!same(token, adminToken)) refuse('This admin token is wrong.', true)
      const until = now() + SESSION_MS
      return `${COOKIE}=${until}.${sign(until, adminToken)}; ${COOKIE_RULES}; Max-Age=${SESSION_MS / 1000}`
    },
  }

  function checkOpen(request: Request): void {
    // First, for --insecure too: open to every caller is not open to another site's page in a caller's browser.
    checkOrigin(request)
    if (insecure) return
    if (!isLocalCaller(request)) {
      throw new AppError(
        'forbidden',
        'Administration is open to this machine only; set RELAY_ADMIN_TOKEN to allow others (or start with --insecure).',
      )
    }
    // A web page elsewhere must not reach this through the visitor's browser, under whatever name it had resolved.
    const host = hostName(request.headers.host ?? '')
    if (!(host === 'localhost' || host.endsWith('.localhost') || isAddress(host) || allowedHosts.includes(host))) {
      throw new AppError(
        'forbidden',
        'Host must be localhost or an IP address; allow another name with --allowed-host, or set RELAY_ADMIN_TOKEN.',
      )
    }
  }

  function refuse(text: string, isTry: boolean): never {
    if (isTry) {
      if (now() - windowStart > TRIES_WINDOW_MS) {
        windowStart = now()
        wrongTries = 0
      }
      wrongTries += 1
      if (wrongTries > MAX_WRONG_TRIES) {
        throw new AppError('too_many_tries', 'Too many wrong admin tokens; wait a minute.', {
          retryAfterMs: TRIES_WINDOW_MS,
        })
      }
    }
    throw new AppError('unauthorized', text)
  }

  function hasSession(request: Request, token: string): boolean {
    const value = cookie(request, COOKIE)
    const [until, signature] = value?.split('.') ?? []
    if (until === undefined || signature === undefined || !/^\d{1,15}$/.test(until)) return false
    return Number(until) > now() && same(signature, sign(Number(until), token))
  }
}

/** A browser says where a request comes from; another site's is refused. */
function checkOrigin(request: Request): void {
  const { origin, host } = request.headers
  if (origin === undefined) return
  if (URL.canParse(origin) && new URL(origin).host === host) return
  throw new AppError('forbidden', 'This request comes from a page of another site.')
}

/** Equal in constant time, whatever the lengths. */
export function same(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

function sign(until: number, token: string): string {
  return createHmac('sha256', token).update(`switchboard-admin:${until}`).digest('base64url')
}

function cookie(request: Request, name: string): string | undefined {
  const pairs = request.headers.cookie?.split(/; */) ?? []
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

function hostName(host: string): string {
  return host
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase()
}

function isAddress(host: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(host) || /^[0-9a-f:.]*:[0-9a-f:.]*$/.test(host)
}
