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

/** Opens the connection that writes, one that writes beside it, or one that only reads what others have committed. */
export async function openDatabase(path: string, mode: 'write' | 'write-beside' | 'read'): Promise<Db> {
  // Who only writes beside another has no time to wait.
  const timeout = mode === 'write-beside' ? 0 : BUSY_TIMEOUT_MS
  const db = await connect(path, { readOnly: mode === 'read', timeout })
  try {
    db.exec(PRAGMAS[mode])
  } catch (error) {
    db.close()
    throw error
  }
  return db
}

// Under load most pages of a log are dirtied again and again: with 64 MB of it (usual: 4) a checkpoint writes each once.
const WRITER_PRAGMAS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 16000;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA cache_size = -65536;
  PRAGMA temp_store = MEMORY;`

const READER_PRAGMAS = `
  PRAGMA cache_size = -16384;
  PRAGMA temp_store = MEMORY;`

const PRAGMAS = {
  write: WRITER_PRAGMAS,
  // The log is written back by the other one.
  'write-beside': `${READER_PRAGMAS} PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;`,
  read: READER_PRAGMAS,
}

/** A bare connection, nothing set. */
export async function connect(path: string, options: DatabaseSyncOptions = {}): Promise<Db> {
  const { DatabaseSync } = await loadDriver()
  const connection = new DatabaseSync(path, { ...options, enableForeignKeyConstraints: false })
  const statements = new Map<string, Prepared>()

  return {
    get(sql, ...values) {
      const { statement, columns } = prepared(sql)
      const found = statement.get(...values)
      return found === undefined ? undefined : toRow(columns, found)
    },
    all(sql, ...values) {
      const { statement, columns } = prepared(sql)
      return statement.all(...values).map((found) => toRow(columns, found))
    },
    run(sql, ...values) {
      const { changes, lastInsertRowid } = prepared(sql).statement.run(...values)
      return { changes, id: Number(lastInsertRowid) }
    },
    exec: (sql) => connection.exec(sql),
    close() {
      statements.clear()
      connection.close()
    },
  }

  function prepared(sql: string): Prepared {
    const known = statements.get(sql)
    if (known !== undefined) return known
    const statement = connection.prepare(sql)
    // Naming the columns here costs half of what the drivers take for it.
    statement.setReturnArrays(true)
    const made = { statement, columns: statement.columns().map(({ name }) => name) }
    statements.set(sql, made)
    return made
  }
}

interface Prepared {
  statement: StatementSyncInstance
  columns: string[]
}

function toRow(columns: string[], values: Value[]) {
  // Untyped by its declaration, and yet an ordinary object.
  const row = Object.create(Object.prototype)
  for (let index = 0; index < columns.length; index += 1) row[columns[index] ?? ''] = values[index]
  return row
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
