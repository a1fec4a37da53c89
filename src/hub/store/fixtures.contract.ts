import { randomBytes } from 'node:crypto'
import { test } from 'vitest'
import type { Client, IngestBatch, IngestEntry, IngestResult, NewSend, QueuePosition, Settlement } from '../model.ts'
import type { HubStore } from './port.ts'

/** A store for one test. */
export interface Opened {
  store: HubStore
  /** Closes it and opens what was kept; absent where nothing is. */
  reopen?(): Promise<HubStore>
}

export type OpenStore = () => Promise<Opened>

export const NOW = 1_700_000_000_000
export const MINUTE_MS = 60_000
export const DAY_MS = 24 * 60 * MINUTE_MS
export const ACCOUNT = 'bot'

/** Defines tests that get a fresh store each. */
export function storeTests(open: OpenStore) {
  return (name: string, body: (store: HubStore) => Promise<void>): void => {
    test(name, async () => {
      const { store } = await open()
      try {
        await body(store)
      } finally {
        await store.close()
      }
    })
  }
}

export function register(store: HubStore, name: string, now = NOW): Promise<Client> {
  return store.clients.create({ name, label: name, fallback: false, tokenHash: freshToken(), now })
}

/** A context token, or anything else that must be unlike all others. */
export function freshToken(): string {
  return randomBytes(16).toString('hex')
}

let lastId = 7_400_000_000_000_000_000n

/** A message of `alice` that nobody gets, unlike all others. */
export function entry(overrides: Partial<IngestEntry> = {}): IngestEntry {
  lastId += 1n
  return {
    upstreamId: String(lastId),
    fingerprint: `fingerprint-${lastId}`,
    userId: 'alice',
    upstreamToken: `upstream-token-${lastId}`,
    spec: `{"content":"message ${lastId}"}`,
    raw: `{"seq":${lastId}}`,
    state: 'routed',
    reason: 'chosen',
    deliveries: [],
    notices: [],
    ...overrides,
  }
}

/** The same for these clients. */
export function entryFor(clients: { id: number }[], overrides: Partial<IngestEntry> = {}): IngestEntry {
  return entry({ deliveries: clients.map(({ id }) => ({ clientId: id, contextToken: freshToken() })), ...overrides })
}

export function batch(entries: IngestEntry[], overrides: Partial<IngestBatch> = {}): IngestBatch {
  const overflowNotice = { kind: 'overflow', onceMs: 10 * MINUTE_MS, text: '{client} is behind' }
  const bounds = { maxMessages: 10_000, maxBytes: 64 * 1024 * 1024, overflowNotice }
  return { account: ACCOUNT, cursor: null, now: NOW, entries, bounds, ...overrides }
}

export function ingest(store: HubStore, ...entries: IngestEntry[]): Promise<IngestResult> {
  return store.messages.ingest(batch(entries))
}

/** Queues `count` messages for the client, and returns their entries. */
export async function queueMessages(store: HubStore, client: Client, count: number): Promise<IngestEntry[]> {
  const entries = Array.from({ length: count }, () => entryFor([client]))
  await ingest(store, ...entries)
  return entries
}

/** A change of positions, written at once. */
export async function settleNow(
  store: HubStore,
  client: { id: number },
  change: Partial<Settlement> & { settledSeq: number },
): Promise<void> {
  store.deliveries.settle(settlement(client, change))
  await store.deliveries.flush()
}

export function settlement({ id }: { id: number }, change: Partial<Settlement> & { settledSeq: number }): Settlement {
  return { clientId: id, sentSeq: change.settledSeq, acks: [], failed: [], echoesCursor: false, ...change }
}

export async function positionOf(store: HubStore, client: { id: number }): Promise<QueuePosition | undefined> {
  return (await store.deliveries.positions()).find(({ clientId }) => clientId === client.id)
}

/** Everything in a client's queue, settled or not. */
export function readAll(store: HubStore, client: { id: number }) {
  return store.deliveries.read(client.id, 0, 1_000, 0)
}

/** The states of a client's deliveries, oldest message first. */
export async function statesOf(store: HubStore, client: { id: number }): Promise<string[]> {
  const records = await store.messages.list({ clientId: client.id, limit: 1_000 })
  return records.toReversed().flatMap(({ deliveries }) => deliveries.map(({ state }) => state))
}

export function newSend(overrides: Partial<NewSend> = {}): NewSend {
  return {
    clientId: null,
    account: ACCOUNT,
    userId: 'alice',
    key: null,
    bodyHash: 'hash',
    text: 'hello',
    parts: ['{"part":0}'],
    now: NOW,
    ...overrides,
  }
}
