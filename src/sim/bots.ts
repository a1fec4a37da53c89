import { createHash, randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import { createInbox, type Inbox } from './inbox.ts'

/** A bot account of the messaging service. */
export interface Bot {
  readonly id: string
  readonly name: string
  readonly inbox: Inbox
  started: boolean
  polls: number
  /** Polls that a newer one ended. */
  displaced: number
  sends: number
  said: number
  /** Counts the messages of all its users. */
  lastSeq: number
}

/** The bot accounts and their tokens. An account has one valid token at a time. */
export interface Bots {
  /** By name or id; the default account when neither is given. Fails with `unknown_bot`. */
  get(nameOrId?: string): Bot
  byToken(token: string): Bot | undefined
  /** Makes an account. Fails with `bot_exists`. */
  add(name: string, token?: string): { bot: Bot; token: string }
  /** Gives the account (made when there is none) a new token; the old one is worth nothing from here on. */
  renew(nameOrId?: string): { bot: Bot; token: string }
  list(): Bot[]
}

const DEFAULT_NAME = 'default'

/** Accounts with the default one in place. */
export function createBots(defaultToken: string): Bots {
  const bots: Bot[] = []
  const byToken = new Map<string, Bot>()
  const main = add(DEFAULT_NAME, defaultToken).bot

  return {
    get(nameOrId) {
      const bot = find(nameOrId)
      if (bot) return bot
      throw new AppError(
        'unknown_bot',
        `There is no bot ${nameOrId}; GET /sim/state lists them, POST /sim/bots makes one.`,
        {
          details: { field: 'bot' },
        },
      )
    },
    byToken: (token) => byToken.get(token),
    add,
    renew(nameOrId) {
      const bot = find(nameOrId)
      if (bot === undefined) return add(nameOrId ?? DEFAULT_NAME)
      for (const [token, owner] of byToken) if (owner === bot) byToken.delete(token)
      const token = newToken(bot.id)
      byToken.set(token, bot)
      return { bot, token }
    },
    list: () => [...bots],
  }

  function find(nameOrId: string | undefined): Bot | undefined {
    if (nameOrId === undefined) return main
    return bots.find((bot) => bot.name === nameOrId || bot.id === nameOrId)
  }

  function add(name: string, given?: string): { bot: Bot; token: string } {
    const id = botId(name, given)
    if (bots.some((bot) => bot.name === name || bot.id === id) || (given !== undefined && byToken.has(given))) {
      throw new AppError('bot_exists', `There is a bot ${name}, or one with that token, already; choose another.`)
    }
    const token = given ?? newToken(id)
    const bot = {
      id,
      name,
      inbox: createInbox(),
      started: false,
      polls: 0,
      displaced: 0,
      sends: 0,
      said: 0,
      lastSeq: 0,
    }
    bots.push(bot)
    byToken.set(token, bot)
    return { bot, token }
  }
}

/** Real tokens start with the bot's id; for others the id comes from what stays the same over a restart. */
function botId(name: string, token: string | undefined): string {
  if (name.endsWith('@im.bot')) return name
  const inToken = token && /^([0-9a-f]{12}@im\.bot):/.exec(token)?.[1]
  if (inToken) return inToken
  const digest = createHash('sha256')
    .update(token ?? name)
    .digest('hex')
  return `${digest.slice(0, 12)}@im.bot`
}

function newToken(id: string): string {
  return `${id}:${randomBytes(16).toString('hex')}`
}
