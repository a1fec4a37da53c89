import type { Db } from '../../kit/sqlite/database.ts'
import type { Message, Run, Session, StoredEvent } from '../model.ts'
import { unknownCursor } from './records.ts'
import { findRow, findRun, SELECT_SESSION, type SessionRow, toRun, toSession } from './rows.ts'

export function readSession(db: Db, id: string): Session | null {
  const row = findRow(db, id)
  return row === undefined ? null : toSession(row)
}

/** Newest first; `bad_request` for a cursor that is no session. */
export function listSessions(db: Db, { limit, cursor }: { limit: number | null; cursor: string | null }): Session[] {
  const before = cursor === null ? null : findRow(db, cursor)
  if (before === undefined) throw unknownCursor(cursor ?? '')
  const sql = `${SELECT_SESSION} WHERE number < ? ORDER BY number DESC LIMIT ?`
  return db.all<SessionRow>(sql, before?.number ?? Number.MAX_SAFE_INTEGER, limit ?? -1).map(toSession)
}

export function countSessions(db: Db): number {
  return db.get<{ count: number }>('SELECT count(*) AS count FROM sessions')?.count ?? 0
}

export function listUnfinished(db: Db): Session[] {
  return db.all<SessionRow>(`${SELECT_SESSION} WHERE unfinished = 1 ORDER BY number`).map(toSession)
}

export function readEvents(db: Db, id: string, afterSeq: number, limit: number): StoredEvent[] {
  return db.all<StoredEvent>(
    `SELECT seq, run_id AS runId, at, type, data FROM events
     WHERE session = (SELECT number FROM sessions WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?`,
    id,
    afterSeq,
    limit,
  )
}

export function readBounds(db: Db, id: string): { oldest: number; newest: number } | null {
  return db.get<{ oldest: number; newest: number }>('SELECT oldest, newest FROM sessions WHERE id = ?', id) ?? null
}

export function readTranscript(db: Db, id: string): Message[] {
  const sql = 'SELECT body FROM messages WHERE session = (SELECT number FROM sessions WHERE id = ?) ORDER BY number'
  return db.all<{ body: string }>(sql, id).map(({ body }): Message => JSON.parse(body))
}

export function readRun(db: Db, id: string, runId: string): Run | null {
  const row = findRow(db, id)
  return (row && findRun(db, row.number, runId)) ?? null
}

export function listRuns(db: Db, id: string): Run[] {
  const row = findRow(db, id)
  if (row === undefined) return []
  return db.all<{ record: string }>('SELECT record FROM runs WHERE session = ? ORDER BY number', row.number).map(toRun)
}
