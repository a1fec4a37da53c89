import type { Db } from '../../kit/sqlite/database.ts'
import type { DeathReason, Notice, Settlement } from '../model.ts'
import type { Burial } from './port.ts'
import { buryFront, loadQueue, positionOf, type Queue, saveQueue, settleThrough } from './queue.ts'
import { clientNotFound } from './write-clients.ts'

/** Moves a queue on. What is settled stays settled; what is sent may go back, when it turned out not to be received. */
export function settleQueue(db: Db, settlement: Settlement): void {
  const queue = loadQueue(db, settlement.clientId)
  if (queue === undefined) return
  for (const ack of settlement.acks) keepAck(db, queue, ack)
  for (const { fromSeq, toSeq } of settlement.failed) countFailure(db, queue.clientId, fromSeq, toSeq)
  queue.sentSeq = Math.min(Math.max(settlement.sentSeq, queue.settledSeq), queue.lastSeq)
  settleThrough(db, queue, settlement.settledSeq)
  if (settlement.echoesCursor) queue.echoesCursor = 1
  saveQueue(db, queue)
}

export interface BuryInput {
  clientId: number
  throughSeq: number
  reason: DeathReason
  now: number
  notice?: Notice | undefined
}

/** Takes the front of a queue to the dead letters. */
export function buryQueue(db: Db, { clientId, throughSeq, reason, now, notice }: BuryInput): Burial {
  const queue = loadQueue(db, clientId)
  if (queue === undefined) throw clientNotFound()
  const { count, sends } = buryFront(db, queue, throughSeq, { reason, now, notice })
  if (count > 0) saveQueue(db, queue)
  return { position: positionOf(queue), count, sends }
}

type Ack = Settlement['acks'][number]

/** Lets the newest stretch grow, which costs no row; whatever else comes, that stretch is written down first. */
function keepAck(db: Db, queue: Queue, ack: Ack): void {
  const { ackFrom: fromSeq, ackTo: toSeq, ackKind: kind, ackAt: at } = queue
  const grows = kind === ack.kind && ack.fromSeq === toSeq + 1
  if (!grows && kind !== '') insertAck(db, queue.clientId, { fromSeq, toSeq, kind, at })
  const isNewest = ack.fromSeq > toSeq
  if (!isNewest) insertAck(db, queue.clientId, ack)
  queue.ackFrom = grows ? fromSeq : isNewest ? ack.fromSeq : toSeq + 1
  queue.ackTo = isNewest ? ack.toSeq : toSeq
  queue.ackKind = isNewest ? ack.kind : ''
  queue.ackAt = ack.at
}

function insertAck(db: Db, clientId: number, { fromSeq, toSeq, kind, at }: Ack): void {
  // A proof beats an assumption, also one that covers several assumptions made before.
  if (kind !== 'assumed') {
    db.run(
      "DELETE FROM acks WHERE client_id = ? AND to_seq >= ? AND to_seq <= ? AND from_seq >= ? AND kind = 'assumed'",
      clientId,
      fromSeq,
      toSeq,
      fromSeq,
    )
  }
  db.run(
    'INSERT INTO acks (client_id, to_seq, from_seq, kind, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    clientId,
    toSeq,
    fromSeq,
    kind,
    at,
  )
}

function countFailure(db: Db, clientId: number, fromSeq: number, toSeq: number): void {
  db.run(
    'UPDATE deliveries SET failures = failures + 1 WHERE client_id = ? AND seq >= ? AND seq <= ? AND outcome IS NULL',
    clientId,
    fromSeq,
    toSeq,
  )
}
