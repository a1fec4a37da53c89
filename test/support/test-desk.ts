import { onTestFinished } from 'vitest'
import { type DeliveryDesk, openDelivery, type Poll, type PollAnswer } from '../../src/hub/delivery.ts'
import { freshDeliveries } from '../../src/hub/fresh.ts'
import type { Client, IngestBatch, IngestEntry, IngestResult } from '../../src/hub/model.ts'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import type { HubStore } from '../../src/hub/store/port.ts'
import { memoryDoorbell } from '../../src/kit/doorbell.ts'

/** A poll's connection that a test closes and watches. */
export interface FakeConnection {
  isClosed(): boolean
  onClose(wait: { stop(): void }): void
  abort(): void
  close(): void
  readonly aborted: boolean
}

export function fakeConnection(): FakeConnection {
  const listeners: (() => void)[] = []
  let closed = false
  let aborted = false
  const close = () => {
    closed = true
    for (const listener of listeners) listener()
  }
  return {
    isClosed: () => closed,
    onClose: (wait) => void listeners.push(() => wait.stop()),
    abort() {
      aborted = true
      close()
    },
    close,
    get aborted() {
      return aborted
    },
  }
}

/** A delivery desk on a memory store with one client. */
export interface TestDesk {
  store: HubStore
  client: Client
  desk: DeliveryDesk
  buried: { count: number; reason: string }[]
  clock: { nowMs: number }
  /** Stores messages of one user with these texts, as one commit, and tells the desk. */
  put(...texts: string[]): Promise<void>
  /** The same, and the desk is told what they are. */
  putFresh(...texts: string[]): Promise<void>
  /** The same as `put`, but the desk is not told. */
  commit(...texts: string[]): Promise<IngestResult>
  /** Polls; an answer with messages counts as written unless `unwritten`. */
  poll(
    cursor?: string,
    options?: { connection?: FakeConnection; unwritten?: boolean; tokenHash?: string },
  ): Promise<PollAnswer>
  /** The texts of an answer. */
  texts(answer: PollAnswer): string[]
  /** The same client on a desk opened anew, as after a restart. */
  reopen(): Promise<TestDesk>
}

const BOUNDS = {
  maxMessages: 10_000,
  maxBytes: 64 * 1024 * 1024,
  overflowNotice: { kind: 'overflow', onceMs: 600_000, text: 'full' },
}

export async function testDesk(
  options: { holdMs?: number; store?: HubStore; clock?: { nowMs: number }; maxParked?: number; lazyMs?: number } = {},
): Promise<TestDesk> {
  const clock = options.clock ?? { nowMs: Date.now() }
  const now = () => clock.nowMs
  const store = options.store ?? (await openMemoryStore(options))
  if (options.store === undefined) onTestFinished(() => store.close())
  const known = (await store.clients.load()).clients[0]
  const client =
    known ?? (await store.clients.create({ name: 'bot', label: 'bot', fallback: false, tokenHash: 'hash', now: now() }))
  const buried: TestDesk['buried'] = []
  const desk = await openDelivery({
    store: store.deliveries,
    doorbell: memoryDoorbell(),
    hubId: store.hubId,
    holdMs: options.holdMs ?? 50,
    maxParked: options.maxParked ?? 100,
    now,
    onBuried: (_clientId, count, reason) => void buried.push({ count, reason }),
  })
  return {
    store,
    client,
    desk,
    buried,
    clock,
    async put(...texts) {
      desk.advance((await commit(...texts)).positions)
    },
    async putFresh(...texts) {
      const batch = batchOf(texts)
      const result = await store.messages.ingest(batch)
      desk.advance(result.positions, freshDeliveries(batch, result))
    },
    commit,
    async poll(cursor, { connection = fakeConnection(), unwritten = false, tokenHash = 'hash' } = {}) {
      const answer = await pollOnce(desk, { client, tokenHash, cursor, connection })
      if (answer.type === 'messages' && !unwritten) answer.batch.written()
      return answer
    },
    texts: (answer) =>
      answer.type === 'messages' ? answer.batch.messages.map(({ spec }) => JSON.parse(spec).content) : [],
    async reopen() {
      await store.deliveries.flush()
      return testDesk({ ...options, store, clock })
    },
  }

  function commit(...texts: string[]): Promise<IngestResult> {
    return store.messages.ingest(batchOf(texts))
  }

  function batchOf(texts: string[]): IngestBatch {
    const entries = texts.map((text) => entryFor(text, client.id))
    return { account: 'main', cursor: null, now: now(), entries, bounds: BOUNDS }
  }
}

/** The answer to a poll. */
export function pollOnce(desk: DeliveryDesk, poll: Omit<Poll, 'onAnswer' | 'onFailure'>): Promise<PollAnswer> {
  return new Promise((onAnswer, onFailure) => desk.poll({ ...poll, onAnswer, onFailure }))
}

let made = 0

function entryFor(text: string, clientId: number): IngestEntry {
  made += 1
  return {
    upstreamId: String(7_000_000 + made),
    fingerprint: null,
    userId: 'ann@im.wechat',
    upstreamToken: 'up',
    spec: JSON.stringify({ from_user: 'ann@im.wechat', content: text, msg_type: 'text', timestamp: 1 }),
    raw: '{"from_user_id":"ann@im.wechat"}',
    state: 'routed',
    reason: 'chosen',
    deliveries: [{ clientId, contextToken: `ctx_${made}_${process.pid}` }],
    notices: [],
  }
}
