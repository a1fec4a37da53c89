import { type LocalLease, memoryLease } from '../../kit/lease.ts'
import type { Message, Run, Session, StoredEvent } from '../model.ts'
import type { AgentStore, LogEntry, Receipt, RunStore, SessionLog, SessionStore, StoreLimits } from './port.ts'
import {
  acceptRun,
  applyEntry,
  checkRoom,
  endsWork,
  fenced,
  firstMessages,
  firstQueued,
  isReceiptOver,
  type KeptReceipt,
  logBounds,
  madeUnder,
  noSession,
  ofRun,
  startRun,
  storedEvents,
  unknownCursor,
} from './records.ts'

/** All of one session. Most have nothing in their lists, and share the empty one. */
interface Kept {
  session: Session
  events: StoredEvent[]
  /** The newest number given, also of events that were trimmed. */
  newest: number
  logBytes: number
  messages: Message[]
  runs: Run[]
}

const NONE: never[] = []
const UNBOUNDED: StoreLimits = {
  maxSessions: Number.POSITIVE_INFINITY,
  maxLogEvents: Number.POSITIVE_INFINITY,
  maxLogBytes: Number.POSITIVE_INFINITY,
}

/** Sessions in this process, gone with it. */
export function memoryStore(limits: StoreLimits = UNBOUNDED): AgentStore {
  const books: Books = {
    sessions: new Map(),
    receipts: new Map(),
    // Whoever holds a claim lives as long as the process does.
    leases: memoryLease({ now: () => 0, lifeMs: 1 }),
    limits,
  }
  return {
    sessions: sessionStore(books),
    log: sessionLog(books),
    runs: runStore(books),
    leases: books.leases,
    count: async () => books.sessions.size,
    close: async () => books.sessions.clear(),
  }
}

interface Books {
  sessions: Map<string, Kept>
  receipts: Map<string, KeptReceipt>
  leases: LocalLease
  limits: StoreLimits
}

function sessionStore(books: Books): SessionStore {
  const { sessions, limits } = books
  return {
    create: async (session, receipt) => keep(session, receipt, () => NONE),
    fork: async (fromId, session, { messages, receipt }) =>
      keep(session, receipt, () => firstMessages(need(books, fromId).messages, messages)),
    async get(id) {
      const kept = sessions.get(id)
      return kept ? { ...kept.session } : null
    },
    async list({ limit, cursor }) {
      // Newest first; a Map keeps the order of creation.
      const all = [...sessions.values()].reverse()
      const place = cursor === null ? -1 : all.findIndex(({ session }) => session.id === cursor)
      if (cursor !== null && place === -1) throw unknownCursor(cursor)
      return all.slice(place + 1, limit === null ? undefined : place + 1 + limit).map(({ session }) => ({ ...session }))
    },
    async update(id, patch) {
      const kept = sessions.get(id)
      if (kept === undefined) return null
      Object.assign(kept.session, patch)
      return { ...kept.session }
    },
    remove: async (id) => sessions.delete(id),
  }

  function keep(session: Session, receipt: Receipt | null, messages: () => Message[]): Session {
    const known = madeUnder(receipt, receipt === null ? undefined : books.receipts.get(receipt.key))
    const earlier = known === null ? undefined : sessions.get(known)
    if (earlier) return { ...earlier.session }
    checkRoom(sessions.size, limits.maxSessions)
    sessions.set(session.id, {
      session: { ...session },
      events: NONE,
      newest: 0,
      logBytes: 0,
      messages: messages(),
      runs: NONE,
    })
    keepReceipt(books, receipt, session.id)
    return { ...session }
  }
}

function sessionLog(books: Books): SessionLog {
  const { sessions, leases } = books
  return {
    async append(claim, entry) {
      const kept = need(books, claim.key)
      if (!leases.holds(claim)) throw fenced()
      apply(kept, entry, books.limits)
      if (endsWork(entry)) leases.drop(claim)
      return kept.newest
    },
    async read(sessionId, afterSeq, limit) {
      const events = sessions.get(sessionId)?.events ?? NONE
      const from = Math.max(0, afterSeq + 1 - (events[0]?.seq ?? 0))
      return events.slice(from, from + limit)
    },
    async bounds(sessionId) {
      const kept = sessions.get(sessionId)
      return kept ? logBounds(kept.newest, kept.events.length) : null
    },
    transcript: async (sessionId, runId) => ofRun(sessions.get(sessionId)?.messages ?? NONE, runId),
  }
}

function runStore(books: Books): RunStore {
  const { sessions, leases } = books
  return {
    async admit(run, options) {
      const { receipt } = options
      const kept = need(books, run.sessionId)
      const known = madeUnder(receipt, receipt === null ? undefined : books.receipts.get(receipt.key))
      const earlier = known === null ? undefined : kept.runs.find(({ id }) => id === known)
      if (earlier !== undefined) return { run: { ...earlier }, repeated: true, claim: null, activeRunId: null }
      const admitted: Run = { ...run }
      const { activeRunId } = kept.session
      const queued = queuedOf(kept).length
      acceptRun(kept.session, admitted, { ...options, newest: kept.newest, queued })
      kept.runs = added(kept.runs, [admitted])
      keepReceipt(books, receipt, run.id)
      const claim = admitted.status === 'running' ? leases.grant(run.sessionId) : null
      return { run: { ...admitted }, repeated: false, claim, activeRunId: claim === null ? activeRunId : null }
    },
    async get(sessionId, runId) {
      const run = sessions.get(sessionId)?.runs.find(({ id }) => id === runId)
      return run ? { ...run } : null
    },
    list: async (sessionId) => (sessions.get(sessionId)?.runs ?? NONE).map((run) => ({ ...run })),
    async next(sessionId, now) {
      const kept = sessions.get(sessionId)
      const waiting = kept && firstQueued(queuedOf(kept))
      if (!kept || !waiting || kept.session.status !== 'idle') return null
      startRun(kept.session, waiting, kept.newest, now)
      return { run: { ...waiting }, claim: leases.grant(sessionId) }
    },
    async settlePlan(sessionId, planId, entry, decided) {
      const kept = need(books, sessionId)
      if (kept.session.pendingPlan?.planId !== planId) return { settled: false }
      apply(kept, entry, books.limits)
      if (decided) kept.session.decidedPlan = decided
      return { settled: true, claim: kept.session.status === 'running' ? leases.grant(sessionId) : null }
    },
    unfinished: async () => [...sessions.values()].filter(isUnfinished).map(({ session }) => ({ ...session })),
  }
}

function need({ sessions }: Books, sessionId: string): Kept {
  const kept = sessions.get(sessionId)
  if (kept === undefined) throw noSession(sessionId)
  return kept
}

function queuedOf({ runs }: Kept): Run[] {
  return runs.filter(({ status }) => status === 'queued')
}

function isUnfinished({ session, runs }: Kept): boolean {
  return session.status !== 'idle' || runs.some(({ status }) => status === 'queued')
}

function apply(kept: Kept, entry: LogEntry, limits: StoreLimits): void {
  const events = storedEvents(entry, kept.newest)
  kept.newest += events.length
  kept.events = added(kept.events, events)
  kept.messages = added(kept.messages, entry.messages)
  for (const { data } of events) kept.logBytes += Buffer.byteLength(data)
  trim(kept, limits)
  const run = kept.runs.findLast(({ id }) => id === entry.runId)
  applyEntry(kept.session, run, entry)
}

/** Forgets the oldest events where there are too many; never the newest one. */
function trim(kept: Kept, { maxLogEvents, maxLogBytes }: StoreLimits): void {
  let gone = 0
  while (gone < kept.events.length - 1 && (kept.events.length - gone > maxLogEvents || kept.logBytes > maxLogBytes)) {
    kept.logBytes -= Buffer.byteLength(kept.events[gone]?.data ?? '')
    gone += 1
  }
  if (gone > 0) kept.events.splice(0, gone)
}

/** Adds to a list; the empty one that all share becomes the session's own. */
function added<T>(list: T[], more: readonly T[]): T[] {
  if (more.length === 0) return list
  if (list === NONE) return [...more]
  list.push(...more)
  return list
}

function keepReceipt({ receipts }: Books, receipt: Receipt | null, made: string): void {
  if (receipt === null) return
  // A Map keeps the order of entry, so the oldest stand in front.
  for (const [key, { at }] of receipts) {
    if (!isReceiptOver(at, receipt.now)) break
    receipts.delete(key)
  }
  receipts.delete(receipt.key)
  receipts.set(receipt.key, { bodyHash: receipt.bodyHash, made, at: receipt.now })
}
