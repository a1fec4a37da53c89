import type { Db, Value } from '../../kit/sqlite/database.ts'
import type { DeadLetter, MessageRecord } from '../model.ts'
import type { DeadLetterStore, MessageFilter } from './port.ts'
import { userKeyOf } from './user-key.ts'

/** Messages with what became of them in each queue, newest first. */
export function listMessages(db: Db, filter: MessageFilter): MessageRecord[] {
  const { source, order, where, values } = plan(filter)
  const rows = db.all<Omit<MessageRecord, 'deliveries'>>(
    `${filter.userId === undefined ? '' : OF_USER}
     SELECT m.id, m.account, m.upstream_id AS upstreamId, m.user_id AS userId, m.received_at AS receivedAt, m.state,
       m.reason, m.duplicate_of AS duplicateOf, coalesce(m.spec, '') AS spec
     FROM ${source} WHERE ${where.join(' AND ')} ${order} LIMIT ?`,
    ...values,
    filter.limit,
  )
  return rows.map((row) => ({ ...row, deliveries: deliveriesOf(db, row.id) }))
}

/** Where the upstream poll goes on; empty when nothing is known. */
export function readCursor(db: Db, account: string, source: string): string {
  const sql = 'SELECT cursor FROM accounts WHERE account = ? AND cursor_source = ?'
  return db.get<{ cursor: string }>(sql, account, source)?.cursor ?? ''
}

/** Dead letters, newest first. */
export function listDeadLetters(db: Db, filter: Parameters<DeadLetterStore['list']>[0]): DeadLetter[] {
  const where = ['l.id < ?']
  const values: Value[] = [filter.before ?? Number.MAX_SAFE_INTEGER]
  if (filter.clientId !== undefined) {
    where.push('l.client_id = ?')
    values.push(filter.clientId)
  }
  if (filter.reason !== undefined) {
    where.push('l.reason = ?')
    values.push(filter.reason)
  }
  return db.all<DeadLetter>(
    `SELECT l.id, l.client_id AS clientId, l.client_name AS clientName, l.message_id AS messageId, l.reason,
       m.user_id AS userId, coalesce(m.spec, '') AS spec, l.created_at AS createdAt
     FROM dead_letters l JOIN messages m ON m.id = l.message_id
     WHERE ${where.join(' AND ')} ORDER BY l.id DESC LIMIT ?`,
    ...values,
    filter.limit,
  )
}

export function countDeadLetters(db: Db): number {
  return db.get<{ count: number }>('SELECT count(*) AS count FROM dead_letters')?.count ?? 0
}

/** A user's messages in every account, newest first, along `previous_id`. There are few accounts. */
const OF_USER = `
  WITH RECURSIVE heard_in (account) AS (
    SELECT min(account) FROM conversations
    UNION ALL
    SELECT (SELECT min(c.account) FROM conversations c WHERE c.account > h.account) FROM heard_in h
    WHERE h.account IS NOT NULL
  ),
  of_user (id, previous_id) AS (
    SELECT m.id, m.previous_id FROM heard_in h
      CROSS JOIN conversations c ON c.account = h.account AND c.user_key = ?
      CROSS JOIN messages m ON m.id = c.last_message_id
    UNION ALL
    SELECT m.id, m.previous_id FROM of_user u CROSS JOIN messages m ON m.id = u.previous_id
    ORDER BY 1 DESC
  )`

/** Which rows, and from where. The rows of `messages` are long, so those of a client are found in the narrow index. */
function plan({ clientId, account, userId, state, before = Number.MAX_SAFE_INTEGER }: MessageFilter) {
  const where = ['m.id < ?']
  const values: Value[] = userId === undefined ? [before] : [userKeyOf(userId), before]
  const ofClient = clientId !== undefined
  if (ofClient) {
    where.push('x.client_id = ?')
    values.push(clientId)
  }
  if (account !== undefined) {
    where.push('m.account = ?')
    values.push(account)
  }
  if (state !== undefined) {
    where.push(state === 'routed' ? 'm.state = ?' : "m.state <> 'routed' AND m.state = ?")
    values.push(state)
  }
  // The order that `of_user` gives is the one that is wanted; asking for it again would have all of it read first.
  if (userId !== undefined) {
    const inQueue = ofClient ? 'CROSS JOIN deliveries x INDEXED BY deliveries_by_message ON x.message_id = m.id' : ''
    return { source: `of_user u CROSS JOIN messages m ON m.id = u.id ${inQueue}`, order: '', where, values }
  }
  if (!ofClient) return { source: 'messages m', order: 'ORDER BY m.id DESC', where, values }
  const source = 'deliveries x INDEXED BY deliveries_by_message CROSS JOIN messages m ON m.id = x.message_id'
  return { source, order: 'ORDER BY x.message_id DESC', where: ['x.message_id < ?', ...where.slice(1)], values }
}

function deliveriesOf(db: Db, messageId: number): MessageRecord['deliveries'] {
  return db.all<MessageRecord['deliveries'][number]>(
    `SELECT d.client_id AS clientId, c.name AS clientName, d.seq, d.failures,
       CASE WHEN d.outcome IS NOT NULL THEN d.outcome
         WHEN d.seq > c.sent_seq THEN 'queued'
         WHEN d.seq > c.settled_seq THEN 'sent'
         WHEN d.seq BETWEEN c.ack_from AND c.ack_to AND c.ack_kind <> ''
           THEN iif(c.ack_kind = 'assumed', 'acked_assumed', 'acked')
         WHEN (SELECT a.kind FROM acks a WHERE a.client_id = d.client_id AND a.to_seq >= d.seq AND a.from_seq <= d.seq
               ORDER BY a.to_seq LIMIT 1) = 'assumed' THEN 'acked_assumed'
         ELSE 'acked' END AS state
     FROM deliveries d JOIN clients c ON c.id = d.client_id
     WHERE d.message_id = ? ORDER BY d.client_id`,
    messageId,
  )
}
