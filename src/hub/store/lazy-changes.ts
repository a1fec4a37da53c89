import type { Settlement } from '../model.ts'
import type { Call } from './operations.ts'
import { packSettlements, unpackSettlements } from './packing.ts'
import type { Seen } from './write-clients.ts'

/** Changes that may wait a moment, merged per client until they are taken. */
export interface LazyChanges {
  /** Whether the client has a settlement among them. */
  holds(clientId: number): boolean
  /** Whether the client had one among those that were taken last. */
  took(clientId: number): boolean
  settle(settlement: Settlement): void
  touch(seen: Seen): void
  /** All of them as operations; none are left. */
  take(): Call[]
  /** What was taken and could not be written goes under what has come since. */
  putBack(calls: Call[]): void
}

export function lazyChanges(): LazyChanges {
  let settlements = new Map<number, Settlement>()
  let taken: ReadonlyMap<number, Settlement> = settlements
  let seen = new Map<number, Seen>()

  const changes: LazyChanges = {
    holds: (clientId) => settlements.has(clientId),
    took: (clientId) => taken.has(clientId),
    settle(settlement) {
      const known = settlements.get(settlement.clientId)
      settlements.set(settlement.clientId, known === undefined ? copy(settlement) : merge(known, settlement))
    },
    touch({ id, lastSeen, stopped }) {
      seen.set(id, { id, lastSeen: Math.max(lastSeen, seen.get(id)?.lastSeen ?? 0), stopped })
    },
    take() {
      const calls: Call[] = []
      if (settlements.size > 0) calls.push({ name: 'settleQueues', input: packSettlements(settlements.values()) })
      if (seen.size > 0) calls.push({ name: 'touchClients', input: [...seen.values()] })
      taken = settlements
      settlements = new Map()
      seen = new Map()
      return calls
    },
    putBack(calls) {
      const newer = changes.take()
      for (const { name, input } of [...calls, ...newer]) {
        if (name === 'settleQueues') unpackSettlements(input).forEach(changes.settle)
        else if (name === 'touchClients') input.forEach(changes.touch)
      }
    },
  }
  return changes
}

function copy(settlement: Settlement): Settlement {
  return { ...settlement, acks: joinStretches(settlement.acks), failed: [...settlement.failed] }
}

/** `older` is our own copy and is changed in place: a busy client settles often between two writes. */
function merge(older: Settlement, newer: Settlement): Settlement {
  older.sentSeq = newer.sentSeq
  older.settledSeq = Math.max(older.settledSeq, newer.settledSeq)
  older.echoesCursor ||= newer.echoesCursor
  older.failed.push(...newer.failed)
  const last = older.acks.pop()
  older.acks.push(...joinStretches(last === undefined ? newer.acks : [last, ...newer.acks]))
  return older
}

type Ack = Settlement['acks'][number]

/** Neighbouring stretches of one kind become one, so that a client which takes one message at a time costs no row each. */
function joinStretches(acks: Ack[]): Ack[] {
  const joined: Ack[] = []
  for (const ack of acks) {
    const last = joined.at(-1)
    if (last !== undefined && last.kind === ack.kind && last.toSeq + 1 === ack.fromSeq) {
      last.toSeq = ack.toSeq
      last.at = ack.at
    } else joined.push({ ...ack })
  }
  return joined
}
