import { AppError } from '../../kit/errors.ts'
import type { Db } from '../../kit/sqlite/database.ts'
import { MAX_QUEUE_MESSAGES, type QueuePosition } from '../model.ts'
import { append, deliveryBytes, loadQueue, positionOf, type Queue, requeue, saveQueue } from './queue.ts'

/** Puts a message into the client's queue again. Null when the client never had it, or its text is gone. */
export function replayMessage(
  db: Db,
  { messageId, clientId, now }: { messageId: number; clientId: number; now: number },
): QueuePosition | null {
  const queue = loadQueue(db, clientId)
  if (queue === undefined || readTexts(db, messageId) === undefined) return null
  checkRoom(queue)
  if (!requeue(db, queue, messageId, now)) return null
  saveQueue(db, queue)
  db.run('DELETE FROM dead_letters WHERE message_id = ? AND client_id = ?', messageId, clientId)
  return positionOf(queue)
}

export interface LetterReplay {
  id: number
  clientId: number | null
  now: number
  contextToken: string
}

/** Puts a dead letter into its client's queue, or into another's. Null when there is no such letter. */
export function replayLetter(db: Db, { id, clientId, now, contextToken }: LetterReplay): QueuePosition | null {
  const letter = db.get<{ clientId: number | null; messageId: number }>(
    'SELECT client_id AS clientId, message_id AS messageId FROM dead_letters WHERE id = ?',
    id,
  )
  if (letter === undefined) return null
  const target = clientId ?? letter.clientId
  const queue = target === null ? undefined : loadQueue(db, target)
  if (queue === undefined) {
    throw new AppError('client_gone', 'This dead letter has no client to go back to; name a registered client.')
  }
  checkRoom(queue)
  if (!requeue(db, queue, letter.messageId, now)) {
    const message = readTexts(db, letter.messageId)
    if (message === undefined) throw new AppError('not_found', 'The text of this dead letter is gone; discard it.')
    append(db, queue, { ...message, bytes: deliveryBytes(message.raw) }, contextToken, now)
  }
  saveQueue(db, queue)
  discardLetter(db, { id })
  return positionOf(queue)
}

/** A replay must not push out what waits. */
function checkRoom({ name, lastSeq, settledSeq }: Queue): void {
  if (lastSeq - settledSeq < MAX_QUEUE_MESSAGES) return
  throw new AppError('queue_full', `The queue of ${name} is full; replay again when it has taken some.`)
}

/** True when there was one. */
export function discardLetter(db: Db, { id }: { id: number }): boolean {
  return db.run('DELETE FROM dead_letters WHERE id = ?', id).changes > 0
}

interface Texts {
  id: number
  account: string
  upstreamId: string | null
  userKey: string
  raw: string
}

function readTexts(db: Db, messageId: number): Texts | undefined {
  return db.get<Texts>(
    `SELECT id, account, upstream_id AS upstreamId, user_key AS userKey, raw
     FROM messages WHERE id = ? AND raw IS NOT NULL`,
    messageId,
  )
}
