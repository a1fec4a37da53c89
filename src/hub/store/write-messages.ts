import type { Db } from '../../kit/sqlite/database.ts'
import type { IngestBatch, IngestEntry, IngestResult, MessageState } from '../model.ts'
import { ID_LIFE_MS } from './prune.ts'
import {
  append,
  buryFront,
  deliveryBytes,
  insertDeadLetter,
  loadQueue,
  positionOf,
  type Queue,
  saveQueue,
} from './queue.ts'
import { userKeyOf } from './user-key.ts'
import { conversationUpdates } from './write-conversations.ts'
import { insertNotice } from './write-sends.ts'

/** Keeps an upstream answer: all of it, or by an exception nothing. */
export function ingest(db: Db, batch: IngestBatch): IngestResult {
  const result: IngestResult = { entries: [], positions: [], queued: [], died: [], sends: [] }
  const queues = new Map<number, Queue | undefined>()
  const conversations = conversationUpdates(batch.account, batch.now)

  for (const entry of batch.entries) {
    const userKey = userKeyOf(entry.userId)
    const kept = insertMessage(db, batch, { entry, userKey, previousId: conversations.lastMessageId(userKey) })
    result.entries.push(kept)
    conversations.add(entry, userKey, kept.messageId, kept.state === 'suppressed')
    if (kept.state === 'suppressed') continue
    enqueue(db, batch, { entry, userKey, messageId: kept.messageId }, queues, result)
    if (entry.state === 'unrouted') {
      insertDeadLetter(db, { clientId: null, messageId: kept.messageId, reason: 'no_client', now: batch.now })
    }
    for (const notice of entry.notices) {
      const send = insertNotice(db, { account: batch.account, userId: entry.userId, notice, now: batch.now })
      if (send !== null) result.sends.push(send)
    }
  }
  conversations.write(db)
  for (const queue of queues.values()) {
    if (queue === undefined) continue
    enforceBounds(db, batch, queue, result)
    saveQueue(db, queue)
    result.positions.push(positionOf(queue))
  }
  if (batch.cursor !== null) setCursor(db, batch.account, batch.cursor)
  return result
}

/** An entry with what its row needs beside. */
interface NewMessage {
  entry: IngestEntry
  userKey: string
  /** The user's message before it, where that came in the same batch. */
  previousId: number | null
}

function insertMessage(db: Db, batch: IngestBatch, message: NewMessage): IngestResult['entries'][number] {
  // Nearly every message is new, so the unique indexes are asked by the insert itself.
  const { entry } = message
  const inserted = insertRow(db, batch, message, entry.state, null)
  if (inserted !== null) return { messageId: inserted, state: entry.state, duplicateOf: null }

  const duplicateOf = findYoungDuplicate(db, batch, message)
  const state = duplicateOf === null ? entry.state : 'suppressed'
  const messageId = insertRow(db, batch, message, state, duplicateOf)
  if (messageId === null) throw new Error('A message that is nobody’s duplicate could not be inserted')
  return { messageId, state, duplicateOf }
}

/** The id of the new row; null when the upstream id or the fingerprint is another's. */
function insertRow(
  db: Db,
  batch: IngestBatch,
  { entry, userKey, previousId }: NewMessage,
  state: MessageState,
  duplicateOf: number | null,
): number | null {
  const { changes, id } = db.run(
    `INSERT INTO messages (account, user_key, previous_id,
       upstream_id, fingerprint, user_id, received_at, state, reason, duplicate_of, spec, raw)
     VALUES (?1, ?2, coalesce(?3, (SELECT last_message_id FROM conversations WHERE account = ?1 AND user_key = ?2)),
       ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING`,
    batch.account,
    userKey,
    previousId,
    entry.upstreamId,
    state === 'suppressed' ? null : entry.fingerprint,
    entry.userId,
    batch.now,
    state,
    entry.reason,
    duplicateOf,
    entry.spec,
    entry.raw,
  )
  return changes === 0 ? null : id
}

/** Whose duplicate the entry is. What is past its life but not pruned yet gives up its id and fingerprint instead. */
function findYoungDuplicate(db: Db, { account, now }: IngestBatch, { entry, userKey }: NewMessage): number | null {
  const holders = [
    db.get<Holder>(
      `SELECT id, received_at AS receivedAt FROM messages
       WHERE account = ? AND upstream_id = ? AND upstream_id IS NOT NULL AND state <> 'suppressed'`,
      account,
      entry.upstreamId,
    ),
    db.get<Holder>(
      `SELECT id, received_at AS receivedAt FROM messages
       WHERE fingerprint = ? AND user_key = ? AND account = ?`,
      entry.fingerprint,
      userKey,
      account,
    ),
  ].filter((holder) => holder !== undefined)
  const young = holders.find(({ receivedAt }) => receivedAt > now - ID_LIFE_MS)
  if (young !== undefined) return young.id
  for (const { id } of holders) db.run('UPDATE messages SET upstream_id = NULL, fingerprint = NULL WHERE id = ?', id)
  return null
}

interface Holder {
  id: number
  receivedAt: number
}

function enqueue(
  db: Db,
  { account, now }: IngestBatch,
  { entry, userKey, messageId }: { entry: IngestEntry; userKey: string; messageId: number },
  queues: Map<number, Queue | undefined>,
  result: IngestResult,
): void {
  for (const { clientId, contextToken } of entry.deliveries) {
    if (!queues.has(clientId)) queues.set(clientId, loadQueue(db, clientId))
    const queue = queues.get(clientId)
    if (queue === undefined) {
      insertDeadLetter(db, { clientId, messageId, reason: 'client_removed', now })
      countDead(result, clientId, 'client_removed', 1)
      continue
    }
    const bytes = deliveryBytes(entry.raw)
    const message = { id: messageId, account, upstreamId: entry.upstreamId, userKey, bytes }
    const { seq, wireId } = append(db, queue, message, contextToken, now)
    result.queued.push({ entry: result.entries.length - 1, clientId, seq, messageId, contextToken, wireId, bytes })
  }
}

function enforceBounds(db: Db, { bounds, now }: IngestBatch, queue: Queue, result: IngestResult): void {
  let throughSeq = queue.lastSeq - bounds.maxMessages
  if (queue.lastBytes - queue.settledBytes > bounds.maxBytes) {
    const row = db.get<{ seq: number }>(
      'SELECT seq FROM deliveries WHERE client_id = ? AND seq > ? AND total_bytes >= ? ORDER BY seq LIMIT 1',
      queue.clientId,
      queue.settledSeq,
      queue.lastBytes - bounds.maxBytes,
    )
    throughSeq = Math.max(throughSeq, row?.seq ?? 0)
  }
  if (throughSeq <= queue.settledSeq) return
  const { count, sends } = buryFront(db, queue, throughSeq, { reason: 'overflow', now, notice: bounds.overflowNotice })
  countDead(result, queue.clientId, 'overflow', count)
  result.sends.push(...sends)
}

function countDead(
  { died }: IngestResult,
  clientId: number,
  reason: 'overflow' | 'client_removed',
  count: number,
): void {
  const known = died.find((one) => one.clientId === clientId && one.reason === reason)
  if (known === undefined) died.push({ clientId, reason, count })
  else known.count += count
}

function setCursor(db: Db, account: string, cursor: { source: string; value: string }): void {
  db.run(
    `INSERT INTO accounts (account, cursor_source, cursor) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET cursor = excluded.cursor`,
    account,
    cursor.source,
    cursor.value,
  )
}
