import { useEffect, useState } from 'preact/hooks'
import { to } from '../shared/route.ts'
import type { LinkView } from './types.ts'
import { lineState } from './words.ts'

/** The state of the line to the messaging service, for the top of the page. */
export function LinePill({ link, lost }: { link: LinkView | undefined; lost: boolean }) {
  const { text, tone } =
    link === undefined || lost
      ? { text: lost ? 'The hub does not answer' : 'Loading…', tone: '' }
      : lineState(link.state)
  return (
    <span class={`state ${lost ? 'bad' : tone || 'soft'}`} role="status">
      <span class={`dot ${lost ? 'bad' : tone}`} />
      {text}
    </span>
  )
}

/** Says what is wrong with the line and what a person has to do; nothing while all is well. */
export function LineNotice({ link }: { link: LinkView }) {
  const { text, tone } = lineState(link.state)
  if (link.state === 'connected') return null
  return (
    <section class={`note ${tone === 'bad' ? 'bad' : 'warn'} stack tight`} aria-label="Messaging service">
      <p>
        <strong>{text}:</strong> {link.reason}. <RetryIn at={link.next_retry_at} />
      </p>
      <p>
        {link.action ?? 'The hub keeps trying; there is nothing you have to do. Messages wait meanwhile.'}{' '}
        {link.state === 'needs_login' && <a href={to('service')}>Log in with a QR code</a>}
      </p>
    </section>
  )
}

function RetryIn({ at }: { at: string | null }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  if (at === null) return null
  const seconds = Math.ceil((Date.parse(at) - now) / 1000)
  return <span class="soft">{seconds > 0 ? `Next try in ${seconds} s.` : 'Trying now.'}</span>
}
