import { useEffect, useState } from 'preact/hooks'
import { request } from '../shared/api.ts'
import type { ChatMessage } from './api.ts'

/** A message in its bubble: text, image or file. */
export function Message({ message, user }: { message: ChatMessage; user: string }) {
  const { from, text, at, message_id: id } = message
  const media = mediaOf(message)
  return (
    <li class={`bubble ${from}`}>
      <span class="hidden-text">{from === 'user' ? 'User:' : 'Bot:'}</span>
      {media && id !== null && <Media user={user} id={id} {...media} />}
      {text !== '' && <p class="wrap">{text}</p>}
      <time class="small" dateTime={new Date(at).toISOString()}>
        {new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}
      </time>
    </li>
  )
}

/** The file of a message, decrypted by the sim; an image is shown, anything else is offered. */
function Media({ user, id, kind, name }: { user: string; id: string; kind: string; name: string }) {
  const [url, setUrl] = useState<string | null>(null)
  const [failed, setFailed] = useState(false)
  useEffect(() => {
    let made: string | null = null
    let gone = false
    const query = new URLSearchParams({ user, message_id: id })
    request(`/sim/media?${query}`)
      .then((response) => response.arrayBuffer())
      .then(
        (bytes) => {
          if (gone) return
          made = URL.createObjectURL(new Blob([bytes], { type: typeOf(new Uint8Array(bytes)) }))
          setUrl(made)
        },
        () => setFailed(true),
      )
    return () => {
      gone = true
      if (made !== null) URL.revokeObjectURL(made)
    }
  }, [user, id])
  if (failed) return <p class="small">The file is no longer there.</p>
  if (kind === 'image' && url !== null) return <img src={url} alt="Sent in the chat" onError={() => setFailed(true)} />
  if (kind === 'image') return <div class="picture" />
  return (
    <a class="wrap" href={url ?? undefined} download={name}>
      {name}
    </a>
  )
}

function mediaOf({ item_list: items }: ChatMessage): { kind: string; name: string } | null {
  if (!Array.isArray(items)) return null
  for (const item of items) {
    for (const [key, value] of Object.entries(Object(item))) {
      const [, kind] = /^(image|file|video)_item$/.exec(key) ?? []
      if (kind === undefined) continue
      const name = new Map(Object.entries(Object(value))).get('file_name')
      return { kind, name: typeof name === 'string' ? name : `${kind}.bin` }
    }
  }
  return null
}

const SIGNATURES: [string, number[]][] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46]],
  ['image/webp', [0x52, 0x49, 0x46, 0x46]],
]

/** By its first bytes, never by what anybody says: nothing but a picture is shown as one. */
function typeOf(bytes: Uint8Array): string {
  const found = SIGNATURES.find(([, signature]) => signature.every((byte, index) => bytes[index] === byte))
  return found?.[0] ?? 'application/octet-stream'
}
