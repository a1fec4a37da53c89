import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { BURST_SECONDS, rateLimit } from '../../kit/rate.ts'
import { type ApiAuthOptions, apiAuth, keyOf } from './auth.ts'
import type { StreamTickets } from './tickets.ts'

export interface DoorOptions extends ApiAuthOptions {
  tickets: StreamTickets
  /** Calls of one key or address; 0 sets no limit. */
  requestsPerSecond: number
  now: () => number
}

/** The console's files are among them: they hold nothing of anybody's. */
const OPEN_PATHS = new Set(['/health', '/ready', '/ui', '/ui/assets/:file'])
/** The only path that a ticket opens. */
const STREAM_PATH = '/sessions/:id/events'

/** Lets callers in: those with a key or a ticket (or on this machine), as often as they may. Gives each one's name. */
export function frontDoor(app: HttpServer, options: DoorOptions): (request: { raw: object }) => string {
  const { tickets, requestsPerSecond, now, ...access } = options
  const auth = apiAuth(access)
  const rate = rateLimit(requestsPerSecond, now, 'with this key or from this address')
  const callers = new WeakMap<object, string>()

  app.addHook('onRequest', (request, reply, done) => {
    const path = request.routeOptions.url
    if (path !== undefined && OPEN_PATHS.has(path)) return done()
    const caller = admit(request, reply)
    callers.set(request.raw, caller)
    count(caller, reply)
    done()
  })
  return ({ raw }) => callers.get(raw) ?? ''

  function admit(request: Request, reply: Reply): string {
    try {
      const byTicket = access.keys !== null && keyOf(request) === null ? ticketOf(request) : null
      if (byTicket === null) return auth(request)
      tickets.check(byTicket.ticket, byTicket.sessionId, request.headers['last-event-id'] !== undefined)
      return `ticket:${byTicket.sessionId}`
    } catch (error) {
      // Who guesses keys is slowed down like who has one.
      count(`refused:${request.raw.socket.remoteAddress ?? ''}`, reply)
      throw error
    }
  }

  function count(caller: string, reply: Reply): void {
    if (requestsPerSecond === 0) return
    const most = requestsPerSecond * BURST_SECONDS
    const tell = (remaining: number, resetSeconds: number) =>
      void reply.headers({
        'ratelimit-limit': String(most),
        'ratelimit-remaining': String(remaining),
        'ratelimit-reset': String(resetSeconds),
        'ratelimit-policy': `${most};w=${BURST_SECONDS}`,
      })
    tell(0, BURST_SECONDS)
    const { remaining, resetSeconds } = rate.take(caller)
    tell(remaining, resetSeconds)
  }
}

/** The ticket in the query of a stream's address. */
function ticketOf(request: Request): { ticket: string; sessionId: string } | null {
  if (request.routeOptions.url !== STREAM_PATH) return null
  const [query, params] = [new Map(entriesOf(request.query)), new Map(entriesOf(request.params))]
  const ticket = query.get('ticket')
  if (typeof ticket !== 'string') return null
  return { ticket, sessionId: String(params.get('id')).toLowerCase() }
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : []
}
