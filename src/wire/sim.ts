import { type Static, type TProperties, Type } from 'typebox'

/** The bodies of the sim's control API. Ids of messages are digits in strings: they pass 2^53. */

const Name = Type.String({ minLength: 1, maxLength: 200 })
const Digits = Type.String({ pattern: '^[0-9]{1,20}$' })
const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]+={0,2}$' })
const Count = Type.Integer({ minimum: 1, maximum: 1_000_000 })
const Milliseconds = Type.Integer({ minimum: 0, maximum: 86_400_000 })
const Bot = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'Name or id of a bot account; the default one when absent.',
})

/** One thing a user says to a bot. At least one of text, raw, image, file and voice must be there. */
export const SayBody = strict({
  user: Name,
  bot: Type.Optional(Bot),
  text: Type.Optional(Type.String()),
  quote: Type.Optional(Digits),
  voice_text: Type.Optional(Type.String()),
  image_base64: Type.Optional(Base64),
  file_base64: Type.Optional(Base64),
  file_name: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  /** Members that go into the message over the made ones; an object, or its JSON as text where digits matter. */
  raw: Type.Optional(Type.Union([Type.Object({}), Type.String()])),
  /** The message is `raw` and nothing else. */
  replace: Type.Optional(Type.Boolean()),
})
export type SayBody = Static<typeof SayBody>

/** Many things said at once; they arrive in this order. */
export const SayManyBody = strict({ messages: Type.Array(SayBody, { minItems: 1, maxItems: 10_000 }) })

/** What became of a {@link SayBody}. Null where `raw` replaced the message and had none. */
export interface Said {
  message_id: string | null
  user_id: string
  context_token: string | null
}

export const ConversationQuery = strict({
  user: Name,
  bot: Type.Optional(Bot),
  after: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$' })),
  wait_ms: Type.Optional(Type.String({ pattern: '^[0-9]{1,5}$' })),
  /** What the caller saw last: it is news when the bot's typing has changed since. */
  typing: Type.Optional(Type.Enum(['true', 'false'])),
})

/** A message as it was on the wire, with these members added and `message_id` as a string. */
const ConversationMessage = Type.Object({
  index: Type.Integer({ description: 'Counts the messages of the conversation from 1.' }),
  from: Type.Enum(['user', 'bot']),
  text: Type.String(),
  message_id: Type.Union([Type.String(), Type.Null()]),
  at: Type.Number({ description: 'Unix milliseconds.' }),
  client_id: Type.Optional(Type.Unknown()),
  context_token: Type.Optional(Type.Unknown()),
  item_list: Type.Optional(Type.Unknown()),
})

/** What a user and a bot have said to each other. */
export const ConversationAnswer = Type.Object({
  user_id: Type.String(),
  bot_id: Type.String(),
  typing: Type.Boolean(),
  messages: Type.Array(ConversationMessage),
})
export type ConversationAnswer = Static<typeof ConversationAnswer>

export const MediaQuery = strict({ user: Name, bot: Type.Optional(Bot), message_id: Digits })
export type MediaQuery = Static<typeof MediaQuery>

/** Somebody who has said something to a bot. */
export interface SimUser {
  user_id: string
  bot_id: string
  messages: number
  typing: boolean
  last_at: number
}

/** What happened with a bot account since the start. */
export interface BotCounts {
  polls: number
  /** Ended by a newer one while they waited: somebody else polls too. */
  polls_displaced: number
  sends: number
  said: number
  /** Handed out at least once. */
  delivered: number
  /** Known as received: a later cursor came back. */
  acknowledged: number
}

/** A bot account, without its token. */
export interface SimBot extends BotCounts {
  name: string
  bot_id: string
  /** The bot said `notifystart` and not `notifystop` since. */
  started: boolean
  polls_in_flight: number
  /** Said, and never handed out yet. */
  not_fetched: number
}

export interface StateAnswer extends BotCounts {
  bots: SimBot[]
  users: number
  polls_in_flight: number
  not_fetched: number
  media_bytes: number
  faults: ActiveFault[]
}

/** What can be made to go wrong. */
const FAULT_KINDS = [
  'down',
  'expired',
  'throttle',
  'duplicate',
  'malformed',
  'slow',
  'http_error',
  'bad_json',
  'refuse_send',
  'unconfirmed',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

/** The calls of the bot protocol, for `only`. */
const ENDPOINTS = [
  'getupdates',
  'sendmessage',
  'sendtyping',
  'getconfig',
  'getuploadurl',
  'notifystart',
  'notifystop',
  'get_bot_qrcode',
  'get_qrcode_status',
  'upload',
  'download',
] as const
export type Endpoint = (typeof ENDPOINTS)[number]

/** A fault lasts until it is cleared, has happened `count` times, or `for_ms` have passed. */
export const FaultBody = strict({
  kind: Type.Enum([...FAULT_KINDS]),
  bot: Type.Optional(Bot),
  count: Type.Optional(Count),
  for_ms: Type.Optional(Milliseconds),
  only: Type.Optional(Type.Enum([...ENDPOINTS])),
  delay_ms: Type.Optional(Milliseconds),
  status: Type.Optional(Type.Integer({ minimum: 400, maximum: 599 })),
  ret: Type.Optional(Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 })),
  errmsg: Type.Optional(Type.String({ maxLength: 500 })),
  fresh_id: Type.Optional(Type.Boolean()),
  shape: Type.Optional(Type.Enum(['not_an_object', 'no_sender', 'bad_items'])),
})
export type FaultBody = Static<typeof FaultBody>

/** A fault that is in force. `left` is how often it still happens, `until` when it ends (Unix milliseconds). */
export interface ActiveFault extends FaultBody {
  id: number
  left: number | null
  until: number | null
}

/** A phone scans a QR code. */
export const ScanBody = strict({
  qrcode: Type.String({ minLength: 1, maxLength: 200 }),
  /** Whose phone it is; `owner` when absent. */
  as: Type.Optional(Name),
  /** Which bot account logs in; made when there is none of that name. */
  bot: Type.Optional(Bot),
  /** The phone shows this code and the bot must repeat it. */
  verify_code: Type.Optional(Type.String({ minLength: 1, maxLength: 20 })),
  /** False: scanned, not confirmed yet; scan again to confirm. */
  confirm: Type.Optional(Type.Boolean()),
  /** The service sends the bot on to this host (`name` or `name:port`) for the rest of the login. */
  redirect_host: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9.:_-]{1,200}$' })),
  /** The phone's owner has a bot already: the login ends there. */
  already_bound: Type.Optional(Type.Boolean()),
})
export type ScanBody = Static<typeof ScanBody>

export type QrStatus =
  | 'wait'
  | 'scaned'
  | 'scaned_but_redirect'
  | 'need_verifycode'
  | 'verify_code_blocked'
  | 'binded_redirect'
  | 'confirmed'
  | 'expired'

export const QrQuery = strict({ qrcode: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })) })

/** A QR code that a bot asked for. */
export interface QrCode {
  qrcode: string
  status: QrStatus
  expires_at: number
}

export const NewsQuery = strict({
  /** The revision the caller has seen. */
  after: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$' })),
  wait_ms: Type.Optional(Type.String({ pattern: '^[0-9]{1,5}$' })),
})

/** What somebody who watches wants to know; `revision` is another one whenever some of it has changed. */
export interface NewsAnswer {
  revision: number
  /** Those who spoke last come last. */
  users: SimUser[]
  bots: SimBot[]
  faults: ActiveFault[]
  codes: QrCode[]
}

export const BotBody = strict({
  name: Type.String({ pattern: '^[A-Za-z0-9._-]{1,60}$' }),
  token: Type.Optional(Type.String({ pattern: '^[!-~]{8,200}$' })),
})
export type BotBody = Static<typeof BotBody>

/** A new bot account; its token is told here and never again. */
export interface BotAnswer {
  name: string
  bot_id: string
  bot_token: string
}

/** A field that is not named is refused: a misspelt option must not pass in silence. */
function strict<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false })
}
