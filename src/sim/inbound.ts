import { randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import { parseLossless, rawElements, rawMember, spans, withMembers, withoutMembers } from '../kit/lossless-json.ts'
import type { Said, SayBody } from '../wire/sim.ts'
import type { Bot } from './bots.ts'
import { textOf } from './items.ts'
import type { StoredFile } from './media.ts'
import { userIdOf } from './user-id.ts'
import type { World } from './world.ts'
import { wrongField } from './wrong-field.ts'

interface Prepared {
  bot: Bot
  said: Said
  /** The message on the wire. */
  raw: string
  text: string
}

/** Users say things; when one of them cannot be said, none is. Messages of one bot arrive in this order, in one go. */
export function say(world: World, sayings: SayBody[]): Said[] {
  const prepared = sayings.map((saying) => prepare(world, saying))
  for (const bot of new Set(prepared.map(({ bot }) => bot))) {
    deliver(
      world,
      bot,
      prepared.filter((message) => message.bot === bot),
    )
  }
  return prepared.map(({ said }) => said)
}

/** The doorbell key of a bot's inbox. */
export function inboxKey(bot: Bot): string {
  return `inbox ${bot.id}`
}

function deliver(world: World, bot: Bot, messages: Prepared[]): void {
  bot.inbox.append(messages.flatMap(({ raw }) => [raw, ...duplicates(world, bot, raw)]))
  bot.said += messages.length
  for (const { said, raw, text } of messages) {
    const entry = { from: 'user' as const, text, messageId: said.message_id, at: world.now(), raw }
    world.conversations.append(bot.id, said.user_id, entry)
  }
  world.doorbell.ring(inboxKey(bot))
}

function duplicates(world: World, bot: Bot, raw: string): string[] {
  const fault = world.faults.take('duplicate', { bot: bot.id })
  if (fault === undefined) return []
  if (!fault.fresh_id) return [raw]
  return [withMembers(withoutMembers(raw, new Set(['message_id'])), `"message_id":${world.nextMessageId()}`)]
}

function prepare(world: World, saying: SayBody): Prepared {
  const bot = world.bots.get(saying.bot)
  const userId = userIdOf(saying.user)
  const overlay = overlayOf(saying)
  if (saying.replace && overlay === undefined) throw wrongField('raw', 'is missing; replace needs it')
  if (overlay !== undefined && saying.replace) return odd(bot, userId, overlay)
  const made = makeMessage(world, { saying, bot, userId, mayBeEmpty: overlay !== undefined })
  if (overlay !== undefined) return odd(bot, userId, lay(overlay, made.raw))
  const said = { message_id: made.messageId, user_id: userId, context_token: made.contextToken }
  return { bot, said, raw: made.raw, text: saying.text ?? saying.voice_text ?? '' }
}

/** A message whose members came from outside: what is known of it has to be read from it. */
function odd(bot: Bot, userId: string, raw: string): Prepared {
  const token = parseLossless(rawMember(raw, 'context_token') ?? 'null')
  const said: Said = {
    message_id: rawMember(raw, 'message_id')?.replaceAll('"', '') ?? null,
    user_id: userId,
    context_token: typeof token === 'string' ? token : null,
  }
  return { bot, said, raw, text: textOf(parseLossless(rawMember(raw, 'item_list') ?? 'null')) }
}

function makeMessage(world: World, what: { saying: SayBody; bot: Bot; userId: string; mayBeEmpty: boolean }) {
  const { saying, bot, userId, mayBeEmpty } = what
  const items = itemsOf(world, saying)
  if (items.length === 0 && !mayBeEmpty)
    throw wrongField('text', 'is missing; say a text, an image, a file, a voice or raw')
  if (saying.quote !== undefined) quote(world, items, { bot, userId, messageId: saying.quote })
  const messageId = world.nextMessageId()
  const contextToken = randomBytes(32).toString('base64')
  bot.lastSeq += 1
  const at = Math.floor(world.now())
  const raw =
    `{"seq":${bot.lastSeq},"message_id":${messageId},"from_user_id":${JSON.stringify(userId)},` +
    `"to_user_id":${JSON.stringify(bot.id)},"client_id":"sim-${messageId}","create_time_ms":${at},"update_time_ms":${at},` +
    `"session_id":${JSON.stringify(`${userId}#${bot.id}`)},"message_type":1,"message_state":2,` +
    `"item_list":[${items.join(',')}],"context_token":"${contextToken}"}`
  return { raw, messageId, contextToken }
}

/** The items as JSON texts. */
function itemsOf(world: World, saying: SayBody): string[] {
  const items: object[] = []
  if (saying.text !== undefined) items.push({ type: 1, text_item: { text: saying.text } })
  if (saying.image_base64 !== undefined) {
    const file = world.media.store(Buffer.from(saying.image_base64, 'base64'))
    items.push({
      type: 2,
      image_item: { media: mediaMember(world, file), aeskey: file.keyHex, mid_size: file.cipherBytes },
    })
  }
  if (saying.voice_text !== undefined) {
    items.push({
      type: 3,
      voice_item: { encode_type: 6, sample_rate: 16_000, playtime: 1_000, text: saying.voice_text },
    })
  }
  if (saying.file_base64 !== undefined) {
    const file = world.media.store(Buffer.from(saying.file_base64, 'base64'))
    const named = { file_name: saying.file_name ?? 'file.bin', md5: file.md5, len: String(file.plainBytes) }
    items.push({ type: 4, file_item: { media: mediaMember(world, file), ...named } })
  } else if (saying.file_name !== undefined) throw wrongField('file_base64', 'is missing; file_name needs it')
  return items.map((item) => JSON.stringify(item))
}

function mediaMember(world: World, { param, keyHex }: StoredFile) {
  return {
    encrypt_query_param: param,
    aes_key: Buffer.from(keyHex).toString('base64'),
    encrypt_type: 1,
    full_url: `${world.url}/c2c/download?encrypted_query_param=${param}`,
  }
}

/** Puts the quoted message into the first item, with its id to the digit. */
function quote(world: World, items: string[], quoted: { bot: Bot; userId: string; messageId: string }): void {
  const conversation = world.conversations.find(quoted.bot.id, quoted.userId)
  const entry = conversation?.entries.findLast(({ messageId }) => messageId === quoted.messageId)
  if (entry === undefined) {
    throw new AppError('unknown_message', `The conversation has no message ${quoted.messageId} to quote.`, {
      details: { field: 'quote' },
    })
  }
  const [first] = rawElements(rawMember(entry.raw, 'item_list') ?? '[]')
  const item = first?.startsWith('{') ? `,"message_item":${withoutMembers(first, new Set(['ref_msg']))}` : ''
  items[0] = withMembers(items[0] ?? '{"type":1}', `"ref_msg":{"svr_id":${quoted.messageId}${item}}`)
}

/** The JSON text of `raw`, or undefined. */
function overlayOf({ raw }: SayBody): string | undefined {
  if (raw === undefined) return undefined
  const text = typeof raw === 'string' ? raw : JSON.stringify(raw)
  if (isObjectText(text)) return text.trim()
  throw wrongField('raw', 'must be an object, or the JSON text of one')
}

function isObjectText(text: string): boolean {
  try {
    JSON.parse(text)
    return text.trimStart().startsWith('{')
  } catch {
    return false
  }
}

/** `made` with the members of `overlay` instead of its own. */
function lay(overlay: string, made: string): string {
  const rest = withoutMembers(made, new Set(spans(overlay).map(({ key }) => key))).slice(1, -1)
  return rest === '' ? overlay : withMembers(overlay, rest)
}
