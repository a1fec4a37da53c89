import { useEffect, useRef, useState } from 'preact/hooks'
import type { ConversationAnswer, NewsAnswer } from '../../../src/wire/sim.ts'
import { call } from '../shared/api.ts'

export type { ActiveFault, FaultBody, NewsAnswer, QrCode } from '../../../src/wire/sim.ts'
/** A message as the sim tells it. */
export type ChatMessage = ConversationAnswer['messages'][number]

const WAIT_MS = 25_000
const RETRY_MS = 1_000
const MOST_SHOWN = 200

/** What happens in the sim, as it happens: one call waits, whatever there is to wait for. */
export function useNews(): { news: NewsAnswer | null; lost: boolean } {
  const [news, setNews] = useState<NewsAnswer | null>(null)
  const [lost, setLost] = useState(false)
  useEffect(() => {
    const gone = new AbortController()
    const watch = async () => {
      let after: number | null = null
      while (!gone.signal.aborted) {
        try {
          const query: string = after === null ? '' : `?after=${after}&wait_ms=${WAIT_MS}`
          const fresh: NewsAnswer = await call<NewsAnswer>(`/sim/news${query}`, { signal: gone.signal })
          after = fresh.revision
          setNews(fresh)
          setLost(false)
        } catch {
          if (gone.signal.aborted) return
          after = null
          setLost(true)
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        }
      }
    }
    void watch()
    return () => gone.abort()
  }, [])
  return { news, lost }
}

/** A user's conversation; read on whenever there is more of it than was read. */
export function useConversation(user: string, count: number): ChatMessage[] {
  const [messages, setMessages] = useState<ChatMessage[]>([])
  const read = useRef(0)
  useEffect(() => {
    const gone = new AbortController()
    // Fewer than before: the sim was started anew.
    if (count < read.current) {
      read.current = 0
      setMessages([])
    }
    if (count === read.current) return
    const query = new URLSearchParams({ user, after: String(read.current) })
    call<ConversationAnswer>(`/sim/conversation?${query}`, { signal: gone.signal }).then(
      ({ messages: fresh }) => {
        if (gone.signal.aborted) return
        read.current = fresh.at(-1)?.index ?? read.current
        setMessages((before) => [...before, ...fresh].slice(-MOST_SHOWN))
      },
      () => undefined,
    )
    return () => gone.abort()
  }, [user, count])
  return messages
}

/** A user's id without the part that all have. */
export function shortName(userId: string): string {
  return userId.replace(/@im\.wechat$/, '')
}
