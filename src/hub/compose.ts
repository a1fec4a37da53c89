import { createHash, randomUUID } from 'node:crypto'
import { parseLossless, rawElements, rawMember, withMembers, withoutMembers } from '../kit/lossless-json.ts'
import { MAX_TEXT_CHARS, splitText } from './split-text.ts'

/** What a client wants to say, in upstream calls. */
export interface Composed {
  /** The upstream's `msg` objects as JSON texts, without recipient and context token. */
  parts: string[]
  /** The first text, for finding the author of a quote. */
  text: string
  /** The client's own id for this message, if it gave one. */
  key: string | null
  bodyHash: string
  /** Nothing but signs that a tool runs: nobody's answer depends on them. */
  onlyProgress: boolean
}

const TEXT_ITEM = '1'
const TOOL_ITEMS = new Set(['11', '12'])

const NOT_OURS = new Set(['from_user_id', 'to_user_id', 'context_token', 'item_list', 'client_id'])

/** A plain text, as the spec's body has it. The same text to another context is another body. */
export function composeText(content: string, contextToken: string): Composed {
  const items = splitText(content).map((text) => JSON.stringify({ type: 1, text_item: { text } }))
  return {
    parts: parts('{"message_type":2,"message_state":2}', items, null),
    text: content,
    key: null,
    bodyHash: hash(JSON.stringify([contextToken, content])),
    onlyProgress: false,
  }
}

/** The real protocol's `msg`: every item becomes a call of its own, and unknown fields go along untouched. */
export function composeMessage(msg: string): Composed {
  const items: string[] = []
  let firstText = ''
  for (const item of rawElements(rawMember(msg, 'item_list') ?? '[]')) {
    const text = textOf(item)
    // A picture's caption, say, that is empty: the service refuses it.
    if (text === null && rawMember(item, 'type') === TEXT_ITEM) continue
    if (text !== null && firstText === '') firstText = text
    items.push(...(text !== null && text.length > MAX_TEXT_CHARS ? splitItem(item, text) : [item]))
  }
  const clientId = stringMember(msg, 'client_id')
  let base = withoutMembers(msg, NOT_OURS)
  for (const field of ['message_type', 'message_state']) {
    if (rawMember(base, field) === undefined) base = withMembers(base, `"${field}":2`)
  }
  return {
    parts: parts(base, items, clientId),
    text: firstText,
    key: clientId,
    bodyHash: hash(withoutMembers(msg, new Set(['client_id']))),
    onlyProgress: items.every((item) => TOOL_ITEMS.has(rawMember(item, 'type') ?? '')),
  }
}

function parts(base: string, items: string[], clientId: string | null): string[] {
  const id = clientId ?? `hub-${randomUUID()}`
  return items.map((item, index) => {
    const own = index === 0 ? id : `${id}-${index + 1}`
    return withMembers(base, `"client_id":${JSON.stringify(own)},"item_list":[${item}]`)
  })
}

function textOf(item: string): string | null {
  const textItem = rawMember(item, 'text_item')
  return textItem === undefined ? null : stringMember(textItem, 'text')
}

/** The item once for each piece of its text. */
function splitItem(item: string, text: string): string[] {
  const textItem = withoutMembers(rawMember(item, 'text_item') ?? '{}', new Set(['text']))
  const rest = withoutMembers(item, new Set(['text_item']))
  return splitText(text).map((piece) =>
    withMembers(rest, `"text_item":${withMembers(textItem, `"text":${JSON.stringify(piece)}`)}`),
  )
}

function stringMember(object: string, key: string): string | null {
  const raw = rawMember(object, key)
  if (raw === undefined) return null
  const value = parseLossless(raw)
  return typeof value === 'string' && value !== '' ? value : null
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
