import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask, follow } from './api.ts'
import { createTimeline } from './timeline.ts'
import type { Item, RunEvent, SessionDetails } from './types.ts'

/** Events after which the session's own record has changed. */
const TELLING = new Set(['run_started', 'plan_proposed', 'plan_decided', 'done'])
const FRAME_MS = 30
const STEP_MS = 350

export interface OpenSession {
  details: SessionDetails | null
  items: readonly Item[]
  /** There is no such session (any more). */
  gone: boolean
  /** The stream is open. */
  live: boolean
  /** It is being played again. */
  replaying: boolean
  replay(): void
  endReplay(): void
  reload(): void
}

/** A session that is followed as long as it is shown. */
export function useSession(id: string, onChanged: () => void): OpenSession {
  const [details, setDetails] = useState<SessionDetails | null>(null)
  const [items, setItems] = useState<readonly Item[]>([])
  const [live, setLive] = useState(false)
  const [gone, setGone] = useState(false)
  const [replaying, setReplaying] = useState(false)
  const events = useRef<RunEvent[]>([])
  const present = useRef(createTimeline())
  const playing = useRef<ReturnType<typeof setTimeout> | null>(null)

  const reload = useCallback(() => {
    ask<SessionDetails>(`/sessions/${id}`).then(setDetails, () => undefined)
  }, [id])

  const endReplay = useCallback(() => {
    if (playing.current !== null) clearTimeout(playing.current)
    playing.current = null
    setReplaying(false)
    setItems(present.current.items)
  }, [])

  useEffect(() => {
    const left = new AbortController()
    events.current = []
    present.current = createTimeline()
    setDetails(null)
    setItems([])
    reload()
    const onEvents = (fresh: RunEvent[]) => {
      for (const event of fresh) {
        events.current.push(event)
        present.current.add(event)
      }
      if (playing.current === null) setItems(present.current.items)
      if (fresh.some(({ name }) => TELLING.has(name))) {
        reload()
        onChanged()
      }
    }
    void follow(id, { onEvents, onLine: setLive, onGone: () => setGone(true), signal: left.signal })
    return () => {
      left.abort()
      if (playing.current !== null) clearTimeout(playing.current)
      playing.current = null
      setReplaying(false)
    }
  }, [id, reload, onChanged])

  const replay = useCallback(() => {
    const timeline = createTimeline()
    let next = 0
    const play = () => {
      const event = events.current[next]
      if (event === undefined) return endReplay()
      next += 1
      timeline.add(event)
      setItems(timeline.items)
      playing.current = setTimeout(play, event.name === 'partial_message' ? FRAME_MS : STEP_MS)
    }
    if (playing.current !== null) clearTimeout(playing.current)
    setReplaying(true)
    play()
  }, [endReplay])

  return { details, items, gone, live, replaying, replay, endReplay, reload }
}
