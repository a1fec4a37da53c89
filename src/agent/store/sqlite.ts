import { type LocalLease, memoryLease } from '../../kit/lease.ts'
import type { Db } from '../../kit/sqlite/database.ts'
import { type GroupWriter, groupWriter } from '../../kit/sqlite/group-writer.ts'
import { type OpenSqlite, openSqlite } from '../../kit/sqlite/open.ts'
import { type WatchedCommits, watchCommits } from '../../kit/sqlite/watch-commits.ts'
import type { Call, Outputs } from './operations.ts'
import type { AgentStore, RunStore, SessionLog, SessionStore, StoreLimits } from './port.ts'
import {
  countSessions,
  listRuns,
  listSessions,
  listUnfinished,
  readBounds,
  readEvents,
  readRun,
  readSession,
  readTranscript,
} from './reads.ts'
import { endsWork, fenced, noSession, ofRun } from './records.ts'

/** The module of the thread that writes. */
export const WRITER_THREAD = import.meta.url.endsWith('.ts')
  ? new URL('./writer-thread.ts', import.meta.url)
  : new URL('./writer-thread.js', import.meta.url)

export interface SqliteStoreOptions extends StoreLimits {
  /** Made when it is not there. One server at a time. */
  dir: string
}

/** A store that says whether it can write. */
export interface SqliteStore extends AgentStore {
  /** Why nothing can be stored now; null when all is well. */
  trouble(): string | null
}

const DATABASE = 'agent.db'

/**
 * The store of an agent server on one machine. Writes go through one thread, gathered into commits; reads have a
 * connection of their own. Leases live in memory: the directory is locked, so nobody outlives the process that gave them.
 * Fails with `data_dir_in_use`, `data_dir_unusable` or `store_newer`.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { dir, maxSessions, maxLogEvents, maxLogBytes } = options
  const limits = { maxSessions, maxLogEvents, maxLogBytes }
  return sqliteStoreOn(
    await openSqlite<Call>({ dir, database: DATABASE, service: 'agent server', thread: WRITER_THREAD }),
    limits,
  )
}

/** A store on a database that is open. */
export function sqliteStoreOn(
  opened: OpenSqlite<Call>,
  limits: StoreLimits,
  leases = memoryLease({ now: () => 0, lifeMs: 1 }),
): SqliteStore {
  const watched: WatchedCommits<Call> = watchCommits({
    commit: opened.commit,
    tryWrite: () => writer.run({ name: 'tryWrite', input: null }),
  })
  const writer = groupWriter<Call, Outputs>({ commit: watched.commit })
  const parts: Parts = { db: opened.db, writer, limits, leases }
  return {
    sessions: sessionStore(parts),
    log: sessionLog(parts),
    runs: runStore(parts),
    leases: parts.leases,
    count: async () => countSessions(opened.db),
    trouble: watched.trouble,
    close() {
      watched.stop()
      return opened.close(writer.drain)
    },
  }
}

interface Parts {
  db: Db
  writer: GroupWriter<Call, Outputs>
  leases: LocalLease
  limits: StoreLimits
}

function sessionStore({ db, writer, limits: { maxSessions } }: Parts): SessionStore {
  return {
    create: (session, receipt) =>
      writer.run({ name: 'createSession', input: { session, receipt, maxSessions, from: null } }),
    fork: (fromId, session, { messages, receipt }) =>
      writer.run({
        name: 'createSession',
        input: { session, receipt, maxSessions, from: { id: fromId, messages } },
      }),
    get: async (id) => readSession(db, id),
    list: async (page) => listSessions(db, page),
    update: (id, patch) => writer.run({ name: 'updateSession', input: { id, patch } }),
    remove: (id) => writer.run({ name: 'removeSession', input: { id } }),
  }
}

function sessionLog({ db, writer, leases, limits }: Parts): SessionLog {
  return {
    async append(claim, entry) {
      const check = () => {
        if (!leases.holds(claim)) throw readBounds(db, claim.key) === null ? noSession(claim.key) : fenced()
      }
      check()
      const newest = await writer.run({ name: 'appendEntry', input: { sessionId: claim.key, entry, limits } }, check)
      if (endsWork(entry)) leases.drop(claim)
      return newest
    },
    read: async (sessionId, afterSeq, limit) => readEvents(db, sessionId, afterSeq, limit),
    bounds: async (sessionId) => readBounds(db, sessionId),
    transcript: async (sessionId, runId) => ofRun(readTranscript(db, sessionId), runId),
  }
}

function runStore({ db, writer, leases, limits }: Parts): RunStore {
  return {
    async admit(run, options) {
      const admitted = await writer.run({ name: 'admitRun', input: { run, options } })
      const begins = !admitted.repeated && admitted.run.status === 'running'
      return { ...admitted, claim: begins ? leases.grant(run.sessionId) : null }
    },
    get: async (sessionId, runId) => readRun(db, sessionId, runId),
    list: async (sessionId) => listRuns(db, sessionId),
    async next(sessionId, now) {
      const run = await writer.run({ name: 'nextRun', input: { sessionId, now } })
      return run && { run, claim: leases.grant(sessionId) }
    },
    async settlePlan(sessionId, planId, entry, decided) {
      const input = { sessionId, planId, entry, decided, limits }
      const settled = await writer.run({ name: 'settlePlan', input })
      if (!settled) return { settled }
      return { settled, claim: endsWork(entry) ? null : leases.grant(sessionId) }
    },
    unfinished: async () => listUnfinished(db),
  }
}
