import type { Doorbell } from '../../kit/doorbell.ts'
import { AppError } from '../../kit/errors.ts'
import type { Reply, Request } from '../../kit/http.ts'
import { openSse, type SseStream, sseComment, sseEvent } from '../../kit/sse.ts'
import { tail } from '../../kit/tail.ts'
import { PUBLIC_EVENTS, type Run, type Session, type StoredEvent } from '../model.ts'
import { bell } from '../session-runner.ts'
import type { AgentStore } from '../store/port.ts'

export interface EventStreamOptions {
  store: AgentStore
  doorbell: Doorbell
  now: () => number
  /** A comment this often keeps proxies from closing the line. */
  heartbeatMs: number
}

/** How a reader wants its events. */
export interface EventQuery {
  after: number | null
  extended: boolean
  until: 'done' | null
  errorEvent: string
  /** Only this run's. */
  runId: string | null
  /** The reader is a browser with a ticket: it is told where it stands before anything happened, so that it can come back. */
  byTicket: boolean
}

/** Where a stream starts; a bare one named no place. */
export interface StreamStart {
  after: number
  bare: boolean
}

/** The form of ids of sessions and runs. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const RETRY_MS = 1_000
const MAX_UNREAD_BYTES = 1024 * 1024
const BATCH = 256
const PIECE_CHARS = 64 * 1024
/** A finished run counts as seen by late bare readers this long after its `done`. */
const LATE_READERS_MS = 5_000

/** Streams a session's events to one reader until it goes, or the session does. */
export function eventStreams({ store, doorbell, now, heartbeatMs }: EventStreamOptions) {
  const open = new Set<SseStream>()
  const heart = setInterval(() => {
    for (const stream of open) stream.write(sseComment('alive'))
  }, heartbeatMs).unref()

  return {
    /** The place of a request's cursor: `Last-Event-ID`, else `after`, else the start of `run`, else of a bare stream. */
    async start(session: Session, request: Request, query: EventQuery): Promise<StreamStart> {
      const asked = cursorOf(request) ?? query.after
      // Before the log's bounds: a run that begins in between must not lie beyond them.
      const run = query.runId === null ? null : await runOf(session.id, query.runId)
      // What came before the run is not shown, so it need not be there to read either.
      const given = run === null ? asked : Math.max(asked ?? 0, run.afterSeq)
      const bounds = await store.log.bounds(session.id)
      if (bounds === null) throw new AppError('not_found', `There is no session ${session.id}.`)
      if (given === null)
        return { after: Math.max(await bareStart(session, bounds.newest), bounds.oldest - 1), bare: true }
      if (given > bounds.newest || given + 1 < bounds.oldest) {
        throw new AppError('cursor_expired', 'Events after this id are not there to read; start at one that is.', {
          details: { oldest: bounds.oldest, newest: bounds.newest },
        })
      }
      // Where that cannot be read now the caller is told by a status, not by a stream that breaks off.
      if (given < bounds.newest) await store.log.read(session.id, given, 1)
      return { after: given, bare: false }
    },

    async stream(session: Session, reply: Reply, query: EventQuery & StreamStart): Promise<void> {
      reply.hijack()
      const openedAt = now()
      const headers = headersOf(reply)
      const stream = openSse(reply.raw, { retryMs: RETRY_MS, maxUnreadBytes: MAX_UNREAD_BYTES, headers })
      if (query.byTicket) stream.write(`id: ${query.after}\n\n`)
      const gone = new AbortController()
      stream.onClose(() => gone.abort())
      open.add(stream)
      const read = (after: number) => readOrEnd(session.id, after, gone)
      try {
        for await (const events of tail(doorbell, bell(session.id), read, {
          afterSeq: query.after,
          signal: gone.signal,
        })) {
          const goesOn = await tell(stream, events, query)
          const done = events.findLast(({ type }) => type === 'done')
          if (query.bare && done) void take(session.id, done, openedAt).catch(() => undefined)
          if (!goesOn) return
        }
      } finally {
        open.delete(stream)
        stream.end()
      }
    },

    /** True when a reader with `?until=done` has nothing left to come for. */
    async isOver(session: Session, { after, runId }: Pick<EventQuery, 'runId'> & StreamStart): Promise<boolean> {
      if (runId !== null) {
        const { status } = await runOf(session.id, runId)
        return status === 'finished' && !(await tellsMore(session.id, runId, after))
      }
      if (session.status !== 'idle') return false
      const bounds = await store.log.bounds(session.id)
      return bounds !== null && after >= bounds.newest && bounds.newest > 0
    },

    close(): void {
      clearInterval(heart)
      for (const stream of open) stream.end()
    },
    get count() {
      return open.size
    },
  }

  async function runOf(sessionId: string, runId: string): Promise<Run> {
    const run = await store.runs.get(sessionId, runId)
    if (run !== null) return run
    throw new AppError(
      'not_found',
      `There is no run ${runId} in this session; GET /sessions/${sessionId}/runs lists them.`,
    )
  }

  async function tellsMore(sessionId: string, runId: string, after: number): Promise<boolean> {
    for (let last = after; ; ) {
      const events = await store.log.read(sessionId, last, BATCH)
      if (events.some((event) => event.runId === runId)) return true
      const newest = events.at(-1)
      if (newest === undefined) return false
      last = newest.seq
    }
  }

  /** Ends the stream of a session that was deleted, after what it still had to say. */
  async function readOrEnd(sessionId: string, after: number, gone: AbortController): Promise<StoredEvent[]> {
    const events = await store.log.read(sessionId, after, BATCH)
    if (events.length === 0 && (await store.log.bounds(sessionId)) === null) gone.abort()
    const [first] = events
    if (first === undefined || first.seq === after + 1) return events
    // The log was trimmed past this reader: it comes again and is told so, instead of missing something unawares.
    gone.abort()
    return []
  }

  /** In pieces that the reader takes one after the other: a long log is never in memory twice. False ends the stream. */
  async function tell(stream: SseStream, events: StoredEvent[], query: EventQuery): Promise<boolean> {
    let text = ''
    for (const event of events) {
      if (query.runId !== null && event.runId !== query.runId) continue
      if (!query.extended && !PUBLIC_EVENTS.includes(event.type)) continue
      const name = event.type === 'error' ? query.errorEvent : event.type
      text += sseEvent({ id: event.seq, event: name, data: event.data })
      if (event.type === 'done' && query.until === 'done') {
        stream.write(text)
        return false
      }
      if (text.length < PIECE_CHARS) continue
      if (!(await send(stream, text))) return false
      text = ''
    }
    return text === '' || send(stream, text)
  }

  async function send(stream: SseStream, text: string): Promise<boolean> {
    if (!stream.write(text)) return false
    await stream.drained()
    return !stream.closed
  }

  /** The active run from its start; when idle the last run, if no bare stream has taken it; else what comes. */
  async function bareStart(session: Session, newest: number): Promise<number> {
    const runs = await store.runs.list(session.id)
    const active = runs.find(({ id }) => id === session.activeRunId)
    if (active) return active.afterSeq
    const last = runs.findLast(({ status }) => status === 'finished')
    return last === undefined || session.takenSeq > last.afterSeq ? newest : last.afterSeq
  }

  /**
   * A bare stream has told a run's end. One that was open before the run takes it at once; one that came later leaves it
   * to others for a while, so that several who subscribe after the POST all see it.
   */
  async function take(sessionId: string, done: StoredEvent, openedAt: number): Promise<void> {
    const run = await store.runs.get(sessionId, done.runId)
    const early = run !== null && openedAt <= run.createdAt
    const mark = () => void store.sessions.update(sessionId, { takenSeq: done.seq }).catch(() => undefined)
    const waitMs = early ? 0 : done.at + LATE_READERS_MS - now()
    if (waitMs <= 0) mark()
    else setTimeout(mark, waitMs).unref()
  }
}

/** What streams are made with. */
export type EventStreams = ReturnType<typeof eventStreams>

/** What was set on a reply before it became a stream. */
export function headersOf(reply: Reply): Record<string, string> {
  return Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]))
}

/** A reader's options, from the query. */
export function readEventQuery(query: unknown): EventQuery {
  const given = new Map(typeof query === 'object' && query !== null ? Object.entries(query) : [])
  const after = given.get('after')
  if (after !== undefined && !/^\d{1,15}$/.test(String(after))) {
    throw new AppError('bad_request', 'after must be the id of an event, a whole number.', {
      details: { field: 'after' },
    })
  }
  const run = given.get('run')
  if (run !== undefined && !UUID.test(String(run)))
    throw new AppError('bad_request', 'run must be the id of a run.', { details: { field: 'run' } })
  const until = given.get('until')
  if (until !== undefined && until !== 'done')
    throw new AppError('bad_request', 'until can only be done.', { details: { field: 'until' } })
  const extended = String(given.get('extended') ?? '0')
  if (!/^([01]|true|false)$/.test(extended))
    throw new AppError('bad_request', 'extended must be 0 or 1.', { details: { field: 'extended' } })
  const errorEvent = String(given.get('error_event') ?? 'error')
  if (!/^[a-z_]{1,40}$/.test(errorEvent))
    throw new AppError('bad_request', 'error_event must be a name such as run_error.', {
      details: { field: 'error_event' },
    })
  return {
    after: after === undefined ? null : Number(after),
    extended: extended === '1' || extended === 'true',
    until: until ?? null,
    errorEvent,
    runId: run === undefined ? null : String(run).toLowerCase(),
    byTicket: given.has('ticket'),
  }
}

function cursorOf(request: Request): number | null {
  const header = request.headers['last-event-id']
  if (header === undefined || header === '') return null
  if (typeof header === 'string' && /^\d{1,15}$/.test(header)) return Number(header)
  throw new AppError('bad_request', 'Last-Event-ID must be the id of an event, a whole number.', {
    details: { field: 'Last-Event-ID' },
  })
}
