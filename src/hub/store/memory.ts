import { commitGroup } from '../../kit/sqlite/commit-group.ts'
import { connect } from '../../kit/sqlite/database.ts'
import { migrate } from '../../kit/sqlite/migrate.ts'
import { hubStore } from './hub-store.ts'
import { hubWriter } from './hub-writer.ts'
import { operations } from './operations.ts'
import type { HubStore } from './port.ts'
import { MIGRATIONS } from './schema.ts'

/** A store for tests: the same operations on a database in memory, in the calling thread. Nothing survives `close`. */
export async function openMemoryStore({ lazyMs = 50 }: { lazyMs?: number } = {}): Promise<HubStore> {
  const path = ':memory:'
  const db = await connect(path)
  migrate(db, path, MIGRATIONS)
  const writer = hubWriter({ commit: async (calls) => commitGroup(db, calls, operations), lazyMs })
  let closed: Promise<void> | undefined
  return hubStore(db, writer, () => {
    closed ??= writer.drain().finally(() => db.close())
    return closed
  })
}
