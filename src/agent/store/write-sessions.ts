import type { Db } from '../../kit/sqlite/database.ts'
import type { Message, Session } from '../model.ts'
import type { Receipt, SessionPatch } from './port.ts'
import { countSessions, readTranscript } from './reads.ts'
import { checkRoom, firstMessages, type KeptReceipt, madeUnder, oldestReceipt } from './records.ts'
import { findRow, fromSession, needRow, saveSession, toSession } from './rows.ts'

interface NewSession {
  session: Session
  receipt: Receipt | null
  maxSessions: number
  /** The session whose first `messages` it begins with. */
  from: { id: string; messages: number | null } | null
}

/** Keeps a session, or gives the one that was made under its key. */
export function createSession(db: Db, { session, receipt, maxSessions, from }: NewSession): Session {
  const known = findReceipt(db, receipt)
  const earlier = known === null ? undefined : findRow(db, known)
  if (earlier) return toSession(earlier)
  const copied = from === null ? [] : copiedMessages(db, from)
  checkRoom(countSessions(db), maxSessions)
  const { fixed, state } = fromSession(session)
  const { id } = db.run('INSERT INTO sessions (id, fixed, state) VALUES (?, ?, ?)', session.id, fixed, state)
  insertMessages(db, { number: id, messages: 0 }, copied)
  keepReceipt(db, receipt, session.id)
  return session
}

export function updateSession(db: Db, { id, patch }: { id: string; patch: SessionPatch }): Session | null {
  const row = findRow(db, id)
  if (row === undefined) return null
  const session = { ...toSession(row), ...patch }
  saveSession(db, row, session)
  return session
}

export function removeSession(db: Db, { id }: { id: string }): boolean {
  const row = findRow(db, id)
  if (row === undefined) return false
  for (const table of ['events', 'messages', 'runs']) db.run(`DELETE FROM ${table} WHERE session = ?`, row.number)
  db.run('DELETE FROM sessions WHERE number = ?', row.number)
  return true
}

/** Adds to a transcript that holds `messages` so far. */
export function insertMessages(
  db: Db,
  { number, messages }: { number: number; messages: number },
  more: readonly Message[],
): void {
  if (more.length === 0) return
  for (const [index, message] of more.entries()) {
    const sql = 'INSERT INTO messages (session, number, body) VALUES (?, ?, ?)'
    db.run(sql, number, messages + index, JSON.stringify(message))
  }
  db.run('UPDATE sessions SET messages = ? WHERE number = ?', messages + more.length, number)
}

/** What was made under a key; `key_reused` for another body. */
export function findReceipt(db: Db, receipt: Receipt | null): string | null {
  if (receipt === null) return null
  const sql = 'SELECT body_hash AS bodyHash, made, at FROM receipts WHERE key = ?'
  return madeUnder(receipt, db.get<KeptReceipt>(sql, receipt.key))
}

export function keepReceipt(db: Db, receipt: Receipt | null, made: string): void {
  if (receipt === null) return
  db.run('DELETE FROM receipts WHERE at < ?', oldestReceipt(receipt.now))
  const sql = 'INSERT OR REPLACE INTO receipts (key, body_hash, made, at) VALUES (?, ?, ?, ?)'
  db.run(sql, receipt.key, receipt.bodyHash, made, receipt.now)
}

function copiedMessages(db: Db, { id, messages }: { id: string; messages: number | null }): Message[] {
  needRow(db, id)
  return firstMessages(readTranscript(db, id), messages)
}
