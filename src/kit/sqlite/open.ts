import { type AnyCall, commitGroup, type Operations, type Outcome } from './commit-group.ts'
import { type DataDirectoryOwner, openDataDirectory } from './data-directory.ts'
import { type Db, openDatabase } from './database.ts'
import { nearbyWriter } from './nearby-writer.ts'
import { startWriter } from './writer.ts'

export interface SqliteOptions<Call extends AnyCall> extends DataDirectoryOwner {
  /** Made when it is not there. One server at a time. */
  dir: string
  /** The module of the writer thread, which calls `serveWriter`. */
  thread: URL
  /** Called with the path of the database when the directory is locked and nothing is open yet. */
  prepare?: (databasePath: string) => Promise<void>
  /** What the thread does with calls, and which of them may be done on this thread while there is time. */
  nearby?: { operations: Operations<Call>; isSmall: (call: Call) => boolean }
}

/** A data directory that is locked, with its database open. */
export interface OpenSqlite<Call extends AnyCall> {
  /** A connection that sees what was committed. */
  db: Db
  databasePath: string
  /** Commits a group in one transaction. One at a time. */
  commit(calls: Call[]): Promise<Outcome[]>
  /** Closes all of it, once; `drain` is awaited before. */
  close(drain: () => Promise<void>): Promise<void>
}

/**
 * Opens the store of a server on one machine: one thread writes, or this one while there is time, and reads have a
 * connection of their own. Fails with `data_dir_in_use`, `data_dir_unusable` or `store_newer`.
 */
export async function openSqlite<Call extends AnyCall>(options: SqliteOptions<Call>): Promise<OpenSqlite<Call>> {
  const closers: (() => void | Promise<void>)[] = []
  let closed: Promise<void> | undefined
  try {
    const { databasePath, unlock } = await openDataDirectory(options.dir, options)
    closers.push(unlock)
    await options.prepare?.(databasePath)
    const thread = await startWriter<Call>(databasePath, options.thread)
    closers.push(() => thread.close())
    const { nearby } = options
    const beside = nearby && (await openDatabase(databasePath, 'write-beside'))
    closers.push(() => beside?.close())
    const commit =
      nearby && beside
        ? nearbyWriter<Call>({ thread, here: hereOn(beside, nearby.operations), isSmall: nearby.isSmall })
        : thread.commit
    const db = await openDatabase(databasePath, 'read')
    closers.push(() => db.close())
    return {
      db,
      databasePath,
      commit,
      close(drain) {
        closed ??= closeAll([...closers, drain])
        return closed
      },
    }
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

function hereOn<Call extends AnyCall>(db: Db, operations: Operations<Call>) {
  return {
    commit: (calls: Call[]) => commitGroup(db, calls, operations),
    forget: () => operations.forget?.(db),
  }
}

/** Backwards, and all of them even when one fails. The writer is last at the database, so it tidies up the log. */
async function closeAll(closers: (() => void | Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const close of closers.toReversed()) {
    try {
      await close()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
