import type { Db } from '../../kit/sqlite/database.ts'

const DAY_MS = 24 * 3_600_000
const TEXT_LIFE_MS = 7 * DAY_MS

/** How long an upstream id is known, so that a repetition is found. */
export const ID_LIFE_MS = 30 * DAY_MS

/** How far a round of pruning has come: messages up to here were looked at. */
export interface PruneProgress {
  wipedAt: number
  wipedId: number
  deletedId: number
}

export interface PruneInput {
  now: number
  /** How many rows of each kind a step looks at, at most. */
  limit: number
  after: PruneProgress
}

/**
 * One step of forgetting what is past its life; `next` is null when the round is over. A message stays whole while it
 * waits in a queue or is a dead letter (30 days at most), so there may be many such at the front: a step is bounded by what it looks at.
 */
export function pruneStep(db: Db, { now, limit, after }: PruneInput): { gone: number; next: PruneProgress | null } {
  const textsBefore = now - TEXT_LIFE_MS
  const idsBefore = now - ID_LIFE_MS
  // What goes as a whole is not wiped first.
  const from = after.wipedAt < idsBefore ? { wipedAt: idsBefore, wipedId: 0 } : after
  const letters = deleteLetters(db, idsBefore, limit)
  const texts = wipeMessages(db, textsBefore, from, limit)
  const ids = deleteMessages(db, idsBefore, after.deletedId, limit)
  const others = [
    letters,
    wipeSends(db, idsBefore, textsBefore, limit),
    deleteSends(db, idsBefore, limit),
    deleteNotices(db, idsBefore, limit),
  ]
  const gone = others.reduce((sum, count) => sum + count, texts.gone + ids.gone)
  if (texts.more || ids.more || others.includes(limit)) {
    return { gone, next: { wipedAt: texts.wipedAt, wipedId: texts.wipedId, deletedId: ids.deletedId } }
  }
  deleteAcks(db)
  return { gone, next: null }
}

interface OldMessage {
  id: number
  receivedAt: number
  inUse: number
}

const OLD_MESSAGE = `
  m.id, m.received_at AS receivedAt,
  EXISTS (SELECT 1 FROM dead_letters l WHERE l.message_id = m.id) OR EXISTS (
    SELECT 1 FROM deliveries d JOIN clients c ON c.id = d.client_id WHERE d.message_id = m.id AND d.seq > c.settled_seq
  ) AS inUse`

function wipeMessages(db: Db, before: number, { wipedAt, wipedId }: Omit<PruneProgress, 'deletedId'>, limit: number) {
  const rows = db.all<OldMessage>(
    `SELECT ${OLD_MESSAGE} FROM messages m
     WHERE m.raw IS NOT NULL AND m.received_at < ? AND (m.received_at, m.id) > (?, ?)
     ORDER BY m.received_at, m.id LIMIT ?`,
    before,
    wipedAt,
    wipedId,
    limit,
  )
  const free = rows.filter(({ inUse }) => inUse === 0)
  for (const { id } of free) db.run('UPDATE messages SET spec = NULL, raw = NULL WHERE id = ?', id)
  const last = rows.at(-1)
  return {
    gone: free.length,
    more: rows.length === limit,
    wipedAt: last?.receivedAt ?? wipedAt,
    wipedId: last?.id ?? wipedId,
  }
}

function deleteMessages(db: Db, before: number, deletedId: number, limit: number) {
  // Ids grow with time, so the first young row ends the walk: this needs no index.
  const rows = db.all<OldMessage>(
    `SELECT ${OLD_MESSAGE} FROM messages m WHERE m.id > ? ORDER BY m.id LIMIT ?`,
    deletedId,
    limit,
  )
  const young = rows.findIndex(({ receivedAt }) => receivedAt >= before)
  const old = young === -1 ? rows : rows.slice(0, young)
  const free = old.filter(({ inUse }) => inUse === 0)
  for (const { id } of free) {
    db.run('DELETE FROM deliveries WHERE message_id = ?', id)
    db.run('DELETE FROM messages WHERE id = ?', id)
  }
  return { gone: free.length, more: old.length === limit, deletedId: old.at(-1)?.id ?? deletedId }
}

function wipeSends(db: Db, from: number, before: number, limit: number): number {
  const rows = db.all<{ id: number }>(
    'SELECT id FROM sends WHERE text IS NOT NULL AND created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?',
    from,
    before,
    limit,
  )
  for (const { id } of rows) {
    db.run('UPDATE sends SET text = NULL, answer = NULL WHERE id = ?', id)
    db.run("UPDATE send_parts SET body = '' WHERE send_id = ?", id)
  }
  return rows.length
}

function deleteSends(db: Db, before: number, limit: number): number {
  const rows = db.all<{ id: number; createdAt: number }>(
    'SELECT id, created_at AS createdAt FROM sends ORDER BY id LIMIT ?',
    limit,
  )
  const old = rows.filter(({ createdAt }) => createdAt < before)
  for (const { id } of old) {
    db.run('DELETE FROM send_parts WHERE send_id = ?', id)
    db.run('DELETE FROM sends WHERE id = ?', id)
  }
  return old.length
}

/** A letter that nobody wanted for so long would keep its message for ever. */
function deleteLetters(db: Db, before: number, limit: number): number {
  // Ids grow with time, so the first young one ends the walk.
  const rows = db.all<{ id: number; createdAt: number }>(
    'SELECT id, created_at AS createdAt FROM dead_letters ORDER BY id LIMIT ?',
    limit,
  )
  const old = rows.filter(({ createdAt }) => createdAt < before)
  for (const { id } of old) db.run('DELETE FROM dead_letters WHERE id = ?', id)
  return old.length
}

function deleteNotices(db: Db, before: number, limit: number): number {
  return db.run(
    `DELETE FROM notices WHERE (account, user_key, kind) IN (
       SELECT account, user_key, kind FROM notices WHERE at < ? ORDER BY at LIMIT ?)`,
    before,
    limit,
  ).changes
}

/** An acknowledgement goes when no delivery of its stretch is left. */
function deleteAcks(db: Db): void {
  for (const { id } of db.all<{ id: number }>('SELECT id FROM clients')) {
    db.run(
      `DELETE FROM acks WHERE client_id = ? AND to_seq <
         coalesce((SELECT min(seq) FROM deliveries WHERE client_id = ?), (SELECT last_seq + 1 FROM clients WHERE id = ?))`,
      id,
      id,
      id,
    )
  }
}
