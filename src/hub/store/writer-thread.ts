import { parentPort, workerData } from 'node:worker_threads'
import { commitGroup, packError } from './commit-group.ts'
import { openDatabase } from './database.ts'
import { migrate } from './schema.ts'
import type { FromWriter, ToWriter } from './writer.ts'

// The thread that writes: an fsync stops nothing but this thread.
const { path }: { path: string } = workerData

try {
  const db = await openDatabase(path, 'write')
  try {
    migrate(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  parentPort?.on('message', (message: ToWriter) => {
    if (message === 'close') {
      // Closing should do this, but the driver of Node 20 leaves a connection half open as long as it has statements.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
      parentPort?.close()
      return
    }
    try {
      answer({ ok: true, outcomes: commitGroup(db, message) })
    } catch (error) {
      answer({ ok: false, error: packError(error, 'commit') })
    }
  })
  answer({ ok: true, outcomes: [] })
} catch (error) {
  answer({ ok: false, error: packError(error, 'open its database') })
}

function answer(message: FromWriter): void {
  parentPort?.postMessage(message)
}
