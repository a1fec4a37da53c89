import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../kit/errors.ts'

/** Lets a browser's EventSource, which cannot send a header, read one session's events. */
export interface StreamTickets {
  issue(sessionId: string): { ticket: string; expiresAt: number }
  /** Fails with `unauthorized`. A first connection must come soon; one that comes back with its last event has longer. */
  check(ticket: string, sessionId: string, comesBack: boolean): void
}

const CONNECT_WITHIN_MS = 60_000
const COME_BACK_WITHIN_MS = 60 * 60_000

/** Signed, not stored: a ticket is the time it was made and proof that this server made it, for this session. */
export function streamTickets(now: () => number, secret: Buffer): StreamTickets {
  const sign = (sessionId: string, issued: string, nonce: string) =>
    createHmac('sha256', secret).update(`${sessionId}\n${issued}\n${nonce}`).digest('base64url')

  return {
    issue(sessionId) {
      const at = now()
      const [issued, nonce] = [at.toString(36), randomBytes(9).toString('base64url')]
      return {
        ticket: `${issued}.${nonce}.${sign(sessionId, issued, nonce)}`,
        expiresAt: at + CONNECT_WITHIN_MS,
      }
    },
    check(ticket, sessionId, comesBack) {
      const [issued = '', nonce = '', mac = ''] = ticket.split('.')
      const given = Buffer.from(mac)
      const right = Buffer.from(sign(sessionId, issued, nonce))
      const isOurs = given.length === right.length && timingSafeEqual(given, right)
      const ageMs = now() - Number.parseInt(issued, 36)
      if (isOurs && ageMs <= (comesBack ? COME_BACK_WITHIN_MS : CONNECT_WITHIN_MS)) return
      throw new AppError(
        'unauthorized',
        isOurs
          ? 'This stream ticket is too old; ask for another with POST /sessions/:id/events/ticket.'
          : 'This stream ticket is not one of this session; ask for one with POST /sessions/:id/events/ticket.',
      )
    },
  }
}
