import { hash } from 'node:crypto'
import { mayRound, parseLossless, rawMember, type Span, spans, withoutMembers } from '../kit/lossless-json.ts'

/** What the hub reads off an upstream message; everything else passes through unread. */
export interface Inbound {
  upstreamId: string | null
  fingerprint: string | null
  userId: string
  upstreamToken: string | null
  /** Sent by a bot, that is: an echo of our own. */
  fromBot: boolean
  /** The first text, if any: what mentions and commands are looked for in. */
  text: string | null
  content: string
  msgType: MsgType
  timestamp: number
  quote: { upstreamId?: string; text?: string } | null
  /** The upstream's object without `context_token` and `message_id`. */
  raw: string
}

type MsgType = 'text' | 'image' | 'voice' | 'file' | 'video'
type Fields = Record<string, unknown>

const CUT = new Set(['context_token', 'message_id'])
const MEDIA: Record<number, MsgType> = { 2: 'image', 3: 'voice', 4: 'file', 5: 'video' }
const PLAIN_STRING = /^"[^"\\]*"$/
/** Past what a double holds. */
const LONG_ID = /^[1-9]\d{16,}$/
const FROM_BOT = 2
const MAX_USER_ID = 256
const LAST_TIME_MS = 8.64e15 // the last one a Date can hold

/** Reads one raw message; a string says why it cannot be read. `parsed`: by `JSON.parse`, where it was before. */
export function readInbound(source: string, nowMs: number, parsed?: unknown): Inbound | string {
  const members = spans(source)
  const raw = withoutMembers(source, CUT, members)
  // Without what was cut out, most messages have no number that is too long to be one.
  const message = parsed === undefined || mayRound(raw) ? parseLossless(raw) : parsed
  if (!isFields(message)) return 'not an object'
  const userId = message.from_user_id
  if (typeof userId !== 'string' || userId === '' || userId.length > MAX_USER_ID) return 'no from_user_id'
  const list = message.item_list ?? []
  if (!Array.isArray(list)) return 'item_list is no list'
  const items: unknown[] = list
  if (!items.every(isFields)) return 'item_list holds something that is no item'

  const createdMs = timeOf(message.create_time_ms)
  const { content, msgType } = contentOf(items)
  const upstreamToken = memberOf(source, members, 'context_token')
  return {
    upstreamId: idText(memberOf(source, members, 'message_id')),
    fingerprint: fingerprint(message, items),
    userId,
    upstreamToken: typeof upstreamToken === 'string' && upstreamToken !== '' ? upstreamToken : null,
    fromBot: message.message_type === FROM_BOT,
    text: firstText(items),
    content,
    msgType,
    timestamp: Math.floor((createdMs ?? nowMs) / 1000),
    quote: quoteOf(items),
    raw,
  }
}

/** The spec's fields of a message but the context token, as JSON text. */
export function specJson({
  userId,
  content,
  msgType,
  timestamp,
}: Pick<Inbound, 'userId' | 'content' | 'msgType' | 'timestamp'>): string {
  return JSON.stringify({ from_user: userId, content, msg_type: msgType, timestamp })
}

/** The raw message with its first text replaced; all else stays to the letter. */
export function replaceText(raw: string, text: string): string {
  const list = spans(raw).findLast(({ key }) => key === 'item_list')
  if (list === undefined) return raw
  for (const item of spans(raw, list.valueStart)) {
    const textItem = spans(raw, item.valueStart).findLast(({ key }) => key === 'text_item')
    const value = textItem && spans(raw, textItem.valueStart).findLast(({ key }) => key === 'text')
    // Read as firstText reads it: a number too long for a double counts as text.
    if (value && typeof parseLossless(raw.slice(value.valueStart, value.end)) === 'string')
      return raw.slice(0, value.valueStart) + JSON.stringify(text) + raw.slice(value.end)
  }
  return raw
}

function contentOf(items: Fields[]): { content: string; msgType: MsgType } {
  const text = firstText(items)
  if (text !== null && text !== '') return { content: text, msgType: 'text' }
  for (const item of items) {
    const transcript = fieldsOf(item.voice_item)?.text
    if (typeof transcript === 'string' && transcript !== '') return { content: transcript, msgType: 'text' }
  }
  for (const item of items) {
    const msgType = typeof item.type === 'number' ? MEDIA[item.type] : undefined
    if (msgType !== undefined) return { content: label(msgType, item), msgType }
  }
  return { content: '[message]', msgType: 'text' }
}

function label(msgType: MsgType, item: Fields): string {
  const name = fieldsOf(item.file_item)?.file_name
  return msgType === 'file' && typeof name === 'string' && name !== '' ? `[file: ${name}]` : `[${msgType}]`
}

function firstText(items: Fields[]): string | null {
  for (const item of items) {
    const text = fieldsOf(item.text_item)?.text
    if (typeof text === 'string') return text
  }
  return null
}

function quoteOf(items: Fields[]): Inbound['quote'] {
  for (const item of items) {
    const reference = fieldsOf(item.ref_msg)
    if (reference === null) continue
    const quoted = fieldsOf(reference.message_item)
    const upstreamId = idText(reference.svr_id) ?? idText(quoted?.msg_id)
    const text = quoted && fieldsOf(quoted.text_item)?.text
    return { ...(upstreamId === null ? {} : { upstreamId }), ...(typeof text === 'string' ? { text } : {}) }
  }
  return null
}

/** The same user, content, creation time and sequence under another id is the same message sent again. */
function fingerprint(message: Fields, items: Fields[]): string | null {
  const { create_time_ms: createdMs, seq, from_user_id: userId } = message
  if (typeof createdMs !== 'number' || (typeof seq !== 'number' && typeof seq !== 'string')) return null
  const whole = JSON.stringify(items)
  // Few have one, and a replacer is slow.
  const content = whole.includes('"msg_id"')
    ? JSON.stringify(items, (key, value) => (key === 'msg_id' ? undefined : value))
    : whole
  // The time stands in front so that new ones lie next to each other in the index.
  const head = JSON.stringify([String(userId).toLowerCase(), createdMs, seq])
  return `${createdMs}.${hash('sha256', head + content, 'base64')}`
}

/** Unix milliseconds; null for what is no time (`1e400` is valid JSON). */
function timeOf(value: unknown): number | null {
  return typeof value === 'number' && value > 0 && value <= LAST_TIME_MS ? value : null
}

function idText(id: unknown): string | null {
  if (typeof id === 'number' && Number.isFinite(id) && id !== 0) return String(id)
  return typeof id === 'string' && id !== '' && id !== '0' && id.length <= 128 ? id : null
}

function memberOf(source: string, members: readonly Span[], key: string): unknown {
  const text = rawMember(source, key, members)
  if (text === undefined) return undefined
  // Nearly all are such, and need no parser.
  if (PLAIN_STRING.test(text)) return text.slice(1, -1)
  return LONG_ID.test(text) ? text : parseLossless(text)
}

function fieldsOf(value: unknown): Fields | null {
  return isFields(value) ? value : null
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
