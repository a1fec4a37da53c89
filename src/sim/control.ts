import { AppError } from '../kit/errors.ts'
import { parseLossless, rawMember } from '../kit/lossless-json.ts'
import { checker } from '../kit/schema.ts'
import {
  type ActiveFault,
  type BotAnswer,
  type BotBody,
  ConversationAnswer,
  type FaultBody,
  type MediaQuery,
  type QrCode,
  type Said,
  type SayBody,
  type ScanBody,
  type SimUser,
  type StateAnswer,
} from '../wire/sim.ts'
import { type ConversationRequest, readConversation } from './conversation-text.ts'
import { say } from './inbound.ts'
import { mediaOf } from './items.ts'
import { decrypt } from './media.ts'
import type { ParkedCall } from './parking.ts'
import { readState } from './state.ts'
import { userIdOf } from './user-id.ts'
import type { World } from './world.ts'

/** What a tester can do to the sim. The control API is this over HTTP. */
export interface SimControl {
  say(body: SayBody): Said
  /** Many at once: all or, when one is wrong, none. */
  sayAll(bodies: SayBody[]): Said[]
  /** Waits up to `waitMs` for news; digits of ids inside items come as strings. */
  conversation(request: ConversationRequest): Promise<ConversationAnswer>
  users(): SimUser[]
  /** The decrypted bytes of the first media in a message. Fails with `unknown_message`, `no_media`, `media_gone`, `bad_media`. */
  media(query: MediaQuery): Buffer
  state(): StateAnswer
  readonly faults: FaultControl
  readonly accounts: AccountControl
}

/** Makes things go wrong. */
export interface FaultControl {
  add(body: FaultBody): ActiveFault
  list(): ActiveFault[]
  /** Ends all faults; returns how many. */
  clear(): number
}

/** Bot accounts, and the phone that logs them in. */
export interface AccountControl {
  add(body: BotBody): BotAnswer
  scan(body: ScanBody): QrCode
  qrCodes(): QrCode[]
}

/** The doorbell key of faults that come and go. */
const FAULTS = 'faults'
const checkConversation = checker(ConversationAnswer)

/** The control of a world. */
export function createControl(world: World): SimControl {
  return {
    say(body) {
      const [said] = say(world, [body])
      if (said === undefined) throw new Error('nothing was said')
      return said
    },
    sayAll: (bodies) => say(world, bodies),
    conversation: async (request) => checkConversation(parseLossless(await readConversation(world, request))),
    users: () => world.conversations.list().map(userView),
    media: (query) => readMedia(world, query),
    state: () => readState(world),
    faults: {
      add: (body) => addFault(world, body),
      list: () => world.faults.list(),
      clear() {
        const cleared = world.faults.clear()
        world.doorbell.ring(FAULTS)
        return cleared
      },
    },
    accounts: {
      add({ name, token: given }) {
        const { bot, token } = world.bots.add(name, given)
        return { name, bot_id: bot.id, bot_token: token }
      },
      scan: (body) => world.qr.scan(body),
      qrCodes: () => world.qr.list(),
    },
  }
}

function userView({
  userId,
  botId,
  lastIndex,
  typing,
  entries,
}: ReturnType<World['conversations']['list']>[number]): SimUser {
  return { user_id: userId, bot_id: botId, messages: lastIndex, typing, last_at: entries.at(-1)?.at ?? 0 }
}

function addFault(world: World, body: FaultBody): ActiveFault {
  const { bot, ...rest } = body
  const botId = bot === undefined ? undefined : world.bots.get(bot).id
  const fault = world.faults.add(botId === undefined ? rest : { ...rest, bot: botId })
  const strikes = (call: ParkedCall) =>
    call.endpoint !== undefined &&
    (fault.only === undefined || fault.only === call.endpoint) &&
    (botId === undefined || botId === call.botId)
  if (fault.kind === 'down') world.parking.cut(strikes)
  if (fault.kind === 'expired') world.parking.end((call) => call.endpoint === 'getupdates' && strikes(call))
  world.doorbell.ring(FAULTS)
  world.log.info('fault set', { kind: fault.kind, bot: botId })
  return fault
}

function readMedia(world: World, { user, bot, message_id }: MediaQuery): Buffer {
  const conversation = world.conversations.find(world.bots.get(bot).id, userIdOf(user))
  const entry = conversation?.entries.findLast(({ messageId }) => messageId === message_id)
  if (entry === undefined) throw new AppError('unknown_message', `The conversation has no message ${message_id}.`)
  const media = mediaOf(parseLossless(rawMember(entry.raw, 'item_list') ?? 'null'))
  if (media === undefined) throw new AppError('no_media', `Message ${message_id} has no media with a key.`)
  return decrypt(world.media.download(media.param), media.key)
}
