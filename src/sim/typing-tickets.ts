import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Tickets that allow a bot to show that it types to a user. */
export interface TypingTickets {
  issue(botId: string, userId: string): string
  isValid(ticket: string, botId: string, userId: string): boolean
}

const LIFETIME_MS = 10 * 60_000

/** Tickets that carry their own proof, so that nothing is kept for them. */
export function createTypingTickets(now: () => number): TypingTickets {
  const secret = randomBytes(32)
  return {
    issue: (botId, userId) => sign(now() + LIFETIME_MS, botId, userId),
    isValid(ticket, botId, userId) {
      const until = Number(Buffer.from(ticket, 'base64').toString('latin1').split('.')[0])
      if (!(until > now())) return false
      const genuine = Buffer.from(sign(until, botId, userId))
      const given = Buffer.from(ticket)
      return genuine.length === given.length && timingSafeEqual(genuine, given)
    },
  }

  function sign(until: number, botId: string, userId: string): string {
    const proof = createHmac('sha256', secret).update(`${until} ${botId} ${userId}`).digest('hex')
    return Buffer.from(`${until}.${proof}`).toString('base64')
  }
}
