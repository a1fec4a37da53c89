import type { Db } from '../../kit/sqlite/database.ts'
import type { DecidedPlan, Run, Session } from '../model.ts'
import type { Admission, AdmitOptions, LogEntry, StoreLimits } from './port.ts'
import { acceptRun, applyEntry, firstQueued, startRun, storedEvents } from './records.ts'
import {
  countQueued,
  findRow,
  findRun,
  needRow,
  type SessionRow,
  saveRun,
  saveSession,
  toRun,
  toSession,
} from './rows.ts'
import { findReceipt, insertMessages, keepReceipt } from './write-sessions.ts'

interface Appended {
  sessionId: string
  entry: LogEntry
  limits: StoreLimits
}

/** Adds an entry to a session; returns the newest seq. */
export function appendEntry(db: Db, { sessionId, entry, limits }: Appended): number {
  const row = needRow(db, sessionId)
  return addEntry(db, row, toSession(row), entry, limits)
}

/** Ends the wait for a plan, if it still waits. */
export function settlePlan(
  db: Db,
  { sessionId, planId, entry, decided, limits }: Appended & { planId: string; decided: DecidedPlan | null },
): boolean {
  const row = needRow(db, sessionId)
  const session = toSession(row)
  if (session.pendingPlan?.planId !== planId) return false
  addEntry(db, row, decided ? { ...session, decidedPlan: decided } : session, entry, limits)
  return true
}

/** Accepts a run, or finds the one that was accepted under its key. */
export function admitRun(db: Db, { run, options }: { run: Run; options: AdmitOptions }): Omit<Admission, 'claim'> {
  const row = needRow(db, run.sessionId)
  const known = findReceipt(db, options.receipt)
  const earlier = known === null ? undefined : findRun(db, row.number, known)
  if (earlier) return { run: earlier, repeated: true, activeRunId: null }
  const session = toSession(row)
  const admitted = { ...run }
  const { activeRunId } = session
  acceptRun(session, admitted, { ...options, newest: row.newest, queued: countQueued(db, row.number) })
  const sql = 'INSERT INTO runs (session, id, queued, record) VALUES (?, ?, ?, ?)'
  db.run(sql, row.number, run.id, admitted.status === 'queued' ? 1 : 0, JSON.stringify(admitted))
  saveSession(db, row, session)
  keepReceipt(db, options.receipt, run.id)
  return { run: admitted, repeated: false, activeRunId: admitted.status === 'queued' ? activeRunId : null }
}

/** Starts the first queued run of an idle session; null when there is none. */
export function nextRun(db: Db, { sessionId, now }: { sessionId: string; now: number }): Run | null {
  const row = findRow(db, sessionId)
  const session = row && toSession(row)
  if (row === undefined || session?.status !== 'idle') return null
  const sql = 'SELECT record FROM runs WHERE session = ? AND queued = 1 ORDER BY number'
  const run = firstQueued(db.all<{ record: string }>(sql, row.number).map(toRun))
  if (run === undefined) return null
  startRun(session, run, row.newest, now)
  saveRun(db, row.number, run)
  saveSession(db, row, session)
  return run
}

function addEntry(db: Db, row: SessionRow, session: Session, entry: LogEntry, limits: StoreLimits): number {
  const newest = insertEvents(db, row, entry, limits)
  insertMessages(db, row, entry.messages)
  const run = entry.run && findRun(db, row.number, entry.runId)
  applyEntry(session, run, entry)
  if (run) saveRun(db, row.number, run)
  saveSession(db, row, session)
  return newest
}

function insertEvents(db: Db, row: SessionRow, entry: LogEntry, limits: StoreLimits): number {
  const events = storedEvents(entry, row.newest)
  let logBytes = row.logBytes
  for (const { seq, runId, at, type, data } of events) {
    const bytes = Buffer.byteLength(data)
    logBytes += bytes
    const sql = 'INSERT INTO events (session, seq, run_id, at, type, data, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)'
    db.run(sql, row.number, seq, runId, at, type, data, bytes)
  }
  const newest = row.newest + events.length
  if (events.length === 0) return newest
  const kept = trimLog(db, { number: row.number, oldest: row.oldest, newest, logBytes }, limits)
  const sql = 'UPDATE sessions SET newest = ?, oldest = ?, log_bytes = ? WHERE number = ?'
  db.run(sql, newest, kept.oldest, kept.logBytes, row.number)
  return newest
}

/** Forgets the oldest events where there are too many; never the newest one. */
function trimLog(
  db: Db,
  { number, oldest, newest, logBytes }: { number: number; oldest: number; newest: number; logBytes: number },
  { maxLogEvents, maxLogBytes }: StoreLimits,
): { oldest: number; logBytes: number } {
  let [first, bytes] = [oldest, logBytes]
  while (first < newest && (newest - first + 1 > maxLogEvents || bytes > maxLogBytes)) {
    const sql = 'SELECT bytes FROM events WHERE session = ? AND seq = ?'
    bytes -= db.get<{ bytes: number }>(sql, number, first)?.bytes ?? 0
    db.run('DELETE FROM events WHERE session = ? AND seq = ?', number, first)
    first += 1
  }
  return { oldest: first, logBytes: bytes }
}
