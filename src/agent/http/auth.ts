import { createHash, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'
import { isLocalCaller, type Request } from '../../kit/http.ts'

export interface ApiAuthOptions {
  /** null: open to callers on this machine. */
  keys: readonly string[] | null
  insecure: boolean
  allowedHosts: readonly string[]
  /** Sites whose pages may call, beside those of this server. */
  allowedOrigins: readonly string[]
}

/** Who may call the API. Returns a name for the caller, for limits and receipts: never the key itself. */
export type ApiAuth = (request: Request) => string

export function apiAuth({ keys, insecure, allowedHosts, allowedOrigins }: ApiAuthOptions): ApiAuth {
  const known = keys?.map(digest) ?? null
  return (request) => {
    if (known === null) {
      checkOpen(request)
      return request.raw.socket.remoteAddress ?? 'local'
    }
    const given = keyOf(request)
    if (given === null) throw new AppError('unauthorized', 'An API key is missing; send it in the X-API-Key header.')
    const offered = digest(given)
    // Every key is compared, so that the time tells nothing.
    const matches = known.filter((key) => timingSafeEqual(key, offered))
    if (matches.length === 0)
      throw new AppError('unauthorized', 'This API key is not accepted; check the X-API-Key header.')
    return `key:${offered.toString('hex').slice(0, 16)}`
  }

  function checkOpen(request: Request): void {
    if (insecure) return
    if (!isLocalCaller(request)) {
      throw new AppError(
        'forbidden',
        'The API is open to this machine only; start the server with --auth-keys to allow others (or --insecure).',
      )
    }
    const host = (request.headers.host ?? '')
      .replace(/:\d+$/, '')
      .replace(/^\[(.*)\]$/, '$1')
      .toLowerCase()
    const isAddress = /^\d{1,3}(\.\d{1,3}){3}$/.test(host) || /^[0-9a-f:.]*:[0-9a-f:.]*$/.test(host)
    if (!(host === 'localhost' || host.endsWith('.localhost') || isAddress || allowedHosts.includes(host))) {
      throw new AppError(
        'forbidden',
        'Host must be localhost or an IP address; allow another name with --allowed-host, or use --auth-keys.',
      )
    }
    const { origin } = request.headers
    if (origin === undefined || allowedOrigins.includes(origin.toLowerCase())) return
    if (!(URL.canParse(origin) && new URL(origin).host === request.headers.host)) {
      throw new AppError('forbidden', 'This request comes from a page of another site; allow it with --allow-origin.')
    }
  }
}

/** The key that a request carries, or null. */
export function keyOf(request: Request): string | null {
  const header = request.headers['x-api-key']
  if (typeof header === 'string' && header !== '') return header
  return /^bearer +(\S+)$/i.exec(request.headers.authorization?.trim() ?? '')?.[1] ?? null
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
