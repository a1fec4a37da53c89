import { AppError } from '../../kit/errors.ts'
import type { Db } from '../../kit/sqlite/database.ts'
import type { NewSend, Notice, PendingSend, SendState } from '../model.ts'
import { noticeBody } from './notice.ts'
import type { SendProgress } from './port.ts'
import { readPendingSend } from './read-sends.ts'
import { userKeyOf } from './user-key.ts'

/** Keeps a client's send; its first part counts as `sending` at once. */
export function beginSend(db: Db, send: NewSend): PendingSend {
  return insertSend(db, send, 'sending')
}

/** Keeps a text of the hub's own as a send that waits, unless the user was told such a thing lately: then null. */
export function insertNotice(
  db: Db,
  { account, userId, notice, now }: { account: string; userId: string; notice: Notice; now: number },
): PendingSend | null {
  if (notice.onceMs > 0 && !isDue(db, account, userKeyOf(userId), notice, now)) return null
  const parts = [noticeBody(notice.text)]
  return insertSend(db, { clientId: null, account, userId, key: null, bodyHash: '', text: '', parts, now }, 'queued')
}

/** Records how parts of a send went, and the send itself. */
export function recordProgress(db: Db, update: SendProgress): void {
  const send = db.get<{ account: string; userKey: string }>(
    'SELECT account, user_key AS userKey FROM sends WHERE id = ?',
    update.sendId,
  )
  if (send === undefined)
    throw new AppError('not_found', `There is no send ${update.sendId}; it was pruned or never begun.`)
  let used = 0
  for (const { part, state, upstreamId } of update.parts) {
    if (setPartState(db, update.sendId, part, state, upstreamId ?? null)) used += 1
  }
  countUse(db, send, used)
  if (update.state === undefined && update.answer === undefined) return
  db.run(
    'UPDATE sends SET state = coalesce(?, state), answer = coalesce(?, answer) WHERE id = ?',
    update.state ?? null,
    update.answer ?? null,
    update.sendId,
  )
}

const NOTICE_LIFE_MS = 10 * 60_000

/** Settles what a crash left open, and returns what still has to go out. */
export function recoverSends(db: Db, { now }: { now: number }): PendingSend[] {
  const open = db.all<{ id: number }>(
    "SELECT DISTINCT send_id AS id FROM send_parts WHERE state IN ('queued', 'sending') ORDER BY send_id",
  )
  return open.flatMap(({ id }) => {
    const send = readPendingSend(db, id)
    return send !== undefined && goesOn(db, send, now) ? (readPendingSend(db, id) ?? []) : []
  })
}

/** Decides about one open send: true when its queued parts are to go out. */
function goesOn(db: Db, send: PendingSend, now: number): boolean {
  const inFlight = send.parts.filter(({ state }) => state === 'sending')
  const queued = send.parts.filter(({ state }) => state === 'queued')
  for (const { part } of inFlight) setPartState(db, send.id, part, 'unknown', null)
  countUse(db, { account: send.account, userKey: userKeyOf(send.userId) }, inFlight.length)

  const begun = send.parts.some(({ state }) => state === 'accepted' || state === 'unconfirmed')
  const untouched = queued.length === send.parts.length
  const fresh = send.clientId === null && untouched && send.createdAt > now - NOTICE_LIFE_MS
  if (queued.length > 0 && (begun || fresh)) return true

  for (const { part } of queued) setPartState(db, send.id, part, 'failed', null)
  // The upstream may have what was in flight, and has nothing of what only waited. An answer that was given stands.
  db.run(
    "UPDATE sends SET state = ? WHERE id = ? AND state IN ('queued', 'sending')",
    untouched ? 'failed' : 'unknown',
    send.id,
  )
  return false
}

function insertSend(db: Db, send: NewSend, first: 'sending' | 'queued'): PendingSend {
  const { clientId, account, userId, now } = send
  const { id } = db.run(
    `INSERT INTO sends (client_id, account, user_id, user_key, key, body_hash, text, state, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    clientId,
    account,
    userId,
    userKeyOf(userId),
    send.key,
    send.bodyHash,
    send.text,
    first,
    now,
  )
  const parts = send.parts.map((body, part) => {
    const state: SendState = part === 0 ? first : 'queued'
    db.run('INSERT INTO send_parts (send_id, part, body, state) VALUES (?, ?, ?, ?)', id, part, body, state)
    return { part, body, state, upstreamId: null }
  })
  return { id, clientId, account, userId, createdAt: now, parts }
}

function isDue(db: Db, account: string, userKey: string, notice: Notice, now: number): boolean {
  // The write itself is the question: it changes a row only when the last notice is old enough.
  const { changes } = db.run(
    `INSERT INTO notices (account, user_key, kind, at) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET at = excluded.at WHERE at <= excluded.at - ?`,
    account,
    userKey,
    notice.kind,
    now,
    notice.onceMs,
  )
  return changes > 0
}

// States in which the upstream has, or may have, taken the part: these use up the user's context token.
const USED: ReadonlySet<SendState> = new Set<SendState>(['accepted', 'unconfirmed', 'unknown'])

/** True when the part used up a send of the conversation by this. */
function setPartState(db: Db, sendId: number, part: number, state: SendState, upstreamId: string | null): boolean {
  const before = db.get<{ state: SendState }>(
    'SELECT state FROM send_parts WHERE send_id = ? AND part = ?',
    sendId,
    part,
  )
  if (before === undefined) throw new AppError('not_found', `Send ${sendId} has no part ${part}.`)
  db.run(
    'UPDATE send_parts SET state = ?, upstream_id = coalesce(?, upstream_id) WHERE send_id = ? AND part = ?',
    state,
    upstreamId,
    sendId,
    part,
  )
  return USED.has(state) && !USED.has(before.state)
}

function countUse(db: Db, { account, userKey }: { account: string; userKey: string }, used: number): void {
  if (used === 0) return
  db.run(
    'UPDATE conversations SET sends_used = sends_used + ? WHERE account = ? AND user_key = ?',
    used,
    account,
    userKey,
  )
}
