import { AppError } from '../errors.ts'
import type { Db } from './database.ts'

/**
 * Brings a database to the newest version, one transaction a step; `migrations` are the steps, oldest first. Fails with
 * `store_newer` when it is ahead of us.
 */
export function migrate(db: Db, path: string, migrations: readonly string[]): void {
  const version = userVersion(db)
  if (version > migrations.length) {
    throw new AppError(
      'store_newer',
      `${path} was written by a newer switchboard (its schema is ${version}, this one knows ${migrations.length}). ` +
        'Start that newer version, or choose another directory with --data-dir.',
    )
  }
  for (const [index, sql] of migrations.entries()) {
    if (index < version) continue
    db.exec('BEGIN IMMEDIATE')
    try {
      db.exec(sql)
      db.exec(`PRAGMA user_version = ${index + 1}`)
      db.exec('COMMIT')
    } catch (error) {
      db.exec('ROLLBACK')
      throw error
    }
  }
}

/** The version of the tables; 0 in an empty file. */
export function userVersion(db: Db): number {
  return db.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0
}

/** A write that changes nothing and yet has to reach the disk: the version again. */
export function rewriteVersion(db: Db): void {
  db.exec(`PRAGMA user_version = ${userVersion(db)}`)
}
