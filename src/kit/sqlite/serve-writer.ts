import { parentPort, workerData } from 'node:worker_threads'
import { type AnyCall, commitGroup, type Operations, packError } from './commit-group.ts'
import { type Db, openDatabase } from './database.ts'
import { migrate } from './migrate.ts'
import type { FromWriter, ToWriter } from './writer.ts'

/** The body of the thread that writes: an fsync stops nothing but this thread. `startWriter` speaks with it. */
export async function serveWriter<Call extends AnyCall>(
  operations: Operations<Call>,
  migrations: readonly string[],
): Promise<void> {
  const { path }: { path: string } = workerData
  try {
    const db = await openDatabase(path, 'write')
    try {
      migrate(db, path, migrations)
    } catch (error) {
      db.close()
      throw error
    }
    parentPort?.on('message', (message: ToWriter<Call>) => {
      if (message === 'close') {
        // Closing should do this, but the driver of Node 20 leaves a connection half open as long as it has statements.
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
        db.close()
        parentPort?.close()
        return
      }
      if (message === 'forget') {
        operations.forget?.(db)
        return
      }
      if (message === 'tidy') {
        tidy(db)
        return
      }
      try {
        answer({ ok: true, outcomes: commitGroup(db, message, operations) })
      } catch (error) {
        answer({ ok: false, error: packError(error, 'commit') })
      }
    })
    answer({ ok: true, outcomes: [] })
  } catch (error) {
    answer({ ok: false, error: packError(error, 'open its database') })
  }
}

/** What is not written back this time is at the next. */
function tidy(db: Db): void {
  try {
    db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  } catch {
    // The log only grows for longer; whether the disk works the next commit tells.
  }
}

function answer(message: FromWriter): void {
  parentPort?.postMessage(message)
}
