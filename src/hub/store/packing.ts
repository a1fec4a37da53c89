import type {
  AckKind,
  IngestBatch,
  IngestEntry,
  IngestResult,
  MessageState,
  QueuePosition,
  Settlement,
} from '../model.ts'

/**
 * What crosses to the writer thread for every message, as lists: objects would be copied name by name, at more than what
 * is done with them on either side. Plain ones: what goes there may become JSON, and what is read out of a `Float64Array`
 * is no small integer to the compiler, which then makes its code anew for ever.
 */
export interface PackedBatch extends Omit<IngestBatch, 'entries'> {
  rows: PackedEntry[]
}

type PackedEntry = readonly [
  upstreamId: string | null,
  fingerprint: string | null,
  userId: string,
  upstreamToken: string | null,
  spec: string,
  raw: string,
  state: MessageState,
  reason: string,
  clientIds: readonly number[],
  contextTokens: readonly string[],
  rare: Pick<IngestEntry, 'notices' | 'choose'> | null,
]

/** What a commit did, without what the caller knows already. */
export interface PackedResult {
  messageIds: number[]
  /** The entries whose state is not the one they came with. */
  suppressed: { entry: number; duplicateOf: number | null }[]
  /** Five numbers each. */
  positions: number[]
  /** Four numbers each: entry, which of its deliveries, seq, bytes. */
  queued: number[]
  /** Of those whose id on the wire is not the upstream's. */
  wireIds: { queued: number; wireId: string }[]
  died: IngestResult['died']
  sends: IngestResult['sends']
}

export function packBatch({ entries, ...batch }: IngestBatch): PackedBatch {
  return { ...batch, rows: entries.map(packEntry) }
}

export function unpackBatch({ rows, ...batch }: PackedBatch): IngestBatch {
  return { ...batch, entries: rows.map(unpackEntry) }
}

function packEntry(entry: IngestEntry): PackedEntry {
  const { deliveries, notices, choose } = entry
  return [
    entry.upstreamId,
    entry.fingerprint,
    entry.userId,
    entry.upstreamToken,
    entry.spec,
    entry.raw,
    entry.state,
    entry.reason,
    deliveries.map(({ clientId }) => clientId),
    deliveries.map(({ contextToken }) => contextToken),
    notices.length === 0 && choose === undefined ? null : { notices, ...(choose !== undefined && { choose }) },
  ]
}

function unpackEntry(row: PackedEntry): IngestEntry {
  const [upstreamId, fingerprint, userId, upstreamToken, spec, raw, state, reason, clientIds, contextTokens, rare] = row
  const deliveries = clientIds.map((clientId, index) => ({ clientId, contextToken: contextTokens[index] ?? '' }))
  const entry = { upstreamId, fingerprint, userId, upstreamToken, spec, raw, state, reason, deliveries, notices: [] }
  return rare === null ? entry : { ...entry, ...rare }
}

export function packResult(result: IngestResult, { entries }: IngestBatch): PackedResult {
  const { died, sends } = result
  const queued: number[] = []
  const wireIds: PackedResult['wireIds'] = []
  for (const [index, { entry, clientId, seq, bytes, wireId }] of result.queued.entries()) {
    const { deliveries = [], upstreamId = null } = entries[entry] ?? {}
    const delivery = deliveries.length === 1 ? 0 : deliveries.findIndex((one) => one.clientId === clientId)
    queued.push(entry, delivery, seq, bytes)
    if (wireId !== upstreamId) wireIds.push({ queued: index, wireId })
  }
  const positions: number[] = []
  for (const { clientId, lastSeq, sentSeq, settledSeq, pendingBytes } of result.positions)
    positions.push(clientId, lastSeq, sentSeq, settledSeq, pendingBytes)
  const messageIds = result.entries.map(({ messageId }) => messageId)
  const suppressed = result.entries.flatMap(({ state, duplicateOf }, entry) =>
    state === entries[entry]?.state && duplicateOf === null ? [] : { entry, duplicateOf },
  )
  return { messageIds, suppressed, positions, queued, wireIds, died, sends }
}

export function unpackResult(packed: PackedResult, { entries }: IngestBatch): IngestResult {
  const { messageIds, died, sends } = packed
  const result: IngestResult = { entries: [], positions: unpackPositions(packed.positions), queued: [], died, sends }
  for (const [index, { state }] of entries.entries()) {
    result.entries.push({ messageId: messageIds[index] ?? 0, state, duplicateOf: null })
  }
  for (const { entry, duplicateOf } of packed.suppressed) {
    result.entries[entry] = { messageId: messageIds[entry] ?? 0, state: 'suppressed', duplicateOf }
  }
  const { queued } = packed
  let at = 0
  const next = () => queued[at++] ?? 0
  while (at < queued.length) {
    const [entry, delivery, seq, bytes] = [next(), next(), next(), next()]
    const { deliveries, upstreamId } = entries[entry] ?? { deliveries: [], upstreamId: null }
    const { clientId = 0, contextToken = '' } = deliveries[delivery] ?? {}
    const wireId = upstreamId ?? ''
    result.queued.push({ entry, clientId, seq, messageId: messageIds[entry] ?? 0, contextToken, bytes, wireId })
  }
  for (const { queued, wireId } of packed.wireIds) {
    const one = result.queued[queued]
    if (one !== undefined) one.wireId = wireId
  }
  return result
}

function unpackPositions(packed: readonly number[]): QueuePosition[] {
  const positions: QueuePosition[] = []
  let at = 0
  const next = () => packed[at++] ?? 0
  while (at < packed.length)
    positions.push({
      clientId: next(),
      lastSeq: next(),
      sentSeq: next(),
      settledSeq: next(),
      pendingBytes: next(),
    })
  return positions
}

const ACK_KINDS: readonly AckKind[] = ['cursor', 'used', 'assumed']

/** Settlements as one list of numbers: six each, then four for every stretch received and two for every one lost. */
export function packSettlements(settlements: Iterable<Settlement>): number[] {
  const packed: number[] = []
  for (const { clientId, sentSeq, settledSeq, echoesCursor, acks, failed } of settlements) {
    packed.push(clientId, sentSeq, settledSeq, Number(echoesCursor), acks.length, failed.length)
    for (const { fromSeq, toSeq, kind, at } of acks) packed.push(fromSeq, toSeq, ACK_KINDS.indexOf(kind), at)
    for (const { fromSeq, toSeq } of failed) packed.push(fromSeq, toSeq)
  }
  return packed
}

export function unpackSettlements(packed: readonly number[]): Settlement[] {
  const settlements: Settlement[] = []
  let at = 0
  const next = () => packed[at++] ?? 0
  while (at < packed.length) {
    const [clientId, sentSeq, settledSeq, echoes, ackCount, failedCount] = [
      next(),
      next(),
      next(),
      next(),
      next(),
      next(),
    ]
    const acks = Array.from({ length: ackCount }, () => ({
      fromSeq: next(),
      toSeq: next(),
      kind: ACK_KINDS[next()] ?? 'assumed',
      at: next(),
    }))
    const failed = Array.from({ length: failedCount }, () => ({ fromSeq: next(), toSeq: next() }))
    settlements.push({ clientId, sentSeq, settledSeq, acks, failed, echoesCursor: echoes === 1 })
  }
  return settlements
}
