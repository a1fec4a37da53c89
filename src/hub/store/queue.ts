import type { Db } from '../../kit/sqlite/database.ts'
import type { AckKind, DeathReason, Notice, PendingSend, QueuePosition } from '../model.ts'
import { insertNotice } from './write-sends.ts'

/**
 * A client's queue while one operation works on it; `saveQueue` writes it back. What waits are the rows after
 * `settledSeq`, without gaps: rows leave at the front only, and what comes back gets a new `seq` at the tail.
 */
export interface Queue {
  clientId: number
  name: string
  lastSeq: number
  sentSeq: number
  settledSeq: number
  lastBytes: number
  settledBytes: number
  lastWireId: string | null
  /** The newest stretch that counts as received; it grows here and becomes a row of `acks` when another kind begins. */
  ackFrom: number
  ackTo: number
  ackKind: AckKind | ''
  ackAt: number
  echoesCursor: number
  /** `total_bytes` of the last rows that were appended, so that the front moves over them without a read. */
  readonly totals: { seq: number; bytes: number }[]
  /** Users that are known to have a row among the client's participants. */
  readonly users: Set<string>
}

/** What a queue needs to know of a message. */
export interface QueuedMessage {
  id: number
  account: string
  upstreamId: string | null
  userKey: string
  bytes: number
}

/** What the writing connection knows of the queues. */
interface Kept {
  queues: Map<number, Queue>
  /** Those whose rows are to be written before the commit: a group mostly settles a queue and appends to it. */
  changed: Set<Queue>
}

// What a connection has read and written stays true until it rolls something back, or the other one has written.
const kept = new WeakMap<Db, Kept>()

/** The queue as it was saved last; undefined when the client has gone. */
export function loadQueue(db: Db, clientId: number): Queue | undefined {
  const { queues } = keptBy(db)
  const known = queues.get(clientId)
  if (known !== undefined) return known
  const row = db.get<Omit<Queue, 'users' | 'totals'>>(
    `SELECT id AS clientId, name, last_seq AS lastSeq, sent_seq AS sentSeq, settled_seq AS settledSeq,
       last_bytes AS lastBytes, settled_bytes AS settledBytes, last_wire_id AS lastWireId,
       ack_from AS ackFrom, ack_to AS ackTo, ack_kind AS ackKind, ack_at AS ackAt,
       echoes_cursor AS echoesCursor
     FROM clients WHERE id = ?`,
    clientId,
  )
  if (row === undefined) return undefined
  const queue = { ...row, totals: [], users: new Set<string>() }
  queues.set(clientId, queue)
  return queue
}

/** Has every queue read anew, after a rollback; what was saved and not yet written is rolled back too. */
export function forgetQueues(db: Db): void {
  kept.delete(db)
}

/** The client was deleted. */
export function forgetQueue(db: Db, queue: Queue): void {
  const { queues, changed } = keptBy(db)
  queues.delete(queue.clientId)
  changed.delete(queue)
}

function keptBy(db: Db): Kept {
  const known = kept.get(db)
  if (known !== undefined) return known
  const made = { queues: new Map<number, Queue>(), changed: new Set<Queue>() }
  kept.set(db, made)
  return made
}

/** Has the queue written at the end of the transaction. */
export function saveQueue(db: Db, queue: Queue): void {
  keptBy(db).changed.add(queue)
}

/** Writes the queues that were saved since. */
export function writeQueues(db: Db): void {
  const { changed } = keptBy(db)
  for (const queue of changed) writeQueue(db, queue)
  changed.clear()
}

function writeQueue(db: Db, queue: Queue): void {
  db.run(
    `UPDATE clients SET last_seq = ?, sent_seq = ?, settled_seq = ?, last_bytes = ?, settled_bytes = ?, last_wire_id = ?,
       ack_from = ?, ack_to = ?, ack_kind = ?, ack_at = ?, echoes_cursor = ?
     WHERE id = ?`,
    queue.lastSeq,
    queue.sentSeq,
    queue.settledSeq,
    queue.lastBytes,
    queue.settledBytes,
    queue.lastWireId,
    queue.ackFrom,
    queue.ackTo,
    queue.ackKind,
    queue.ackAt,
    queue.echoesCursor,
    queue.clientId,
  )
}

export function positionOf(queue: Queue): QueuePosition {
  const { clientId, lastSeq, sentSeq, settledSeq, lastBytes, settledBytes } = queue
  return { clientId, lastSeq, sentSeq, settledSeq, pendingBytes: lastBytes - settledBytes }
}

/** What a message weighs in a queue: its bytes as they came. */
export function deliveryBytes(raw: string): number {
  return Buffer.byteLength(raw)
}

/** Puts a message that the client never had at the tail, and says as what. */
export function append(
  db: Db,
  queue: Queue,
  message: QueuedMessage,
  contextToken: string,
  now: number,
): { seq: number; wireId: string } {
  const wireId = nextWireId(queue, message.upstreamId, now)
  // One that no service gives would leave no room for those after it.
  if (!isAbove(wireId, LAST_WIRE_ID)) queue.lastWireId = wireId
  insertAtTail(db, queue, { messageId: message.id, contextToken, bytes: message.bytes, wireId }, now)
  addParticipant(db, queue, message)
  return { seq: queue.lastSeq, wireId }
}

/**
 * Puts a message that the client had back at the tail, with the context token and the wire id it had. One that still
 * waits stays where it is. False when the client never had it.
 */
export function requeue(db: Db, queue: Queue, messageId: number, now: number): boolean {
  const old = db.get<{ seq: number; contextToken: string; bytes: number; wireId: string }>(
    `SELECT seq, context_token AS contextToken, bytes, wire_id AS wireId
     FROM deliveries INDEXED BY deliveries_by_message WHERE message_id = ? AND client_id = ?`,
    messageId,
    queue.clientId,
  )
  if (old === undefined) return false
  if (old.seq > queue.settledSeq) return true
  db.run('DELETE FROM deliveries WHERE client_id = ? AND seq = ?', queue.clientId, old.seq)
  insertAtTail(db, queue, { ...old, messageId }, now)
  return true
}

interface Burial {
  reason: DeathReason
  now: number
  notice?: Notice | undefined
}

/** Takes the front of a queue, up to `throughSeq`, to the dead letters and tells the users. Returns how many, and the notices. */
export function buryFront(
  db: Db,
  queue: Queue,
  throughSeq: number,
  burial: Burial,
): { count: number; sends: PendingSend[] } {
  const { reason, now, notice } = burial
  const from = queue.settledSeq
  const through = Math.min(throughSeq, queue.lastSeq)
  if (through <= from) return { count: 0, sends: [] }
  db.run(
    `INSERT INTO dead_letters (client_id, client_name, message_id, reason, created_at)
     SELECT client_id, ?, message_id, ?, ? FROM deliveries WHERE client_id = ? AND seq > ? AND seq <= ? ORDER BY seq`,
    queue.name,
    reason,
    now,
    queue.clientId,
    from,
    through,
  )
  db.run(
    'UPDATE deliveries SET outcome = ? WHERE client_id = ? AND seq > ? AND seq <= ?',
    reason === 'expired' ? 'expired' : 'dead',
    queue.clientId,
    from,
    through,
  )
  settleThrough(db, queue, through)
  return { count: through - from, sends: notice ? tellUsers(db, queue, from, through, notice, now) : [] }
}

/** Moves the front of a queue on; it never goes back, nor past the tail. */
export function settleThrough(db: Db, queue: Queue, seq: number): void {
  const settled = Math.min(seq, queue.lastSeq)
  if (settled <= queue.settledSeq) return
  queue.settledBytes = totalThrough(db, queue, settled) ?? queue.settledBytes
  queue.settledSeq = settled
  queue.sentSeq = Math.max(queue.sentSeq, settled)
}

/** `total_bytes` of the last row up to `seq`. */
function totalThrough(db: Db, { clientId, totals }: Queue, seq: number): number | undefined {
  let known: number | undefined
  while (totals[0] !== undefined && totals[0].seq <= seq) {
    const { seq: at, bytes } = totals[0]
    known = at === seq ? bytes : undefined
    totals.shift()
  }
  if (known !== undefined) return known
  const row = db.get<{ total: number }>(
    'SELECT total_bytes AS total FROM deliveries WHERE client_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1',
    clientId,
    seq,
  )
  return row?.total
}

/** Keeps a message among the dead letters that never stood in a queue. */
export function insertDeadLetter(
  db: Db,
  letter: { clientId: number | null; messageId: number; reason: DeathReason; now: number },
): void {
  db.run(
    'INSERT INTO dead_letters (client_id, client_name, message_id, reason, created_at) VALUES (?, NULL, ?, ?, ?)',
    letter.clientId,
    letter.messageId,
    letter.reason,
    letter.now,
  )
}

function insertAtTail(
  db: Db,
  queue: Queue,
  row: { messageId: number; contextToken: string; bytes: number; wireId: string },
  now: number,
): void {
  queue.lastSeq += 1
  queue.lastBytes += row.bytes
  db.run(
    `INSERT INTO deliveries (client_id, seq, message_id, context_token, queued_at, bytes, total_bytes, wire_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    queue.clientId,
    queue.lastSeq,
    row.messageId,
    row.contextToken,
    now,
    row.bytes,
    queue.lastBytes,
    row.wireId,
  )
  if (queue.totals.length >= MAX_KNOWN_TOTALS) queue.totals.shift()
  queue.totals.push({ seq: queue.lastSeq, bytes: queue.lastBytes })
}

const MAX_KNOWN_TOTALS = 100
const MAX_KNOWN_USERS = 1_000

function addParticipant(db: Db, queue: Queue, { account, userKey }: QueuedMessage): void {
  const user = `${userKey}\n${account}`
  if (queue.users.has(user)) return
  db.run(
    'INSERT INTO participants (client_id, account, user_key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    queue.clientId,
    account,
    userKey,
  )
  if (queue.users.size >= MAX_KNOWN_USERS) queue.users.clear()
  queue.users.add(user)
}

// No leading zero: it is written as a JSON number.
const WIRE_ID = /^(?:0|[1-9]\d{0,19})$/
const LAST_WIRE_ID = String(2n ** 63n - 1n)

/** The service's own id, as long as the client's ids grow by it: some clients drop what is not above the last one. */
function nextWireId({ lastWireId }: Queue, upstreamId: string | null, now: number): string {
  const isOwn = upstreamId !== null && WIRE_ID.test(upstreamId)
  if (isOwn && (lastWireId === null || isAbove(upstreamId, lastWireId))) return upstreamId
  return lastWireId === null ? String(now * 1000) : String(BigInt(lastWireId) + 1n)
}

/** Of two texts of digits without leading zeros. */
function isAbove(id: string, other: string): boolean {
  return id.length === other.length ? id > other : id.length > other.length
}

function tellUsers(db: Db, queue: Queue, from: number, through: number, notice: Notice, now: number): PendingSend[] {
  const users = db.all<{ account: string; userId: string }>(
    `SELECT m.account, m.user_id AS userId FROM deliveries d JOIN messages m ON m.id = d.message_id
     WHERE d.client_id = ? AND d.seq > ? AND d.seq <= ? GROUP BY m.account, m.user_key`,
    queue.clientId,
    from,
    through,
  )
  const named = { ...notice, text: notice.text.replaceAll('{client}', () => queue.name) }
  return users.flatMap(({ account, userId }) => insertNotice(db, { account, userId, notice: named, now }) ?? [])
}
