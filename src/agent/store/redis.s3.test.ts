import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startFlakyProxy } from '../../../test/support/flaky-proxy.ts'
import { freshBucket } from '../../../test/support/servers/fresh-bucket.ts'
import { startRedis } from '../../../test/support/servers/redis.ts'
import { soon } from '../../../test/support/soon.ts'
import { silentLog } from '../../kit/log.ts'
import { connectRedis, type Redis } from '../../kit/redis/connect-redis.ts'
import { type Bucket, openBucket } from '../../kit/s3/bucket.ts'
import { newRun, newSession, user } from '../core-fixture.contract.ts'
import { claimed, ended, entry, given, partial, REFUSE, seqs } from './fixtures.contract.ts'
import type { AgentStore } from './port.ts'
import { redisStore } from './redis.ts'
import { redisArchive } from './redis-archive.ts'
import { redisKeys } from './redis-keys.ts'
import { agentStoreContract } from './store.contract.ts'

const LIMITS = { maxSessions: 100, maxLogEvents: 40, maxLogBytes: 100_000 }
const NEVER_MS = 1_000_000_000

let server: Awaited<ReturnType<typeof startRedis>>
let redis: Redis
let address: Awaited<ReturnType<typeof freshBucket>>
let bucket: Bucket
let names = 0

beforeAll(async () => {
  server = await startRedis(['--appendfsync', 'no'])
  redis = await connectRedis({ url: server.url, log: silentLog })
  address = await freshBucket()
  bucket = await openBucket(address)
}, 60_000)
afterAll(async () => {
  bucket.close()
  await redis.close()
  await server.remove()
})

function freshName(): string {
  names += 1
  return `test${names}:`
}

/** A store, and what moves a session into objects at once. Names of sessions are used again, so each has a prefix. */
function opened(limits = LIMITS, { afterMs = NEVER_MS, to = bucket, prefix = freshName() } = {}) {
  const own: Bucket = {
    create: (name, body) => to.create(`${prefix}${name}`, body),
    get: (name) => to.get(`${prefix}${name}`),
    put: (name, body) => to.put(`${prefix}${name}`, body),
    list: async (start) => (await to.list(`${prefix}${start}`)).map((name) => name.slice(prefix.length)),
    remove: (names) => to.remove(names.map((name) => `${prefix}${name}`)),
    get isUp() {
      return to.isUp
    },
    close: () => {},
  }
  const archive = { bucket: own, afterMs, log: silentLog }
  const store = redisStore({ redis, prefix, leaseMs: 60_000, ...limits, archive })
  onTestFinished(() => store.close())
  return { store, prefix, move: redisArchive({ redis, keys: redisKeys(prefix) }, own).move }
}

async function objects(prefix: string): Promise<string[]> {
  const client = new S3Client({ ...address, forcePathStyle: true })
  try {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: address.bucket, Prefix: prefix }))
    return Contents.map(({ Key = '' }) => Key.slice(prefix.length))
  } finally {
    client.destroy()
  }
}

// Every step is moved into objects as soon as it is made: whatever is read is read from there.
agentStoreContract(
  'Redis and S3',
  async (limits) => {
    const { store, move } = opened(limits)
    const log = {
      ...store.log,
      async append(...[claim, step]: Parameters<typeof store.log.append>) {
        const newest = await store.log.append(claim, step)
        await move(claim.key)
        return newest
      },
    }
    return { store: { ...store, log } }
  },
  { keepsAll: true },
)

describe('a session in Redis and S3', () => {
  const some = (count: number) => Array.from({ length: count }, (_, index) => partial(`${index}`))

  async function readAll(store: AgentStore, batch: number): Promise<number[]> {
    const all: number[] = []
    for (;;) {
      const events = await store.log.read('s1', all.at(-1) ?? 0, batch)
      if (events.length === 0) return all
      all.push(...seqs(events))
    }
  }

  test('is read through both without a seam, in batches of any size', async () => {
    const { store, move, prefix } = opened()
    await store.sessions.create(newSession('s1'), null)
    const claim = given((await store.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    for (let part = 0; part < 4; part++) {
      await store.log.append(claim, entry({ events: some(7), messages: [user(`m${part}`)] }))
      if (part < 3) await move('s1')
    }
    expect(await redis.send('XLEN', `${prefix}{s1}:events`)).toBe(7)
    expect(await redis.send('LLEN', `${prefix}{s1}:transcript`)).toBe(1)
    for (const batch of [1, 3, 7, 100])
      expect(await readAll(store, batch)).toEqual(Array.from({ length: 28 }, (_, n) => n + 1))
    expect(await store.log.transcript('s1')).toEqual([0, 1, 2, 3].map((part) => user(`m${part}`)))
    expect(await objects(prefix)).toEqual([
      'agent/s1/events/000000000001-000000000007.1.ndjson',
      'agent/s1/events/000000000008-000000000014.1.ndjson',
      'agent/s1/events/000000000015-000000000021.1.ndjson',
      'agent/s1/transcript/000000000001-000000000001.1.ndjson',
      'agent/s1/transcript/000000000002-000000000002.1.ndjson',
      'agent/s1/transcript/000000000003-000000000003.1.ndjson',
    ])
    await store.sessions.fork('s1', newSession('s2'), { messages: 2, receipt: null })
    expect(await store.log.transcript('s2')).toEqual([user('m0'), user('m1')])
  })

  test('is moved by several at once, while it grows, and nothing is lost or doubled', async () => {
    const { store, move } = opened()
    await store.sessions.create(newSession('s1'), null)
    const claim = await claimed(store)
    const grow = async () => {
      for (let step = 0; step < 20; step++)
        await store.log.append(claim, entry({ events: some(2), messages: [user(`m${step}`)] }))
    }
    const moves = async () => {
      for (let time = 0; time < 4; time++) await move('s1')
    }
    await Promise.all([grow(), moves(), moves()])
    await Promise.all([move('s1'), move('s1')])
    expect(await readAll(store, 9)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
    const expected = Array.from({ length: 20 }, (_, step) => user(`m${step}`))
    expect(await store.log.transcript('s1')).toEqual(expected)
  })

  test('whose newest events outgrow Redis before they are moved has no hole: it begins after it', async () => {
    const { store, move } = opened({ ...LIMITS, maxLogEvents: 10 })
    await store.sessions.create(newSession('s1'), null)
    const claim = await claimed(store)
    await store.log.append(claim, entry({ events: some(5) }))
    await move('s1')
    await store.log.append(claim, entry({ events: some(12) }))
    expect(await store.log.bounds('s1')).toEqual({ oldest: 8, newest: 17 })
    expect(seqs(await store.log.read('s1', 0, 3))).toEqual([8, 9, 10])
    await move('s1')
    expect(seqs(await store.log.read('s1', 0, 3))).toEqual([8, 9, 10])
  })

  test('is moved some time after its last run, and its objects go with it', async () => {
    const { store, prefix } = opened(LIMITS, { afterMs: 0 })
    await store.sessions.create(newSession('s1'), null)
    const claim = given((await store.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    await store.log.append(claim, entry({ events: some(3), messages: [user('m')] }))
    await store.log.append(claim, ended('r1'))
    await store.leases.release(claim)
    await soon(async () => expect(await redis.send('XLEN', `${prefix}{s1}:events`)).toBe(0))
    await soon(async () => expect(await redis.send('ZCARD', `${prefix}{index}:warm`)).toBe(0))
    expect(await readAll(store, 10)).toEqual([1, 2, 3, 4])
    const again = given((await store.runs.admit(newRun('r2', 's1'), REFUSE)).claim)
    await store.log.append(again, ended('r2'))
    expect(await readAll(store, 10)).toEqual([1, 2, 3, 4, 5])
    expect(await store.sessions.remove('s1')).toBe(true)
    await soon(async () => expect(await objects(prefix)).toEqual([]))
    await soon(async () => expect(await redis.send('SCARD', `${prefix}{index}:garbage`)).toBe(0))
  })

  test('works on while the objects cannot be reached; what is there can be read again as soon as they can', async () => {
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint).port))
    const shaky = await openBucket({ ...address, endpoint: proxy.url })
    onTestFinished(() => shaky.close())
    const { store, move, prefix } = opened(LIMITS, { to: shaky })
    await store.sessions.create(newSession('s1'), null)
    const [before, own] = [
      { ...user('m'), runId: 'r0' },
      { ...user('n'), runId: 'r1' },
    ]
    const first = given((await store.runs.admit(newRun('r0', 's1'), REFUSE)).claim)
    await store.log.append(first, { ...entry({ events: some(2), messages: [before] }), runId: 'r0' })
    await store.log.append(first, ended('r0'))
    const claim = given((await store.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    await move('s1')
    proxy.plan(() => ({ type: 'refuse' }))
    proxy.cutAll()
    const failed = { code: 'store_failed' }
    await store.log.append(claim, entry({ events: some(2), messages: [own] }))
    await expect(store.log.read('s1', 0, 10)).rejects.toMatchObject(failed)
    expect(seqs(await store.log.read('s1', 3, 10))).toEqual([4, 5])
    await expect(store.log.transcript('s1')).rejects.toMatchObject(failed)
    await expect(move('s1')).rejects.toMatchObject(failed)
    // What is needed to end the run is at hand.
    expect(await store.log.transcript('s1', 'r1')).toEqual([own])
    await store.log.append(claim, ended('r1'))
    expect(await redis.send('XLEN', `${prefix}{s1}:events`)).toBe(3)
    proxy.plan([])
    expect(await readAll(store, 10)).toEqual([1, 2, 3, 4, 5, 6])
    await move('s1')
    expect(await readAll(store, 10)).toEqual([1, 2, 3, 4, 5, 6])
    expect(await store.log.transcript('s1')).toEqual([before, own])
    expect(await redis.send('LLEN', `${prefix}{s1}:transcript`)).toBe(0)
  })

  test('keeps what an active run has added in Redis, also one that waits for a plan', async () => {
    const { store, move, prefix } = opened()
    const messages = ['m', 'n'].map((text) => ({ ...user(text), runId: 'r1' }))
    await store.sessions.create(newSession('s1'), null)
    const claim = given((await store.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    await store.log.append(claim, entry({ events: some(3), messages }))
    await move('s1')
    expect(await redis.send('LLEN', `${prefix}{s1}:transcript`)).toBe(2)
    expect(await redis.send('XLEN', `${prefix}{s1}:events`)).toBe(0)
    await store.log.append(claim, ended('r1'))
    await move('s1')
    expect(await redis.send('LLEN', `${prefix}{s1}:transcript`)).toBe(0)
    expect(await store.log.transcript('s1', 'r1')).toEqual(messages)
  })

  test('that was deleted while the objects could not be reached leaves none behind', async () => {
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint).port))
    const shaky = await openBucket({ ...address, endpoint: proxy.url })
    onTestFinished(() => shaky.close())
    const { store, move, prefix } = opened(LIMITS, { to: shaky, afterMs: 0 })
    await store.sessions.create(newSession('s1'), null)
    await store.log.append(await claimed(store), entry({ events: some(3) }))
    await move('s1')
    proxy.plan(() => ({ type: 'refuse' }))
    proxy.cutAll()
    await store.sessions.remove('s1')
    expect(await objects(prefix)).toHaveLength(1)
    proxy.plan([])
    await soon(async () => expect(await objects(prefix)).toEqual([]))
  })

  test('says what is missing when the server is started without the objects', async () => {
    const { store, move, prefix } = opened()
    await store.sessions.create(newSession('s1'), null)
    await store.log.append(await claimed(store), entry({ events: some(3), messages: [user('m')] }))
    await move('s1')
    const without = redisStore({ redis, prefix, leaseMs: 1_000, ...LIMITS })
    await expect(without.log.read('s1', 0, 10)).rejects.toMatchObject({ message: expect.stringContaining('--s3-url') })
    await expect(without.log.transcript('s1')).rejects.toMatchObject({ code: 'store_failed' })
  })
})
