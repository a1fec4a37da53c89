import { type OpenSqlite, openSqlite } from '../../kit/sqlite/open.ts'
import { hubStore } from './hub-store.ts'
import { hubWriter } from './hub-writer.ts'
import { openInbox } from './inbox.ts'
import { type Call, operations } from './operations.ts'
import type { HubStore } from './port.ts'

export interface SqliteStoreOptions {
  /** Made when it is not there. One hub at a time. */
  dir: string
  /** How long a lazy change may wait for a write to go with. */
  lazyMs?: number
}

/** The module of the thread that writes. */
export const WRITER_THREAD = import.meta.url.endsWith('.ts')
  ? new URL('./writer-thread.ts', import.meta.url)
  : new URL('./writer-thread.js', import.meta.url)

/**
 * The store of a hub on one machine. Writes are gathered into commits, made by a thread of their own, or by this one while
 * there is time; reads have a connection of their own. Fails with `data_dir_in_use`, `data_dir_unusable` or `store_newer`.
 */
export async function openSqliteStore({ dir, lazyMs = 50 }: SqliteStoreOptions): Promise<HubStore> {
  const opened = await openSqlite<Call>({
    dir,
    database: 'hub.db',
    service: 'hub',
    thread: WRITER_THREAD,
    nearby: { operations, isSmall },
  })
  try {
    const inbox = openInbox(dir)
    return sqliteStoreOn({ ...opened, close: (drain) => opened.close(drain).finally(inbox.close) }, lazyMs, inbox)
  } catch (error) {
    await opened.close(async () => {})
    throw error
  }
}

const FEW_MESSAGES = 2
/** Some ten settlements. */
const FEW_NUMBERS = 100
const FEW_CLIENTS = 20

/** A message or two that come alone, and what is lazy with them. */
function isSmall({ name, input }: Call): boolean {
  if (name === 'ingest') return input.rows.length <= FEW_MESSAGES
  if (name === 'settleQueues') return input.length <= FEW_NUMBERS
  return name === 'touchClients' && input.length <= FEW_CLIENTS
}

/** A store on a database that is open. */
export function sqliteStoreOn(opened: OpenSqlite<Call>, lazyMs = 50, inbox: HubStore['inbox'] = null): HubStore {
  const writer = hubWriter({ commit: opened.commit, lazyMs })
  return hubStore(opened.db, writer, () => opened.close(writer.drain), inbox)
}
