import { commitGroup } from './commit-group.ts'
import { connect } from './database.ts'
import { groupWriter } from './group-writer.ts'
import { hubStore } from './hub-store.ts'
import type { HubStore } from './port.ts'
import { migrate } from './schema.ts'

/** A store for tests: the same operations on a database in memory, in the calling thread. Nothing survives `close`. */
export async function openMemoryStore({ lazyMs = 50 }: { lazyMs?: number } = {}): Promise<HubStore> {
  const path = ':memory:'
  const db = await connect(path)
  migrate(db, path)
  const writer = groupWriter({ commit: async (calls) => commitGroup(db, calls), lazyMs })
  let closed: Promise<void> | undefined
  return hubStore(db, writer, () => {
    closed ??= writer.drain().finally(() => db.close())
    return closed
  })
}
