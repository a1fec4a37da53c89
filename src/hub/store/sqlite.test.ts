import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { connect } from '../../kit/sqlite/database.ts'
import { haltWriters, startWriter } from '../../kit/sqlite/writer.ts'
import { batch, entryFor, NOW, positionOf, queueMessages, readAll, register, settlement } from './fixtures.contract.ts'
import { hubWriter } from './hub-writer.ts'
import type { Call } from './operations.ts'
import { openSqliteStore, WRITER_THREAD } from './sqlite.ts'

let dir: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'switchboard-sqlite-'))
})

afterEach(() => rm(dir, { recursive: true }))

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('before a process ends at once its writers come to rest: what they have begun is done, and nothing more is taken', async () => {
  const thread = await startWriter<Call>(join(dir, 'hub.db'), WRITER_THREAD)
  const create = (name: string): Call => ({
    name: 'createClient',
    input: { name, label: name, fallback: false, tokenHash: name, now: NOW },
  })
  let done = 0
  const begun = thread.commit(Array.from({ length: 500 }, (_, index) => create(`client ${index}`))).then((outcomes) => {
    done = outcomes.filter(({ ok }) => ok).length
  })
  thread.tidy()
  await haltWriters()
  expect(done).toBe(500)
  await begun
  await expect(thread.commit([create('late')])).rejects.toMatchObject({ code: 'store_failed' })
  await thread.close()
})

verifies('store:writes:grouped', 'operations that come while a commit is under way share the next one', async () => {
  const thread = await startWriter<Call>(join(dir, 'hub.db'), WRITER_THREAD)
  const groups: number[] = []
  const writer = hubWriter({
    lazyMs: 50,
    commit(calls) {
      groups.push(calls.length)
      return thread.commit(calls)
    },
  })
  const create = (name: string) =>
    writer.run({ name: 'createClient', input: { name, label: name, fallback: false, tokenHash: name, now: NOW } })

  const clients = await Promise.all(Array.from({ length: 200 }, (_, index) => create(`client ${index}`)))

  expect(groups).toEqual([1, 199])
  expect(new Set(clients.map(({ id }) => id)).size).toBe(200)
  await writer.drain()
  await thread.close()
})

test('what is written on this thread and on the other is one queue, whoever has the turn', async () => {
  const store = await openSqliteStore({ dir, lazyMs: 5 })
  const client = await register(store, 'ann')
  const seqs: number[] = []
  // Alone, so that they are written here after a while; then many at once, by the thread; and so on.
  for (let round = 0; round < 3; round += 1) {
    for (let one = 0; one < 40; one += 1) {
      const { queued } = await store.messages.ingest(batch([entryFor([client])]))
      seqs.push(...queued.map(({ seq }) => seq))
      if (one % 5 === 0) store.deliveries.settle(settlement(client, { settledSeq: seqs.length - 1 }))
    }
    // What only moves the front would be written over what the other one appended, were that not read anew.
    store.deliveries.settle(settlement(client, { settledSeq: seqs.length - 2 }))
    await register(store, `other ${round}`)
    expect(await positionOf(store, client)).toMatchObject({ lastSeq: seqs.length, settledSeq: seqs.length - 2 })
    const { queued } = await store.messages.ingest(batch(Array.from({ length: 20 }, () => entryFor([client]))))
    seqs.push(...queued.map(({ seq }) => seq))
    store.deliveries.settle(settlement(client, { settledSeq: seqs.length - 3 }))
    await store.deliveries.flush()
  }
  const position = {
    lastSeq: 180,
    sentSeq: 177,
    settledSeq: 177,
    pendingBytes: 3 * '{"seq":7400000000000000001}'.length,
  }
  expect(seqs).toEqual(Array.from({ length: 180 }, (_, index) => index + 1))
  expect(await positionOf(store, client)).toMatchObject(position)
  await store.close()

  const again = await openSqliteStore({ dir })
  expect(await positionOf(again, client)).toMatchObject(position)
  expect((await readAll(again, client)).map(({ seq }) => seq)).toEqual(seqs)
  await again.close()
})

test('what was written on this thread goes from the log into the database by and by', async () => {
  const store = await openSqliteStore({ dir, lazyMs: 5 })
  const client = await register(store, 'ann')
  const sizeOf = async (name: string) => (await stat(join(dir, name))).size
  const before = await sizeOf('hub.db')
  // On a machine that is busy the other thread may write for a while, and leaves the log alone for longer.
  for (let round = 0; round < 4 && (await sizeOf('hub.db')) === before; round += 1) {
    for (let one = 0; one < 300; one += 1) await store.messages.ingest(batch([entryFor([client])]))
    await vi.waitFor(async () => expect(await sizeOf('hub.db')).toBeGreaterThan(before), 6_000).catch(() => undefined)
  }
  expect(await sizeOf('hub.db')).toBeGreaterThan(before)
  expect(await sizeOf('hub.db-wal')).toBeGreaterThan(0)
  await store.close()
}, 60_000)

test('a database that another program holds for a moment is waited for on the other thread', async () => {
  const store = await openSqliteStore({ dir })
  const client = await register(store, 'ann')
  for (let one = 0; one < 30; one += 1) await queueMessages(store, client, 1)
  const tool = await connect(join(dir, 'hub.db'))
  tool.exec('BEGIN IMMEDIATE')
  let turns = 0
  const ticking = setInterval(() => {
    turns += 1
  }, 10)
  const stored = queueMessages(store, client, 1)
  await new Promise((resolve) => setTimeout(resolve, 300))
  tool.exec('COMMIT')
  await stored
  clearInterval(ticking)
  tool.close()
  expect(turns).toBeGreaterThan(5)
  expect(await positionOf(store, client)).toMatchObject({ lastSeq: 31 })
  await store.close()
})

test('an operation that fails does not hurt those of its group', async () => {
  const store = await openSqliteStore({ dir })
  const names = ['one', 'two', 'TWO', 'three', 'One', 'four']
  const results = await Promise.allSettled(names.map((name) => register(store, name)))

  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
  const reason = results[2]?.status === 'rejected' ? results[2].reason : undefined
  expect(reason).toMatchObject({ name: 'AppError', code: 'name_taken' })
  expect((await store.clients.load()).clients.map(({ name }) => name)).toEqual(['one', 'two', 'three', 'four'])
  await store.close()
})

test('a failing ingest does not hurt the queue that its neighbours fill', async () => {
  const store = await openSqliteStore({ dir })
  const ada = await register(store, 'ada')
  const [taken] = await queueMessages(store, ada, 1)
  const results = await Promise.allSettled([
    store.messages.ingest(batch([entryFor([ada])])),
    store.messages.ingest(batch([entryFor([ada])])),
    store.messages.ingest(batch([entryFor([ada]), entryFor([ada], { deliveries: taken?.deliveries ?? [] })])),
    store.messages.ingest(batch([entryFor([ada])])),
  ])

  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect((await readAll(store, ada)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
  expect(await positionOf(store, ada)).toMatchObject({ lastSeq: 4 })
  await store.close()
})

test('deleting a client does not touch what its group does to other queues', async () => {
  const store = await openSqliteStore({ dir })
  const [ada, bob] = [await register(store, 'ada'), await register(store, 'bob')]
  await queueMessages(store, ada, 2)
  store.deliveries.settle(settlement(ada, { settledSeq: 1, echoesCursor: true }))
  await Promise.all([store.messages.ingest(batch([entryFor([ada, bob])])), store.clients.remove(bob.id, NOW)])
  await store.close()

  const reopened = await openSqliteStore({ dir })
  expect(await positionOf(reopened, ada)).toMatchObject({ lastSeq: 3, settledSeq: 1 })
  expect((await reopened.clients.load()).clients).toMatchObject([{ name: 'ada', echoesCursor: true }])
  await reopened.close()
})

test('what is lazy goes out by itself after a moment', async () => {
  const store = await openSqliteStore({ dir, lazyMs: 5 })
  const ada = await register(store, 'ada')
  await queueMessages(store, ada, 2)
  store.deliveries.settle(settlement(ada, { settledSeq: 2 }))

  await expect.poll(() => positionOf(store, ada)).toMatchObject({ settledSeq: 2 })
  await store.close()
})

test('what kill -9 leaves has every message that was acknowledged, whole and in order', async () => {
  const acknowledged: string[] = []
  for (const round of ['first', 'second']) {
    const { child, lines } = await startChild(round)
    await lines(300)
    child.kill('SIGKILL')
    await once(child, 'close')
    acknowledged.push(...(await lines(0)))
  }
  const store = await openSqliteStore({ dir })
  const kept = new Set<string>()
  for (const { clientId, lastSeq } of await store.deliveries.positions()) {
    const deliveries = await store.deliveries.read(clientId, 0, 1_000_000, 0)
    expect(deliveries.map(({ seq }) => seq)).toEqual(Array.from({ length: lastSeq }, (_, index) => index + 1))
    for (const { spec } of deliveries) kept.add(spec)
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(600)
  expect(acknowledged.filter((spec) => !kept.has(spec))).toEqual([])
  await store.close()
})

test('a directory serves one hub at a time, and is free as soon as that one has died', async () => {
  const { child, lines } = await startChild('first')
  await lines(1)
  await expect(openSqliteStore({ dir })).rejects.toMatchObject({
    name: 'AppError',
    code: 'data_dir_in_use',
    message: `The data directory ${dir} is in use by another hub (process ${child.pid}); stop it or choose another with --data-dir.`,
  })
  child.kill('SIGKILL')
  await once(child, 'close')

  const store = await openSqliteStore({ dir })
  await expect(openSqliteStore({ dir })).rejects.toMatchObject({ code: 'data_dir_in_use' })
  await expect(openSqliteStore({ dir })).rejects.toMatchObject({ code: 'data_dir_in_use' })
  await store.close()
  await (await openSqliteStore({ dir })).close()
})

test('a closed store is one whole file', async () => {
  const store = await openSqliteStore({ dir })
  const ada = await register(store, 'ada')
  await queueMessages(store, ada, 3)
  await store.close()
  const copy = join(dir, 'copy')
  await mkdir(copy)
  await copyFile(join(dir, 'hub.db'), join(copy, 'hub.db'))

  const restored = await openSqliteStore({ dir: copy })
  expect(await readAll(restored, ada)).toHaveLength(3)
  await restored.close()
})

verifies('store:files:private', 'nobody else can read what the hub keeps', async () => {
  const own = join(dir, 'deep', 'data')
  const store = await openSqliteStore({ dir: own })
  await register(store, 'ada')

  expect(await modeOf(own)).toBe('700')
  const files = await readdir(own)
  expect(files.sort()).toEqual(['hub.db', 'hub.db-shm', 'hub.db-wal', 'lock.db', 'lock.pid'])
  for (const file of files) expect([file, await modeOf(join(own, file))]).toEqual([file, '600'])
  await store.close()

  await chmod(own, 0o755)
  await chmod(join(own, 'hub.db'), 0o644)
  await (await openSqliteStore({ dir: own })).close()
  expect(await modeOf(own)).toBe('700')
  expect(await modeOf(join(own, 'hub.db'))).toBe('600')
})

test('a directory that holds other things keeps its mode', async () => {
  const shared = join(dir, 'shared')
  await mkdir(shared, { mode: 0o755 })
  await writeFile(join(shared, 'notes.txt'), '')
  await (await openSqliteStore({ dir: shared })).close()

  expect(await modeOf(shared)).toBe('755')
  expect(await modeOf(join(shared, 'hub.db'))).toBe('600')
})

test('a directory that cannot be made is refused with what to do', async () => {
  const file = join(dir, 'file')
  await writeFile(file, '')

  await expect(openSqliteStore({ dir: join(file, 'data') })).rejects.toMatchObject({
    code: 'data_dir_unusable',
    message: expect.stringContaining('--data-dir'),
  })
})

verifies('store:schema:newer', 'a database of a newer version is refused and left as it is', async () => {
  await (await openSqliteStore({ dir })).close()
  const path = join(dir, 'hub.db')
  const newer = await connect(path)
  newer.exec('PRAGMA user_version = 999')
  newer.close()

  await expect(openSqliteStore({ dir })).rejects.toMatchObject({
    name: 'AppError',
    code: 'store_newer',
    message: expect.stringContaining('--data-dir'),
  })
  const after = await connect(path)
  expect(after.get('PRAGMA user_version')).toEqual({ user_version: 999 })
  after.close()
})

test('when the writer has ended every write fails, and what waits on it is told', async () => {
  const path = join(dir, 'hub.db')
  const thread = await startWriter<Call>(path, WRITER_THREAD)
  const writer = hubWriter({ commit: (calls) => thread.commit(calls), lazyMs: 50 })
  const create = { name: 'x', label: 'x', fallback: false, tokenHash: 'x', now: NOW }
  const write = () => writer.run({ name: 'createClient', input: create })

  const ended = thread.close()
  await expect(write()).rejects.toMatchObject({ code: 'store_failed' })
  await ended
  await expect(write()).rejects.toMatchObject({ code: 'store_failed' })
  writer.touch([{ id: 1, lastSeen: NOW, stopped: false }])
  await expect(writer.flush()).rejects.toMatchObject({ code: 'store_failed' })
  await expect(writer.drain()).rejects.toMatchObject({ code: 'store_failed' })
  await thread.close()
})

/** A process that keeps messages in `dir`; `lines` resolves with what it has acknowledged once that is so many. */
async function startChild(name: string): Promise<{ child: ChildProcess; lines(count: number): Promise<string[]> }> {
  const script = fileURLToPath(new URL('../../../test/support/store-writer.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, dir, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  return {
    child,
    async lines(count) {
      while (output.split('\n').length <= count) {
        if (child.exitCode !== null) throw new Error('The child ended too early')
        await once(child.stdout, 'data')
      }
      return output.split('\n').slice(0, -1)
    },
  }
}

verifies('store:writes:off-loop', 'the event loop goes on while a large batch is written', async () => {
  const store = await openSqliteStore({ dir })
  const ada = await register(store, 'ada')
  let written = false
  const writing = store.messages.ingest(batch(Array.from({ length: 5_000 }, () => entryFor([ada])))).then(() => {
    written = true
  })
  let turns = 0
  while (!written) {
    turns += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  await writing
  // Written on this thread it would be a handful.
  expect(turns).toBeGreaterThan(50)
  await store.close()
})
