import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../shared/api.ts'
import { useAction } from '../shared/live.ts'
import { Problem } from '../shared/ui.tsx'
import { shortName, useConversation } from './api.ts'
import { Message } from './message.tsx'

/** One user's messenger. */
export function Phone(props: { user: string; count: number; typing: boolean; onClose: (() => void) | null }) {
  const { user, count, typing, onClose } = props
  const messages = useConversation(user, count)
  const [text, setText] = useState('')
  const { run, problem } = useAction()
  const end = useRef<HTMLDivElement>(null)
  const name = shortName(user)
  useEffect(() => {
    const box = end.current?.parentElement
    if (box && (messages.length > 0 || typing)) box.scrollTop = box.scrollHeight
  }, [messages, typing])
  const say = (body: object) => run(() => call('/sim/say', { method: 'POST', body: { user, ...body } }))
  const send = async () => {
    if (text.trim() !== '' && (await say({ text }))) setText('')
  }
  const attach = async (input: HTMLInputElement) => {
    const file = input.files?.[0]
    if (file === undefined) return
    const base64 = await base64Of(file)
    input.value = ''
    await say(file.type.startsWith('image/') ? { image_base64: base64 } : { file_base64: base64, file_name: file.name })
  }
  return (
    <section class="phone" aria-label={`Chat of ${name}`}>
      <header class="row">
        <span class="face" aria-hidden="true">
          {[...name][0]?.toUpperCase()}
        </span>
        <h2 class="grow wrap">{name}</h2>
        {onClose && (
          <button type="button" class="button plain slim" aria-label={`Close the chat of ${name}`} onClick={onClose}>
            ✕
          </button>
        )}
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <div class="talk" role="log" tabIndex={0} aria-label={`Messages of ${name}`}>
        {messages.length === 0 && <p class="soft small hint">Write something: the bot gets it as from {name}.</p>}
        <ol>
          {messages.map((message) => (
            <Message key={message.index} message={message} user={user} />
          ))}
        </ol>
        {typing && (
          <p class="typing" role="status">
            <span class="hidden-text">The bot is typing</span>
            <i />
            <i />
            <i />
          </p>
        )}
        <div ref={end} />
      </div>
      <Problem text={problem} />
      <form
        class="row nowrap write"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <label class="button plain slim attach" title="Send an image or a file">
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <path d="M10 4v12M4 10h12" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" />
          </svg>
          <span class="hidden-text">Send a file as {name}</span>
          <input type="file" class="hidden-text" onChange={(event) => void attach(event.currentTarget)} />
        </label>
        <label class="grow">
          <span class="hidden-text">Message as {name}</span>
          <input
            value={text}
            placeholder="Message"
            autocomplete="off"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button primary slim" aria-label={`Send as ${name}`}>
          Send
        </button>
      </form>
    </section>
  )
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(new Error('The file cannot be read.'))
    reader.readAsDataURL(file)
  })
}
