import type { Delivery, IngestBatch, IngestResult } from './model.ts'

/** What a commit has put at the tails of the queues, by client and as the store would read it. */
export function freshDeliveries(
  { entries, now }: Pick<IngestBatch, 'entries' | 'now'>,
  { queued }: Pick<IngestResult, 'queued'>,
): Map<number, Delivery[]> {
  const fresh = new Map<number, Delivery[]>()
  for (const { entry, clientId, seq, messageId, contextToken, bytes, wireId } of queued) {
    const { spec = '', raw = '' } = entries[entry] ?? {}
    const delivery = { seq, messageId, contextToken, failures: 0, queuedAt: now, bytes, wireId, spec, raw }
    const present = fresh.get(clientId)
    if (present) present.push(delivery)
    else fresh.set(clientId, [delivery])
  }
  return fresh
}
