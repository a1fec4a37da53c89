import { existsSync, mkdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { freshBucket } from '../../../test/support/servers/fresh-bucket.ts'
import { soon } from '../../../test/support/soon.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { AppError } from '../../kit/errors.ts'
import { silentLog } from '../../kit/log.ts'
import { type Bucket, type BucketAddress, openBucket } from '../../kit/s3/bucket.ts'
import { openDatabase } from '../../kit/sqlite/database.ts'
import { newRun, newSession, user } from '../core-fixture.contract.ts'
import { ended, entry, given, partial, REFUSE } from './fixtures.contract.ts'
import type { StoreLimits } from './port.ts'
import { openS3Store, type S3Store } from './s3.ts'
import { agentStoreContract } from './store.contract.ts'

const LIMITS = { maxSessions: 100, maxLogEvents: 30, maxLogBytes: 100_000 }
/** Long enough for a machine that is busy to renew in time. */
const LONG_LIFE_MS = 20_000
const SHORT_LIFE_MS = 600

vi.setConfig({ testTimeout: 60_000 })

let address: BucketAddress
let whole: Bucket
let names = 0

beforeAll(async () => {
  address = await freshBucket()
  whole = await openBucket(address)
})
afterAll(() => whole.close())

/** A bucket whose line can be cut, and whose answers can be lost. */
interface Line extends Bucket {
  fault: 'none' | 'cut' | 'lost-answer'
}

function freshPrefix(): string {
  names += 1
  return `place${names}/`
}

/** A place of its own, or another line to it. */
function line(prefix = freshPrefix()): Line & { prefix: string } {
  const reach = <T>(call: () => Promise<T>): Promise<T> => {
    if (own.fault === 'cut') throw away()
    return call()
  }
  const own: Line & { prefix: string } = {
    prefix,
    fault: 'none',
    create: (name, body) =>
      reach(async () => {
        const created = await whole.create(prefix + name, body)
        if (own.fault === 'lost-answer') throw away()
        return created
      }),
    put: (name, body) => reach(() => whole.put(prefix + name, body)),
    get: (name) => reach(() => whole.get(prefix + name)),
    list: (start) => reach(async () => (await whole.list(prefix + start)).map((name) => name.slice(prefix.length))),
    remove: (list) => reach(() => whole.remove(list.map((name) => prefix + name))),
    get isUp() {
      return own.fault === 'none'
    },
    close: () => {},
  }
  return own
}

function away(): AppError {
  return new AppError('store_failed', 'The object store cannot be used now; try again shortly.')
}

interface Options {
  limits?: StoreLimits
  snapshotAfterRecords?: number
  lifeMs?: number
  lost?: string[]
}

async function open(bucket: Bucket, options: Options = {}): Promise<S3Store> {
  const { limits = LIMITS, lifeMs = LONG_LIFE_MS, lost = [], snapshotAfterRecords } = options
  const store = await openS3Store({
    ...limits,
    bucket,
    lifeMs,
    log: silentLog,
    onLost: (reason) => lost.push(reason),
    ...(snapshotAfterRecords === undefined ? {} : { snapshotAfterRecords }),
  })
  onTestFinished(() => store.close())
  return store
}

/** Something of everything, refusals among it. */
async function work(store: S3Store, id: string): Promise<void> {
  await store.sessions.create(newSession(id), { key: `k-${id}`, bodyHash: 'b', now: 1_000 })
  const { claim } = await store.runs.admit(newRun('r1', id), REFUSE)
  const more = Array.from({ length: 25 }, (_, index) => partial(`text ${index} \ud83d of ${id}`))
  await Promise.all([
    store.log.append(given(claim), entry({ events: more, messages: [user('hello')] })),
    store.sessions.update(id, { title: 'a title' }),
    expect(store.runs.admit(newRun('r2', id), REFUSE)).rejects.toMatchObject({ code: 'session_busy' }),
  ])
  await store.runs.admit(newRun('r3', id), { receipt: null, whenBusy: 'enqueue' })
  await store.log.append(given(claim), ended('r1'))
  const next = await store.runs.next(id, 9_000)
  await store.log.append(given(next?.claim), entry({ runId: 'r3', events: more }))
  await store.sessions.fork(id, newSession(`${id}-fork`), { messages: null, receipt: null })
  await store.sessions.create(newSession(`${id}-gone`), null)
  await store.sessions.remove(`${id}-gone`)
}

/** Every row of every table, but how far the copy is. */
async function rows({ dir }: S3Store): Promise<unknown> {
  const db = await openDatabase(join(dir, 'agent.db'), 'read')
  try {
    const tables = ['sessions', 'events', 'messages', 'runs', 'receipts', 'sqlite_sequence']
    return tables.map((table) => db.all(`SELECT * FROM ${table} ORDER BY 1, 2`))
  } finally {
    db.close()
  }
}

agentStoreContract('S3', async (limits) => {
  const store = await open(line(), { limits })
  return { store }
})

describe('a log in a bucket', () => {
  verifies('agentscale:alone:contract', async () => {
    const bucket = line()
    const store = await open(bucket)
    await work(store, 's1')
    const before = await rows(store)
    await store.close()
    expect(existsSync(store.dir)).toBe(false)
    const again = await open(bucket)
    expect(await rows(again)).toEqual(before)
    await work(again, 's2')
    expect(await again.count()).toBe(4)
  })

  verifies('agentscale:alone:snapshot', async () => {
    const bucket = line()
    let store = await open(bucket, { snapshotAfterRecords: 5 })
    for (const id of ['s1', 's2', 's3']) await work(store, id)
    const log = () => bucket.list('log/')
    await soon(async () => expect((await log()).length).toBeLessThan(20))
    // What a kill in the middle of the next one leaves: its end is missing, so it does not count.
    await bucket.put('snapshot/000000000999/000000000000', Buffer.from('half'))
    for (let round = 0; round < 2; round += 1) {
      const before = await rows(store)
      await store.close()
      expect((await bucket.list('snapshot/')).filter((name) => name.endsWith('end'))).toHaveLength(1)
      store = await open(bucket, { snapshotAfterRecords: 5 })
      expect(await rows(store)).toEqual(before)
    }
    // Whoever began with it and sleeps since must still find its next number taken.
    expect((await log())[0]).toBe('log/000000000001')
  })

  test('a start whose log is removed under it takes nothing over', async () => {
    const bucket = line()
    const store = await open(bucket, { snapshotAfterRecords: 5, lifeMs: SHORT_LIFE_MS })
    await work(store, 's1')
    await soon(async () => expect(await bucket.get('log/000000000002')).toBeNull())
    await store.close()
    let looks = 0
    // As it was before the snapshot: it reads the log from its beginning, and finds an end that is none.
    const late: Bucket = {
      ...bucket,
      isUp: true,
      list: async (start) => (start === 'snapshot/' && looks++ === 0 ? [] : bucket.list(start)),
    }
    await expect(open(late)).rejects.toMatchObject({ code: 'bucket_in_use' })
    const again = await open(bucket)
    expect(await again.sessions.get('s1')).toMatchObject({ title: 'a title' })
  })

  test('copies that killed servers left are removed, those in use and new ones are not', async () => {
    const lastYear = new Date(Date.now() - 365 * 24 * 60 * 60_000)
    const [left, fresh] = ['left', 'fresh'].map((name) => join(tmpdir(), `switchboard-agent-copy-test-${name}`))
    if (!left || !fresh) throw new Error('no folders')
    for (const dir of [left, fresh]) mkdirSync(dir, { recursive: true })
    onTestFinished(() => rmSync(fresh, { recursive: true, force: true }))
    const used = await open(line())
    for (const dir of [left, used.dir]) utimesSync(dir, lastYear, lastYear)
    await open(line())
    expect([left, fresh, used.dir].map((dir) => existsSync(dir))).toEqual([false, true, true])
  })
})

describe('two servers on one bucket', () => {
  verifies('agentscale:alone:second', async () => {
    const bucket = line()
    const lost: string[] = []
    const first = await open(bucket, { lifeMs: LONG_LIFE_MS / 2, lost })
    await expect(open(line(bucket.prefix))).rejects.toMatchObject({
      code: 'bucket_in_use',
      message: expect.stringContaining(`process ${process.pid} on`),
    })
    await first.sessions.create(newSession('s1'), null)
    expect(lost).toEqual([])
    await first.close()
    // It has gone in order: nobody waits for its lock to run out.
    const second = await open(line(bucket.prefix))
    expect(await second.sessions.get('s1')).not.toBeNull()
  })

  verifies(
    'agentscale:alone:overtaken',
    'one that was cut off and taken over writes nothing more, also when the records of its time are gone',
    async () => {
      const bucket = line()
      const lost: string[] = []
      const first = await open(bucket, { lifeMs: SHORT_LIFE_MS, lost })
      await first.sessions.create(newSession('s1'), null)
      bucket.fault = 'cut'
      await expect(first.sessions.create(newSession('s2'), null)).rejects.toMatchObject({ code: 'store_failed' })
      expect(first.trouble()).toContain('cannot be reached')
      const second = await open(line(bucket.prefix), { snapshotAfterRecords: 5 })
      await work(second, 's3')
      await soon(async () => expect((await whole.list(`${bucket.prefix}log/`)).length).toBeLessThan(9))

      bucket.fault = 'none'
      await expect(first.sessions.create(newSession('s4'), null)).rejects.toMatchObject({ code: 'store_failed' })
      expect(lost).toEqual([expect.stringContaining('taken over')])
      expect(first.trouble()).toContain('taken over')
      await first.close()
      const before = await rows(second)
      await second.close()
      const third = await open(line(bucket.prefix))
      expect(await rows(third)).toEqual(before)
      expect([await third.sessions.get('s2'), await third.sessions.get('s4')]).toEqual([null, null])
    },
  )

  test('one that does nothing finds out by itself', async () => {
    const bucket = line()
    const lost: string[] = []
    await open(bucket, { lifeMs: SHORT_LIFE_MS, lost })
    bucket.fault = 'cut'
    await open(line(bucket.prefix))
    bucket.fault = 'none'
    await soon(() => expect(lost).toHaveLength(1))
  })
})

describe('a write whose fate is not known', () => {
  verifies('agentscale:alone:doubt', async () => {
    const bucket = line()
    const store = await open(bucket)
    await store.sessions.create(newSession('s1'), null)
    const claim = given((await store.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    const failed = { code: 'store_failed' }

    bucket.fault = 'cut'
    await expect(store.log.append(claim, entry({ events: [partial('never')] }))).rejects.toMatchObject(failed)
    bucket.fault = 'lost-answer'
    await expect(store.log.append(claim, ended('r1'))).rejects.toMatchObject(failed)
    bucket.fault = 'none'
    const done = async () => (await store.log.read('s1', 0, 10)).map(({ type }) => type)
    // Decided without knowing that the first one came through: not done. Nor is what waits behind it.
    const again = (now: number) => store.log.append(claim, { ...ended('r1'), now })
    const repeated = await Promise.allSettled([6_000, 7_000, 8_000].map(again))
    expect(repeated.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(await done()).toEqual(['done'])
    await expect(again(9_000)).rejects.toMatchObject({ code: 'fenced' })
    expect(await done()).toEqual(['done'])
    expect((await store.runs.admit(newRun('r2', 's1'), REFUSE)).claim).not.toBeNull()
    bucket.fault = 'lost-answer'
    await expect(store.sessions.update('s1', { title: 'new' })).rejects.toMatchObject(failed)
    bucket.fault = 'none'
    // The very same again is the first one.
    expect(await store.sessions.update('s1', { title: 'new' })).toMatchObject({ title: 'new' })
    const before = await rows(store)
    await store.close()
    expect(await rows(await open(bucket))).toEqual(before)
  })
})
