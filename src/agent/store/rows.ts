import type { Db } from '../../kit/sqlite/database.ts'
import type { Run, Session } from '../model.ts'
import { noSession } from './records.ts'

/** A session's row. */
export interface SessionRow {
  number: number
  id: string
  fixed: string
  state: string
  oldest: number
  newest: number
  logBytes: number
  messages: number
}

const COLUMNS = 'number, id, fixed, state, oldest, newest, log_bytes AS logBytes, messages'

export const SELECT_SESSION = `SELECT ${COLUMNS} FROM sessions`

export function findRow(db: Db, id: string): SessionRow | undefined {
  return db.get<SessionRow>(`${SELECT_SESSION} WHERE id = ?`, id)
}

/** The session's row; `not_found` when it has gone. */
export function needRow(db: Db, id: string): SessionRow {
  const row = findRow(db, id)
  if (row === undefined) throw noSession(id)
  return row
}

export function toSession({ fixed, state }: Pick<SessionRow, 'fixed' | 'state'>): Session {
  return { ...JSON.parse(fixed), ...JSON.parse(state) }
}

/** A session as its two columns. */
export function fromSession(session: Session): { fixed: string; state: string } {
  const { id, createdAt, systemPrompt, workspace, model, maxSteps, planMode, ...state } = session
  const fixed = { id, createdAt, systemPrompt, workspace, model, maxSteps, planMode }
  return { fixed: JSON.stringify(fixed), state: JSON.stringify(state) }
}

/** Writes back what a step changed of a session. */
export function saveSession(db: Db, { number }: SessionRow, session: Session): void {
  const unfinished = session.status !== 'idle' || countQueued(db, number) > 0
  db.run(
    'UPDATE sessions SET state = ?, unfinished = ? WHERE number = ?',
    fromSession(session).state,
    unfinished ? 1 : 0,
    number,
  )
}

export function countQueued(db: Db, session: number): number {
  const sql = 'SELECT count(*) AS count FROM runs WHERE session = ? AND queued = 1'
  return db.get<{ count: number }>(sql, session)?.count ?? 0
}

export function findRun(db: Db, session: number, id: string): Run | undefined {
  const row = db.get<{ record: string }>('SELECT record FROM runs WHERE session = ? AND id = ?', session, id)
  return row && toRun(row)
}

export function toRun({ record }: { record: string }): Run {
  return JSON.parse(record)
}

export function saveRun(db: Db, session: number, run: Run): void {
  const queued = run.status === 'queued' ? 1 : 0
  const sql = 'UPDATE runs SET record = ?, queued = ? WHERE session = ? AND id = ?'
  db.run(sql, JSON.stringify(run), queued, session, run.id)
}
