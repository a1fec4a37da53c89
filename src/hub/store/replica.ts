import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { AppError } from '../../kit/errors.ts'
import type { Claim } from '../../kit/lease.ts'
import type { LogRecord, SharedLog } from '../../kit/postgres/shared-log.ts'
import { copyDatabase } from '../../kit/sqlite/copy.ts'
import { connect, openDatabase } from '../../kit/sqlite/database.ts'
import { migrate } from '../../kit/sqlite/migrate.ts'
import { type OpenSqlite, openSqlite } from '../../kit/sqlite/open.ts'
import { hubStore } from './hub-store.ts'
import { hubWriter } from './hub-writer.ts'
import type { Call } from './operations.ts'
import type { HubStore } from './port.ts'
import { MIGRATIONS, readMeta, setMeta as setMetaNow } from './schema.ts'
import { WRITER_THREAD } from './sqlite.ts'

/**
 * This node's copy of what the log's records make: a SQLite database that every node builds for itself by doing the same
 * operations in the same order. The log is the truth; a copy that is lost is made anew.
 */
export interface Replica {
  /** The last record that was applied. */
  readonly appliedSeq: number
  /** Applies what the log has since; resolves when nothing was left. Fails with `replica_behind` when that part of the log is gone. */
  catchUp(): Promise<void>
  /** The store of the node that leads: what it writes goes to the log first. Its `close` leaves the replica open. */
  lead(claim: Claim): Promise<HubStore>
  /** Puts what there is now into the log as its newest snapshot, if the log has grown enough since the last. */
  snapshotIfDue(claim: Claim): Promise<boolean>
  close(): Promise<void>
}

export interface ReplicaOptions {
  log: SharedLog
  lazyMs?: number
  /** The log may grow by as much as the copy is large, and by this many bytes, before there is a new snapshot. */
  snapshotAfterBytes?: number
}

const DATABASE = 'replica.db'
const APPLIED = 'applied_seq'
const READ_AT_ONCE = 200
const PART_BYTES = 1024 * 1024
const SNAPSHOT_AFTER_BYTES = 32 * 1024 * 1024

/** Opens the copy, from the newest snapshot where it is too old or not there. */
export async function openReplica({ dir, ...options }: ReplicaOptions & { dir: string }): Promise<Replica> {
  const prepare = (path: string) => fetchSnapshot(path, options.log)
  const where = { dir, database: DATABASE, service: 'hub', thread: WRITER_THREAD, prepare }
  return replicaOn(await openSqlite<Call>(where), options)
}

/** The copy in a database that is open. */
export function replicaOn(sqlite: OpenSqlite<Call>, options: ReplicaOptions): Replica {
  const { log, lazyMs = 50, snapshotAfterBytes = SNAPSHOT_AFTER_BYTES } = options
  let appliedSeq = appliedIn(sqlite)
  let grownBytes = 0
  /** An append failed and may have been done all the same: the log is to be read before the next. */
  let inDoubt = false

  return {
    get appliedSeq() {
      return appliedSeq
    },
    catchUp,
    async lead(claim) {
      await catchUp()
      // The first record of a log: every copy answers to the same name.
      if (appliedSeq === 0) await commit(claim, [setMeta('hub_id', randomBytes(4).toString('hex'))])
      const writer = hubWriter({ commit: (calls) => commit(claim, calls), lazyMs })
      return hubStore(sqlite.db, writer, () => writer.drain())
    },
    async snapshotIfDue(claim) {
      const { size } = await stat(sqlite.databasePath)
      if (grownBytes < Math.max(snapshotAfterBytes, size)) return false
      await saveSnapshot(sqlite.databasePath, log, claim)
      grownBytes = 0
      return true
    },
    close: () => sqlite.close(async () => {}),
  }

  /** Write before you tell, and before you do: what is in the log is done by every copy, this one among them. */
  async function commit(claim: Claim, calls: Call[]) {
    const text = JSON.stringify(calls)
    try {
      if (inDoubt) await catchUp()
      await log.append(claim, appliedSeq + 1, text)
    } catch (error) {
      inDoubt = true
      throw asStoreFailure(error)
    }
    grownBytes += text.length
    // Whatever happens to this copy now, the record stands: it is applied before anything else is written.
    inDoubt = true
    const outcomes = await apply([{ seq: appliedSeq + 1, text }])
    inDoubt = false
    return outcomes
  }

  async function catchUp(): Promise<void> {
    for (;;) {
      const records = await log.read(appliedSeq, READ_AT_ONCE)
      const [first] = records
      if (first === undefined) break
      if (first.seq !== appliedSeq + 1) throw behind()
      await apply(records)
      for (const { text } of records) grownBytes += text.length
    }
    if ((await log.bounds()).newest > appliedSeq) throw behind()
    inDoubt = false
  }

  /** Does what the records say and notes how far it came, in one commit. */
  async function apply(records: LogRecord[]) {
    const last = records.at(-1)?.seq ?? appliedSeq
    const calls = records.flatMap(({ text }): Call[] => JSON.parse(text))
    const outcomes = await sqlite.commit([...calls, setMeta(APPLIED, String(last))])
    appliedSeq = last
    return outcomes.slice(0, -1)
  }
}

function setMeta(key: string, value: string): Call {
  return { name: 'setMeta', input: { key, value } }
}

function appliedIn({ db }: Pick<OpenSqlite<Call>, 'db'>): number {
  return Number(readMeta(db, APPLIED) ?? 0)
}

/** Takes the newest snapshot where the log alone does not lead from the copy that is there to today. */
async function fetchSnapshot(path: string, log: SharedLog): Promise<void> {
  const { oldest, newest } = await log.bounds()
  const appliedSeq = await appliedAt(path)
  if (appliedSeq > newest) {
    throw new AppError(
      'replica_of_another',
      `${path} is ahead of the database that --database-url names, so it belongs to another; choose another --data-dir.`,
    )
  }
  if (appliedSeq + 1 >= oldest) return
  const fresh = `${path}.fresh`
  const file = createWriteStream(fresh, { mode: 0o600 })
  const seq = await log.readSnapshot(async (part) => {
    if (!file.write(part)) await once(file, 'drain')
  })
  file.end()
  await once(file, 'finish')
  if (seq === null) return rm(fresh)
  for (const suffix of ['-wal', '-shm']) await rm(path + suffix, { force: true })
  await rename(fresh, path)
}

async function appliedAt(path: string): Promise<number> {
  if (!existsSync(path) || (await stat(path)).size === 0) return 0
  const db = await openDatabase(path, 'read')
  try {
    return appliedIn({ db })
  } finally {
    db.close()
  }
}

/** Begins an empty log with what is in a database file, which is changed for it. */
export async function seedLog(path: string, log: SharedLog, claim: Claim): Promise<void> {
  const db = await connect(path)
  try {
    migrate(db, path, MIGRATIONS)
    setMetaNow(db, { key: APPLIED, value: '1' })
    // All of it in the one file that is sent.
    db.exec('PRAGMA journal_mode = DELETE')
  } finally {
    db.close()
  }
  await log.saveSnapshot(claim, 1, createReadStream(path, { highWaterMark: PART_BYTES }))
}

/** A copy of the file as of one moment, made on a connection of its own, then sent in parts. */
async function saveSnapshot(path: string, log: SharedLog, claim: Claim): Promise<void> {
  const copy = `${path}.snapshot`
  await rm(copy, { force: true })
  try {
    await copyDatabase(path, copy)
    await log.saveSnapshot(claim, await appliedAt(copy), createReadStream(copy, { highWaterMark: PART_BYTES }))
  } finally {
    await rm(copy, { force: true })
  }
}

function behind(): AppError {
  return new AppError('replica_behind', 'The log no longer holds what this copy needs; it is made anew.')
}

/** Whatever the database said: for the hub it is a store that does not take a write, and it tries again. */
function asStoreFailure(error: unknown): AppError {
  if (error instanceof AppError && error.code === 'lease_lost') return error
  return new AppError('store_failed', 'The shared database does not take writes just now; trying again.', {
    cause: error,
    retryAfterMs: 1_000,
  })
}
