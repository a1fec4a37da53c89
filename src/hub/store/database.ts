import { versions } from 'node:process'
import type { DatabaseSyncInstance, DatabaseSyncOptions, StatementSyncInstance } from '@photostructure/sqlite'

/** What a statement takes. */
export type Value = string | number | null

/**
 * A connection whose prepared statements are kept by their text. `Row` is believed, not checked: every statement is our
 * own and every table is STRICT.
 */
export interface Db {
  get<Row>(sql: string, ...values: Value[]): Row | undefined
  all<Row>(sql: string, ...values: Value[]): Row[]
  run(sql: string, ...values: Value[]): { changes: number; id: number }
  /** Runs a text of several statements, once. */
  exec(sql: string): void
  close(): void
}

// The writer has the file to itself; only a tool from outside (a backup, a shell) can make it wait.
const BUSY_TIMEOUT_MS = 5_000

/** Opens the connection that writes, or one that only reads what others have committed. */
export async function openDatabase(path: string, mode: 'write' | 'read'): Promise<Db> {
  const db = await connect(path, { readOnly: mode === 'read', timeout: BUSY_TIMEOUT_MS })
  try {
    db.exec(mode === 'write' ? WRITER_PRAGMAS : READER_PRAGMAS)
  } catch (error) {
    db.close()
    throw error
  }
  return db
}

// A checkpoint costs two fsyncs: 16 MB of log between them instead of 4.
const WRITER_PRAGMAS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA cache_size = -65536;
  PRAGMA temp_store = MEMORY;`

const READER_PRAGMAS = `
  PRAGMA cache_size = -16384;
  PRAGMA temp_store = MEMORY;`

/** A bare connection, nothing set. */
export async function connect(path: string, options: DatabaseSyncOptions = {}): Promise<Db> {
  const { DatabaseSync } = await loadDriver()
  const connection = new DatabaseSync(path, { ...options, enableForeignKeyConstraints: false })
  const statements = new Map<string, StatementSyncInstance>()

  return {
    get: (sql, ...values) => prepared(sql).get(...values),
    all: (sql, ...values) => prepared(sql).all(...values),
    run(sql, ...values) {
      const { changes, lastInsertRowid } = prepared(sql).run(...values)
      return { changes, id: Number(lastInsertRowid) }
    },
    exec: (sql) => connection.exec(sql),
    close() {
      statements.clear()
      connection.close()
    },
  }

  function prepared(sql: string): StatementSyncInstance {
    const known = statements.get(sql)
    if (known !== undefined) return known
    const statement = connection.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
}

interface Driver {
  DatabaseSync: new (path: string, options: DatabaseSyncOptions) => DatabaseSyncInstance
}

/** Node's own SQLite where it is finished, else a package with the same API. */
async function loadDriver(): Promise<Driver> {
  // Named by a variable because the types of Node 20 do not know the module.
  const builtIn: string = 'node:sqlite'
  return Number.parseInt(versions.node, 10) >= 24 ? import(builtIn) : import('@photostructure/sqlite')
}
