import type { Db } from '../../kit/sqlite/database.ts'
import type { ContextOwner, Delivery, QueuePosition } from '../model.ts'

/** Where every queue stands. */
export function readPositions(db: Db): QueuePosition[] {
  return db.all<QueuePosition>(
    `SELECT id AS clientId, last_seq AS lastSeq, sent_seq AS sentSeq, settled_seq AS settledSeq,
       last_bytes - settled_bytes AS pendingBytes
     FROM clients ORDER BY id`,
  )
}

/** Past this many bytes a read ends: what one answer does not take need not be read. */
const MAX_READ_BYTES = 1024 * 1024

/** What stands after `afterSeq`, alive and with its text, oldest first; the first one, however large. */
export function readDeliveries(db: Db, clientId: number, afterSeq: number, limit: number, since: number): Delivery[] {
  return db.all<Delivery>(
    `SELECT d.seq, d.message_id AS messageId, d.context_token AS contextToken, d.failures, d.queued_at AS queuedAt,
       d.bytes, d.wire_id AS wireId, m.spec, m.raw
     FROM deliveries d JOIN messages m ON m.id = d.message_id
     WHERE d.client_id = ? AND d.seq > ? AND d.queued_at >= ? AND d.outcome IS NULL AND m.raw IS NOT NULL
       AND d.total_bytes <= ? + (
         SELECT f.total_bytes FROM deliveries f JOIN messages n ON n.id = f.message_id
         WHERE f.client_id = ? AND f.seq > ? AND f.queued_at >= ? AND f.outcome IS NULL AND n.raw IS NOT NULL
         ORDER BY f.seq LIMIT 1)
     ORDER BY d.seq LIMIT ?`,
    clientId,
    afterSeq,
    since,
    MAX_READ_BYTES,
    clientId,
    afterSeq,
    since,
    limit,
  )
}

/** Whom a context token speaks of; null when it is not ours or its client has gone. */
export function resolveContext(db: Db, contextToken: string): ContextOwner | null {
  const row = db.get<ContextOwner>(
    `SELECT d.client_id AS clientId, d.seq, d.message_id AS messageId, m.account, m.user_id AS userId,
       d.queued_at AS createdAt
     FROM deliveries d JOIN messages m ON m.id = d.message_id JOIN clients c ON c.id = d.client_id
     WHERE d.context_token = ?`,
    contextToken,
  )
  return row ?? null
}
