import { openDataDirectory } from './data-directory.ts'
import { openDatabase } from './database.ts'
import { groupWriter } from './group-writer.ts'
import { hubStore } from './hub-store.ts'
import type { HubStore } from './port.ts'
import { startWriter } from './writer.ts'

export interface SqliteStoreOptions {
  /** Made when it is not there. One hub at a time. */
  dir: string
  /** How long a lazy change may wait for a write to go with. */
  lazyMs?: number
}

/**
 * The store of a hub on one machine. Writes go through one thread, gathered into commits; reads have a connection of
 * their own. Fails with `data_dir_in_use`, `data_dir_unusable` or `store_newer`.
 */
export async function openSqliteStore({ dir, lazyMs = 50 }: SqliteStoreOptions): Promise<HubStore> {
  const closers: (() => void | Promise<void>)[] = []
  try {
    const { databasePath, unlock } = await openDataDirectory(dir)
    closers.push(unlock)
    const thread = await startWriter(databasePath)
    closers.push(() => thread.close())
    const db = await openDatabase(databasePath, 'read')
    closers.push(() => db.close())
    const writer = groupWriter({ commit: (calls) => thread.commit(calls), lazyMs })
    closers.push(() => writer.drain())
    return hubStore(db, writer, once(closeAll))
  } catch (error) {
    await closeAll()
    throw error
  }

  /** Backwards, and all of them even when one fails. The writer is last at the database, so it tidies up the log. */
  async function closeAll(): Promise<void> {
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
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => {
    done ??= work()
    return done
  }
}
