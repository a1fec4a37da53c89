import { rm, stat } from 'node:fs/promises'
import { errorText } from '../../kit/errors.ts'
import type { Log } from '../../kit/log.ts'
import type { ObjectLog } from '../../kit/s3/object-log.ts'
import type { Snapshots } from '../../kit/s3/snapshots.ts'
import { copyDatabase } from '../../kit/sqlite/copy.ts'
import { openDatabase } from '../../kit/sqlite/database.ts'
import { readApplied } from './applied.ts'
import type { Call } from './operations.ts'

/** Puts the copy into the bucket when the log has grown, and removes the records that nobody needs any more. */
export interface Snapshotter {
  /** The log has grown. */
  grew(bytes: number): void
  /** Takes no more; resolves when what is under way has ended. */
  stop(): Promise<void>
}

export interface SnapshotterOptions {
  databasePath: string
  log: ObjectLog<Call>
  snapshots: Snapshots
  /** The records that began a writer. They stay: one that was frozen since then must still find its number taken. */
  starts: number[]
  /** The log may grow by so many records, and by as many as the copy is large, before there is a new snapshot. */
  afterRecords?: number
  trouble: Log
}

const AFTER_RECORDS = 1_000
const BYTES_PER_RECORD = 16 * 1024
const MOST_STARTS = 1_000
const AGAIN_AFTER_MS = 30_000

export function snapshotter(options: SnapshotterOptions): Snapshotter {
  const { databasePath, log, snapshots, starts, afterRecords = AFTER_RECORDS, trouble } = options
  let [records, bytes] = [0, 0]
  let underway: Promise<void> | null = null
  let notBefore = 0
  let stopped = false

  return {
    grew(more) {
      records += 1
      bytes += more
      const isDue = records >= afterRecords || bytes >= afterRecords * BYTES_PER_RECORD
      if (!isDue || stopped || underway !== null || performance.now() < notBefore) return
      underway = saveIfDue()
        .catch((error: unknown) => {
          notBefore = performance.now() + AGAIN_AFTER_MS
          trouble.warn('no snapshot could be made; it is tried again', { error: errorText(error) })
        })
        .finally(() => {
          underway = null
        })
    },
    async stop() {
      stopped = true
      await underway
    },
  }

  /** Rarely, where the copy is large: all of it is written each time. */
  async function saveIfDue(): Promise<void> {
    const { size } = await stat(databasePath)
    if (records < size / BYTES_PER_RECORD && bytes < size) return
    const before = { records, bytes }
    const copy = `${databasePath}.snapshot`
    await rm(copy, { force: true })
    try {
      await copyDatabase(databasePath, copy)
      const seq = await appliedAt(copy)
      const kept = starts.filter((start) => start <= seq).slice(-MOST_STARTS)
      await snapshots.save({ seq, starts: kept }, copy)
      records -= before.records
      bytes -= before.bytes
      await log.removeUpTo(seq, new Set(kept))
    } finally {
      await rm(copy, { force: true })
    }
  }
}

async function appliedAt(path: string): Promise<number> {
  const db = await openDatabase(path, 'read')
  try {
    return readApplied(db)
  } finally {
    db.close()
  }
}
