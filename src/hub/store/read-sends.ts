import type { Db } from '../../kit/sqlite/database.ts'
import type { KnownSend, PendingSend, SendPart, SendRecord } from '../model.ts'
import { userKeyOf } from './user-key.ts'

/** A send with all its parts. */
export function readPendingSend(db: Db, id: number): PendingSend | undefined {
  const send = db.get<Omit<PendingSend, 'parts'>>(
    'SELECT id, client_id AS clientId, account, user_id AS userId, created_at AS createdAt FROM sends WHERE id = ?',
    id,
  )
  if (send === undefined) return undefined
  const parts = db.all<SendPart>(
    'SELECT part, body, state, upstream_id AS upstreamId FROM send_parts WHERE send_id = ? ORDER BY part',
    id,
  )
  return { ...send, parts }
}

/** The newest send of this client under this key and body since `since`. */
export function findSend(db: Db, clientId: number, key: string, bodyHash: string, since: number): KnownSend | null {
  const row = db.get<KnownSend>(
    `SELECT id, state, answer, created_at AS createdAt FROM sends
     WHERE client_id = ? AND key = ? AND body_hash = ? AND created_at >= ? ORDER BY id DESC LIMIT 1`,
    clientId,
    key,
    bodyHash,
    since,
  )
  return row ?? null
}

/** The newest sends, of one user or of all. */
export function listSends(
  db: Db,
  { userId, before, limit }: { userId?: string; before?: number; limit: number },
): SendRecord[] {
  const ofUser = userId === undefined ? '' : ' AND user_key = ?'
  const rows = db.all<Omit<SendRecord, 'parts'>>(
    `SELECT id, client_id AS clientId, account, user_id AS userId, created_at AS createdAt, state FROM sends
     WHERE id < ?${ofUser} ORDER BY id DESC LIMIT ?`,
    before ?? Number.MAX_SAFE_INTEGER,
    ...(userId === undefined ? [] : [userKeyOf(userId)]),
    limit,
  )
  return rows.map((row) => ({
    ...row,
    parts: db.all<SendRecord['parts'][number]>(
      'SELECT state, upstream_id AS upstreamId FROM send_parts WHERE send_id = ? ORDER BY part',
      row.id,
    ),
  }))
}

export interface Quote {
  upstreamId?: string
  text?: string
}

const QUOTE_BY_TEXT_MS = 24 * 3_600_000

/** The client that wrote what is quoted; null when nobody did, the hub itself did, or the client has gone. */
export function findAuthor(db: Db, account: string, userId: string, quote: Quote, now: number): number | null {
  const userKey = userKeyOf(userId)
  const byId = quote.upstreamId === undefined ? undefined : authorById(db, account, userKey, quote.upstreamId)
  if (byId !== undefined) return byId.clientId
  if (quote.text === undefined) return null
  return authorByText(db, account, userKey, quote.text, now - QUOTE_BY_TEXT_MS)
}

function authorById(db: Db, account: string, userKey: string, upstreamId: string) {
  return db.get<{ clientId: number | null }>(
    `SELECT c.id AS clientId FROM send_parts p JOIN sends s ON s.id = p.send_id LEFT JOIN clients c ON c.id = s.client_id
     WHERE p.upstream_id = ? AND s.account = ? AND s.user_key = ? ORDER BY p.send_id DESC LIMIT 1`,
    upstreamId,
    account,
    userKey,
  )
}

function authorByText(db: Db, account: string, userKey: string, text: string, since: number): number | null {
  const row = db.get<{ clientId: number }>(
    `SELECT s.client_id AS clientId FROM sends s JOIN clients c ON c.id = s.client_id
     WHERE s.account = ? AND s.user_key = ? AND s.created_at >= ? AND s.text = ? AND s.state NOT IN ('failed', 'throttled')
     ORDER BY s.created_at DESC LIMIT 1`,
    account,
    userKey,
    since,
    text,
  )
  return row?.clientId ?? null
}
