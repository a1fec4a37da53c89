import type { Db } from '../../kit/sqlite/database.ts'

/** Notes, in a copy of a log, the last record that is in it. Only copies have the table. */
export function noteApplied(db: Db, { seq }: { seq: number }): void {
  db.run('CREATE TABLE IF NOT EXISTS applied (one INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT')
  db.run('INSERT OR REPLACE INTO applied (one, seq) VALUES (1, ?)', seq)
}

/** The last record that is in a copy. */
export function readApplied(db: Db): number {
  return db.get<{ seq: number }>('SELECT seq FROM applied')?.seq ?? 0
}
