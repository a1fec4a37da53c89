import { AppError } from '../../kit/errors.ts'
import { eventData } from '../event-data.ts'
import { addUsage, type Message, type Run, type RunEvent, type Session, type StoredEvent } from '../model.ts'
import type { AgentStore, LogEntry, Receipt } from './port.ts'

/** All of one session. */
interface Kept {
  session: Session
  events: StoredEvent[]
  /** The newest number given, also of events that were trimmed. */
  newest: number
  messages: Message[]
  runs: Map<string, Run>
  generation: number
}

const MAX_QUEUED = 16
const RECEIPT_LIFE_MS = 24 * 60 * 60_000

/** Sessions in this process, gone with it. */
export function memoryStore(): AgentStore {
  const sessions = new Map<string, Kept>()
  const receipts = receiptBook()

  return {
    sessions: {
      async create(session, receipt) {
        const known = receipts.find(receipt)
        const earlier = known === null ? undefined : sessions.get(known)
        if (earlier) return copy(earlier.session)
        sessions.set(session.id, {
          session: { ...session },
          events: [],
          newest: 0,
          messages: [],
          runs: new Map(),
          generation: 0,
        })
        receipts.keep(receipt, session.id)
        return copy(session)
      },
      async get(id) {
        const kept = sessions.get(id)
        return kept ? copy(kept.session) : null
      },
      async list({ limit, cursor }) {
        // Newest first; a Map keeps the order of creation.
        const all = [...sessions.values()].reverse()
        const from = cursor === null ? 0 : all.findIndex(({ session }) => session.id === cursor) + 1
        return all.slice(from, limit === null ? undefined : from + limit).map(({ session }) => copy(session))
      },
      async update(id, patch) {
        const kept = sessions.get(id)
        if (kept === undefined) return null
        Object.assign(kept.session, patch)
        return copy(kept.session)
      },
      remove: async (id) => sessions.delete(id),
      count: async () => sessions.size,
    },
    log: {
      async append(sessionId, generation, entry) {
        const kept = need(sessionId)
        if (generation < kept.generation) throw new AppError('fenced', 'Another owner has taken this session over.')
        return apply(kept, entry)
      },
      async read(sessionId, afterSeq, limit) {
        const events = sessions.get(sessionId)?.events ?? []
        const first = events[0]
        if (first === undefined) return []
        const from = Math.max(0, afterSeq + 1 - first.seq)
        return events.slice(from, from + limit)
      },
      async bounds(sessionId) {
        const kept = sessions.get(sessionId)
        return kept ? { oldest: kept.events[0]?.seq ?? kept.newest + 1, newest: kept.newest } : null
      },
      transcript: async (sessionId) => [...(sessions.get(sessionId)?.messages ?? [])],
      async trim(sessionId, seq) {
        const kept = sessions.get(sessionId)
        if (kept) kept.events = kept.events.filter((event) => event.seq > seq)
      },
    },
    runs: {
      async admit(run, { receipt, whenBusy, maxQueued = MAX_QUEUED }) {
        const kept = need(run.sessionId)
        const known = receipts.find(receipt)
        const earlier = known === null ? undefined : kept.runs.get(known)
        if (earlier !== undefined) return { run: copy(earlier), repeated: true }
        const admitted: Run = { ...run, afterSeq: kept.newest }
        if (kept.session.status !== 'idle') queueUp(kept, admitted, whenBusy, maxQueued)
        else startNow(kept, admitted, run.createdAt)
        kept.runs.set(run.id, admitted)
        kept.session.turnCount += 1
        kept.session.lastActive = run.createdAt
        receipts.keep(receipt, run.id)
        return { run: copy(admitted), repeated: false }
      },
      async get(sessionId, runId) {
        const run = sessions.get(sessionId)?.runs.get(runId)
        return run ? copy(run) : null
      },
      list: async (sessionId) => [...(sessions.get(sessionId)?.runs.values() ?? [])].map(copy),
      async next(sessionId, now) {
        const kept = sessions.get(sessionId)
        const waiting = kept && [...kept.runs.values()].find(({ status }) => status === 'queued')
        if (!kept || !waiting || kept.session.status !== 'idle') return null
        waiting.afterSeq = kept.newest
        startNow(kept, waiting, now)
        return copy(waiting)
      },
      async fence(sessionId) {
        const kept = need(sessionId)
        kept.generation += 1
        return kept.generation
      },
      unfinished: async () => [...sessions.values()].filter(isUnfinished).map(({ session }) => copy(session)),
    },
    close: async () => sessions.clear(),
  }

  function need(sessionId: string): Kept {
    const kept = sessions.get(sessionId)
    if (kept === undefined) throw new AppError('not_found', `There is no session ${sessionId}.`)
    return kept
  }
}

function isUnfinished({ session, runs }: Kept): boolean {
  return session.status !== 'idle' || [...runs.values()].some(({ status }) => status === 'queued')
}

function apply(kept: Kept, entry: LogEntry): number {
  const { session } = kept
  for (const event of entry.events) {
    kept.newest += 1
    kept.events.push(stored(event, kept.newest, entry))
  }
  kept.messages.push(...entry.messages)
  if (entry.session) Object.assign(session, entry.session)
  session.lastActive = entry.now
  const run = kept.runs.get(entry.runId)
  if (entry.run && run) {
    const { usage, activeMs, ...change } = entry.run
    Object.assign(run, change)
    if (activeMs !== undefined) run.activeMs = activeMs
    if (usage) run.usage = addUsage(run.usage, usage)
    if (usage) session.usage = addUsage(session.usage, usage)
    if (change.status === 'finished') run.finishedAt = entry.now
  }
  return kept.newest
}

function stored(event: RunEvent, seq: number, { runId, now }: LogEntry): StoredEvent {
  return { seq, runId, at: now, type: event.type, data: eventData(event, seq, runId) }
}

function queueUp({ session, runs }: Kept, run: Run, whenBusy: 'refuse' | 'enqueue', maxQueued: number): void {
  if (whenBusy === 'refuse') {
    throw new AppError(
      'session_busy',
      `Session ${session.id} already has a run; wait for its done event, or send on_busy.`,
      {
        details: { active_run_id: session.activeRunId },
      },
    )
  }
  const queued = [...runs.values()].filter(({ status }) => status === 'queued').length
  if (queued >= maxQueued) {
    throw new AppError('queue_full', `${maxQueued} runs wait in this session already; try again when one has ended.`, {
      retryAfterMs: 5_000,
    })
  }
  run.status = 'queued'
}

function startNow({ session }: Kept, run: Run, now: number): void {
  run.status = 'running'
  run.startedAt = now
  session.status = 'running'
  session.activeRunId = run.id
}

interface ReceiptBook {
  /** What was made under this key before; `key_reused` for another body. */
  find(receipt: Receipt | null): string | null
  keep(receipt: Receipt | null, made: string): void
}

function receiptBook(): ReceiptBook {
  const book = new Map<string, { bodyHash: string; made: string; at: number }>()
  return {
    find(receipt) {
      const known = receipt && book.get(receipt.key)
      if (!receipt || !known || receipt.now - known.at > RECEIPT_LIFE_MS) return null
      if (known.bodyHash === receipt.bodyHash) return known.made
      throw new AppError('key_reused', 'This Idempotency-Key was used for another body; use a new one.')
    },
    keep(receipt, made) {
      if (receipt === null) return
      // A Map keeps the order of entry, so the oldest stand in front.
      for (const [key, { at }] of book) {
        if (receipt.now - at <= RECEIPT_LIFE_MS) break
        book.delete(key)
      }
      book.set(receipt.key, { bodyHash: receipt.bodyHash, made, at: receipt.now })
    },
  }
}

function copy<T extends object>(value: T): T {
  return { ...value }
}
