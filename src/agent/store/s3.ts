import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, errorText } from '../../kit/errors.ts'
import { memoryLease } from '../../kit/lease.ts'
import type { Log } from '../../kit/log.ts'
import type { Bucket } from '../../kit/s3/bucket.ts'
import { holderOf, holdLock, newestLock } from '../../kit/s3/bucket-lock.ts'
import { objectLog } from '../../kit/s3/object-log.ts'
import { snapshots as snapshotsIn } from '../../kit/s3/snapshots.ts'
import { openDataDirectory } from '../../kit/sqlite/data-directory.ts'
import { type OpenSqlite, openSqlite } from '../../kit/sqlite/open.ts'
import type { Call } from './operations.ts'
import type { AgentStore, StoreLimits } from './port.ts'
import { endsWork } from './records.ts'
import { snapshotter } from './s3-snapshots.ts'
import { logWriter } from './s3-writer.ts'
import { sqliteStoreOn, WRITER_THREAD } from './sqlite.ts'

/** A store whose truth is a log in a bucket; its database is a copy that nobody misses. */
export interface S3Store extends AgentStore {
  /** Where the copy is, while the store is open. */
  readonly dir: string
  /** Why nothing can be written now; null when all is well. */
  trouble(): string | null
}

export interface S3StoreOptions extends StoreLimits {
  /** Nothing else writes where it points to. */
  bucket: Bucket
  /** How long a server may be silent before another may take over. */
  lifeMs: number
  log: Log
  /** Called once, when another server has taken over. */
  onLost: (reason: string) => void
  snapshotAfterRecords?: number
}

const DATABASE = 'agent.db'
const FOLDER = 'switchboard-agent-copy-'
/** A folder that is younger may belong to a server that starts in this moment. */
const LEFT_AFTER_MS = 60 * 60_000
const APPLIED_AT_ONCE = 200
const TAKE_OVER_TRIES = 20

/**
 * The store of one agent server on an object store alone. Every group of operations is a record of the log before anybody
 * is told; the database is built from the newest snapshot and the records behind it. A second server is refused with
 * `bucket_in_use` while the first gives signs of life; else it takes over, and from then on the first cannot write.
 */
export async function openS3Store(options: S3StoreOptions): Promise<S3Store> {
  const { bucket, lifeMs } = options
  const lock = await newestLock(bucket)
  if (lock !== null) await refuseIfHeld(bucket, lock, lifeMs)
  await removeLeftovers()
  const dir = await mkdtemp(join(tmpdir(), FOLDER))
  try {
    const copy = await openCopy(dir, bucket)
    try {
      const writer = await takeOver(copy, lock, options)
      return await storeOn(copy, writer, dir, options)
    } catch (error) {
      await copy.sqlite.close(async () => {})
      throw error
    }
  } catch (error) {
    await rm(dir, { recursive: true, force: true })
    throw error
  }
}

/** The database that the log makes, as far as it was read. */
interface Copy {
  sqlite: OpenSqlite<Call>
  appliedSeq: number
  /** The snapshot it began with; 0 without one. */
  snapshotSeq: number
  /** The records that began a writer. */
  starts: number[]
  /** The sizes of the records behind the snapshot. */
  sizes: number[]
}

async function openCopy(dir: string, bucket: Bucket): Promise<Copy> {
  const snapshots = snapshotsIn(bucket)
  const newest = await snapshots.newest()
  const sqlite = await openSqlite<Call>({
    dir,
    database: DATABASE,
    service: 'agent server',
    thread: WRITER_THREAD,
    prepare: async (path) => {
      if (newest !== null) await snapshots.load(newest, path)
    },
  })
  const seq = newest?.seq ?? 0
  return { sqlite, appliedSeq: seq, snapshotSeq: seq, starts: [...(newest?.starts ?? [])], sizes: [] }
}

/** Reads the log to its end and writes this server's first record there; returns what it calls itself. */
async function takeOver(
  copy: Copy,
  lock: number | null,
  { bucket, lifeMs }: Pick<S3StoreOptions, 'bucket' | 'lifeMs'>,
): Promise<string> {
  const log = objectLog<Call>(bucket)
  const writer = randomUUID()
  let known = lock
  for (let tries = 0; tries < TAKE_OVER_TRIES; tries += 1) {
    await catchUp(copy, bucket)
    const last = copy.starts.at(-1) ?? null
    if (last !== null && last !== known) {
      // It began and has no lock yet, or began after we looked.
      await refuseIfHeld(bucket, last, lifeMs)
      known = last
      continue
    }
    const seq = copy.appliedSeq + 1
    if ((await log.append(seq, { writer, starts: true, calls: [] })) !== null) continue
    // Records are removed behind a new snapshot: an end that was none would be the middle of somebody's log.
    const newest = await snapshotsIn(bucket).newest()
    if ((newest?.seq ?? 0) > copy.snapshotSeq) break
    await apply(copy, seq, [])
    copy.starts.push(seq)
    return writer
  }
  throw inUse('which writes to it')
}

async function catchUp(copy: Copy, bucket: Bucket): Promise<void> {
  let calls: Call[] = []
  let last = copy.appliedSeq
  for await (const { seq, record, bytes } of objectLog<Call>(bucket).readFrom(last + 1)) {
    calls.push(...record.calls)
    copy.sizes.push(bytes)
    if (record.starts) copy.starts.push(seq)
    last = seq
    if (calls.length < APPLIED_AT_ONCE) continue
    await apply(copy, last, calls)
    calls = []
  }
  if (last > copy.appliedSeq) await apply(copy, last, calls)
}

/** Does operations, and notes in the same commit how far the copy is. */
async function apply(copy: Copy, seq: number, calls: Call[]) {
  const outcomes = await copy.sqlite.commit([...calls, { name: 'noteApplied', input: { seq } }])
  copy.appliedSeq = seq
  return outcomes.slice(0, -1)
}

async function storeOn(copy: Copy, name: string, dir: string, options: S3StoreOptions): Promise<S3Store> {
  const { bucket, lifeMs, log: events, maxSessions, maxLogEvents, maxLogBytes } = options
  const { sqlite, starts, appliedSeq: startSeq } = copy
  const log = objectLog<Call>(bucket)
  const leases = memoryLease({ now: () => 0, lifeMs: 1 })
  const saving = snapshotter({
    databasePath: sqlite.databasePath,
    log,
    snapshots: snapshotsIn(bucket),
    starts,
    ...(options.snapshotAfterRecords === undefined ? {} : { afterRecords: options.snapshotAfterRecords }),
    trouble: events,
  })
  const writer = logWriter({
    log,
    writer: name,
    startSeq,
    apply: (seq, calls) => apply(copy, seq, calls),
    onApplied: (_seq, bytes) => saving.grew(bytes),
    onLate(calls) {
      // Its owner was told that the end is not kept, and would write it again.
      for (const call of calls)
        if (call.name === 'appendEntry' && endsWork(call.input.entry)) leases.drop(leases.grant(call.input.sessionId))
    },
    onLost: options.onLost,
  })
  const lock = await holdLock(bucket, startSeq, { lifeMs, onRenewed: writer.look })
  for (const bytes of copy.sizes) saving.grew(bytes)
  let closed: Promise<void> | undefined
  const close = async (drain: () => Promise<void>) => {
    try {
      await drain()
    } finally {
      await saving.stop()
      await lock.release(writer.lost() === null).catch((error: unknown) => {
        events.warn('the lock object could not be released; the next start waits until it runs out', {
          error: errorText(error),
        })
      })
      await sqlite.close(async () => {})
      await rm(dir, { recursive: true, force: true })
    }
  }
  const opened: OpenSqlite<Call> = {
    db: sqlite.db,
    databasePath: sqlite.databasePath,
    commit: writer.commit,
    close(drain) {
      closed ??= close(drain)
      return closed
    },
  }
  const store = sqliteStoreOn(opened, { maxSessions, maxLogEvents, maxLogBytes }, leases)
  return { ...store, dir, trouble: () => writer.lost() ?? awayText(bucket) ?? store.trouble() }
}

function awayText({ isUp }: Bucket): string | null {
  return isUp ? null : 'The object store cannot be reached.'
}

async function refuseIfHeld(bucket: Bucket, lock: number, lifeMs: number): Promise<void> {
  const holder = await holderOf(bucket, lock, lifeMs)
  if (holder !== null) throw inUse(`(${holder})`)
}

function inUse(by: string): AppError {
  return new AppError(
    'bucket_in_use',
    `The bucket of --s3-url is in use by another agent server ${by}; stop it, choose another bucket or prefix, or let several servers share their sessions with --redis-url.`,
  )
}

/** Copies of servers that were killed. One that lives has locked its folder. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const dir = join(tmpdir(), name)
    if (!name.startsWith(FOLDER) || Date.now() - (await stat(dir)).mtimeMs < LEFT_AFTER_MS) continue
    try {
      const { unlock } = await openDataDirectory(dir, { database: DATABASE, service: 'agent server' })
      unlock()
      await rm(dir, { recursive: true, force: true })
    } catch {
      // In use, or somebody else's.
    }
  }
}
