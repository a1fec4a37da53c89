import { expect } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { startTestHub, until } from '../../test/support/test-hub.ts'
import { verifies } from '../../test/support/verifies.ts'
import { AppError } from '../kit/errors.ts'
import type { IngestBatch } from './model.ts'
import { openMemoryStore } from './store/memory.ts'
import type { HubStore } from './store/port.ts'
import type { Upstream, UpstreamBatch } from './upstream/port.ts'

/** A memory store whose commits pass through `before`. */
async function storeWith(before: (batch: IngestBatch) => Promise<void>): Promise<HubStore> {
  const store = await openMemoryStore()
  return {
    ...store,
    messages: { ...store.messages, ingest: (batch) => before(batch).then(() => store.messages.ingest(batch)) },
  }
}

/** A service that gives the batches in turn, then holds. */
function scripted(batches: UpstreamBatch[]): Upstream & { polls: string[] } {
  const polls: string[] = []
  return {
    polls,
    poll(cursor, signal) {
      polls.push(cursor)
      const batch = batches[polls.length - 1]
      if (batch) return Promise.resolve(batch)
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('over')), { once: true }),
      )
    },
    notify: async () => {},
    send: async () => ({ upstreamId: '1' }),
    typing: async () => {},
    typingTicket: async () => 'ticket',
    uploadUrl: async () => '{}',
  }
}

function message(text: string): string {
  return JSON.stringify({
    message_id: 1,
    from_user_id: 'ann',
    item_list: [{ type: 1, text_item: { text } }],
    context_token: 'c',
  })
}

verifies(['delivery:commit:before-poll', 'delivery:commit:before-wake'], async () => {
  const commit = gate()
  const store = await storeWith(() => commit.pass())
  await store.clients.create({ name: 'bot', label: 'bot', fallback: false, tokenHash: '0'.repeat(64), now: 1 })
  const upstream = scripted([{ messages: [message('hello')], cursor: 'next' }])
  const hub = await startTestHub({ store, upstream, holdMs: 200 })
  await commit.reached
  const token = await hub.register('second')
  expect((await hub.poll(token)).body.messages).toEqual([])
  expect(upstream.polls).toEqual([''])
  expect(hub.hub.delivery.position(1).lastSeq).toBe(0)
  commit.open()
  await until(() => upstream.polls.length === 2)
  expect(upstream.polls).toEqual(['', 'next'])
  expect(hub.hub.delivery.position(1).lastSeq).toBe(1)
})

verifies(
  ['delivery:commit:retried', 'health:report:ok'],
  'a commit that fails is tried again, and nobody polls meanwhile',
  async () => {
    let failures = 3
    const pollsAtFailure: number[] = []
    const upstream = scripted([{ messages: [message('hello')], cursor: 'next' }])
    const store = await storeWith(async () => {
      if (failures === 0) return
      failures -= 1
      pollsAtFailure.push(upstream.polls.length)
      throw new AppError('store_failed', 'disk full')
    })
    const hub = await startTestHub({ store, upstream })
    await until(() => upstream.polls.length === 2)
    expect(pollsAtFailure).toEqual([1, 1, 1])
    expect(upstream.polls).toEqual(['', 'next'])
    expect(await store.messages.cursor('main', 'sim')).toBe('next')
    expect(await store.messages.list({ limit: 10 })).toHaveLength(1)
    expect((await hub.call('GET', '/health')).body.status).toBe('ok')
  },
)

verifies(
  'delivery:commit:atomic',
  'a batch with one impossible row leaves neither messages nor cursor behind',
  async () => {
    const store = await openMemoryStore()
    const entry = {
      upstreamId: '1',
      fingerprint: null,
      userId: 'ann',
      upstreamToken: null,
      spec: '{}',
      raw: '{}',
      state: 'routed' as const,
      reason: 'x',
      notices: [],
    }
    const client = await store.clients.create({ name: 'bot', label: '', fallback: false, tokenHash: 'h', now: 1 })
    const twice = [
      { ...entry, deliveries: [{ clientId: client.id, contextToken: 'same' }] },
      { ...entry, upstreamId: '2', deliveries: [{ clientId: client.id, contextToken: 'same' }] },
    ]
    const bounds = { maxMessages: 10, maxBytes: 1000, overflowNotice: { kind: 'x', onceMs: 0, text: '' } }
    const batch: IngestBatch = {
      account: 'main',
      cursor: { source: 's', value: 'next' },
      now: 1,
      entries: twice,
      bounds,
    }
    await expect(store.messages.ingest(batch)).rejects.toMatchObject({ code: 'store_failed' })
    expect(await store.messages.list({ limit: 10 })).toEqual([])
    expect(await store.messages.cursor('main', 's')).toBe('')
    expect((await store.deliveries.positions())[0]).toMatchObject({ lastSeq: 0, pendingBytes: 0 })
    await store.close()
  },
)
