import { Type } from 'typebox'
import { Compile } from 'typebox/compile'

/** Where the bytes of an item are, and what they are encrypted with. */
export interface MediaReference {
  param: string
  key: Buffer
}

const Media = Type.Object({
  encrypt_query_param: Type.Optional(Type.String()),
  aes_key: Type.Optional(Type.String()),
  full_url: Type.Optional(Type.String()),
})
const hasText = Compile(Type.Object({ text_item: Type.Object({ text: Type.String() }) }))
const hasVoiceText = Compile(Type.Object({ voice_item: Type.Object({ text: Type.String() }) }))
const mediaHolder = Compile(Type.Object({ media: Media, aeskey: Type.Optional(Type.String()) }))
const MEDIA_ITEMS = new Set(['image_item', 'file_item', 'video_item', 'voice_item'])

/** What a person reads of an `item_list`, whatever it is: its texts, a line each; empty when there is none. */
export function textOf(items: unknown): string {
  if (!Array.isArray(items)) return ''
  return items.map(itemText).filter(Boolean).join('\n')
}

/** The first media of an `item_list`. */
export function mediaOf(items: unknown): MediaReference | undefined {
  if (!Array.isArray(items)) return undefined
  for (const item of items) {
    for (const [name, holder] of Object.entries(Object(item))) {
      if (!MEDIA_ITEMS.has(name) || !mediaHolder.Check(holder)) continue
      const param = paramIn(holder.media.full_url) ?? holder.media.encrypt_query_param
      const key = holder.aeskey ? Buffer.from(holder.aeskey, 'hex') : decodeKey(holder.media.aes_key ?? '')
      if (param && key.length === 16) return { param, key }
    }
  }
  return undefined
}

function itemText(item: unknown): string {
  if (hasText.Check(item)) return item.text_item.text
  return hasVoiceText.Check(item) ? item.voice_item.text : ''
}

function paramIn(fullUrl: string | undefined): string | undefined {
  if (!fullUrl || !URL.canParse(fullUrl)) return undefined
  return new URL(fullUrl).searchParams.get('encrypted_query_param') ?? undefined
}

/** Clients write the key in two ways: base64 of the 16 bytes, or of their 32 hex digits. */
function decodeKey(aesKey: string): Buffer {
  const decoded = Buffer.from(aesKey, 'base64')
  return decoded.length === 32 ? Buffer.from(decoded.toString('latin1'), 'hex') : decoded
}
