import type { Static } from 'typebox'
import { parseLossless } from '../kit/lossless-json.ts'
import { checker } from '../kit/schema.ts'
import { UpdatesAnswer } from '../wire/relay.ts'
import { callHub } from './hub-call.ts'

/**
 * A client of the hub's relay that speaks the bot protocol with cursors: what a poll brought is acknowledged by the next
 * poll with its cursor, and by nothing else that is awaited. Calls that fail throw a `HubClientError`.
 */
export interface CursorRelay {
  /** Acknowledges everything up to `cursor` and waits for what comes after it, up to half a minute. */
  poll(cursor: string, signal?: AbortSignal): Promise<{ messages: RelayMessage[]; cursor: string }>
  /** Resolves when the messaging service has the text; the same `clientId` and text is sent once. */
  send(message: { contextToken: string; text: string; clientId: string }, signal?: AbortSignal): Promise<void>
  typing(contextToken: string, on: boolean, signal?: AbortSignal): Promise<void>
  /** Says that this client is here, or goes: it counts as online or offline at once. */
  notify(what: 'start' | 'stop', signal?: AbortSignal): Promise<void>
}

/** A user's message. */
export interface RelayMessage {
  /** The service's id of it, all digits. */
  id: string
  user: string
  /** The bot account that it was written to, by the service's own id; null where the service does not say. */
  account: string | null
  contextToken: string
  /** Its text, or a label such as `[image]`. */
  text: string
  /** Labels of what came beside the text. */
  attachments: string[]
  /** The text that it quotes. */
  quote: string | null
}

type Updates = Static<typeof UpdatesAnswer>
const MEDIA: Record<number, string> = { 2: 'image', 3: 'voice', 4: 'file', 5: 'video' }
const checkUpdates = checker(UpdatesAnswer, 'answer')

/** Talks to the hub at `url` as the client that `token` was issued to. */
export function cursorRelay({ url, token }: { url: string; token: string }): CursorRelay {
  const post = (path: string, body: object, signal?: AbortSignal) =>
    callHub<unknown>(url, `/ilink/bot/${path}`, { token, body, signal })
  return {
    async poll(cursor, signal) {
      const call = { token, body: { get_updates_buf: cursor }, signal }
      const read = (text: string) => checkUpdates(parseLossless(text))
      const answer = await callHub(url, '/ilink/bot/getupdates', call, read)
      return { messages: messagesOf(answer), cursor: answer.get_updates_buf }
    },
    async send({ contextToken, text, clientId }, signal) {
      const item_list = [{ type: 1, text_item: { text } }]
      await post('sendmessage', { msg: { context_token: contextToken, client_id: clientId, item_list } }, signal)
    },
    async typing(contextToken, on, signal) {
      await post('sendtyping', { context_token: contextToken, status: on ? 1 : 2 }, signal)
    },
    async notify(what, signal) {
      await post(`msg/notify${what}`, {}, signal)
    },
  }
}

function messagesOf({ messages, msgs }: Updates): RelayMessage[] {
  return messages.map((message, index) => {
    const id = field(msgs[index], 'message_id')
    const list = field(msgs[index], 'item_list')
    const account = field(msgs[index], 'to_user_id')
    const items: unknown[] = Array.isArray(list) ? list : []
    return {
      id: typeof id === 'string' || typeof id === 'number' ? String(id) : message.context_token,
      user: message.from_user,
      account: typeof account === 'string' && account !== '' ? account : null,
      contextToken: message.context_token,
      text: message.content,
      // A message without a text has the label of its first item as its text.
      attachments: items.flatMap(labelOf).filter((label) => label !== message.content),
      quote: items.map(quoteOf).find((text) => text !== null) ?? null,
    }
  })
}

function labelOf(item: unknown): string[] {
  const kind = MEDIA[Number(field(item, 'type'))]
  // The transcript of a voice message is its text.
  if (kind === undefined || kind === 'voice') return []
  const name = field(field(item, 'file_item'), 'file_name')
  return [typeof name === 'string' && name !== '' ? `[file: ${name}]` : `[${kind}]`]
}

function quoteOf(item: unknown): string | null {
  const quoted = field(field(item, 'ref_msg'), 'message_item')
  const text = field(field(quoted, 'text_item'), 'text')
  return typeof text === 'string' && text !== '' ? text : null
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
