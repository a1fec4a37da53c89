import { memoryDoorbell } from '../kit/doorbell.ts'
import type { Log } from '../kit/log.ts'
import { type Bots, createBots } from './bots.ts'
import { type Conversations, createConversations } from './conversations.ts'
import { createFaults, type Faults } from './faults.ts'
import { createMediaStore, type MediaStore } from './media.ts'
import { messageIds } from './message-ids.ts'
import { type NewsDoorbell, newsDoorbell } from './news.ts'
import { createParking, type Parking } from './parking.ts'
import { createQrLogin, type QrLogin } from './qr-login.ts'
import { createTypingTickets, type TypingTickets } from './typing-tickets.ts'

/** Everything the sim holds, in memory. */
export interface World {
  readonly now: () => number
  readonly log: Log
  readonly holdMs: number
  /** Where this sim is reached; known once it listens. */
  url: string
  readonly nextMessageId: () => string
  readonly doorbell: NewsDoorbell
  readonly bots: Bots
  readonly conversations: Conversations
  readonly faults: Faults
  readonly media: MediaStore
  readonly parking: Parking
  readonly qr: QrLogin
  readonly tickets: TypingTickets
}

/** A world with one bot and nobody in it. */
export function createWorld(options: { now: () => number; log: Log; holdMs: number; botToken: string }): World {
  const { now, log, holdMs, botToken } = options
  const doorbell = newsDoorbell(memoryDoorbell())
  const bots = createBots(botToken)
  const faults = createFaults(now)
  const parking = createParking(doorbell)
  return {
    now,
    log,
    holdMs,
    url: '',
    nextMessageId: messageIds(now),
    doorbell,
    bots,
    conversations: createConversations(doorbell),
    faults,
    media: createMediaStore(),
    parking,
    qr: createQrLogin(now, doorbell, logIn),
    tickets: createTypingTickets(now),
  }

  function logIn(name: string | undefined) {
    const { bot, token } = bots.renew(name)
    faults.clear((fault) => fault.kind === 'expired' && (fault.bot === undefined || fault.bot === bot.id))
    // A poll that waits under the old token learns at once that it is worth nothing any more.
    parking.end((call) => call.endpoint === 'getupdates' && call.botId === bot.id)
    log.info('bot logged in', { bot: bot.id })
    return { bot, token }
  }
}
