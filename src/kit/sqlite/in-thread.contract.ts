import { join } from 'node:path'
import { type AnyCall, commitGroup, type Operations } from './commit-group.ts'
import { openDatabase } from './database.ts'
import { migrate } from './migrate.ts'
import type { OpenSqlite } from './open.ts'

/**
 * The same database files with the same two connections, written in the calling thread: for contracts of a hundred tests,
 * where a thread for each would take most of the time. What the thread itself promises has tests of its own.
 */
export async function openInThread<Call extends AnyCall>(
  dir: string,
  migrations: readonly string[],
  operations: Operations<Call>,
): Promise<OpenSqlite<Call>> {
  const databasePath = join(dir, 'contract.db')
  const writer = await openDatabase(databasePath, 'write')
  migrate(writer, databasePath, migrations)
  const db = await openDatabase(databasePath, 'read')
  let closed: Promise<void> | undefined
  return {
    db,
    databasePath,
    commit: async (calls) => commitGroup(writer, calls, operations),
    close(drain) {
      closed ??= drain().finally(() => {
        db.close()
        writer.close()
      })
      return closed
    },
  }
}
