import { AppError, errorText } from '../../kit/errors.ts'
import type { Db } from './database.ts'
import { type Call, perform } from './operations.ts'
import { forgetQueues } from './queue.ts'

/** How one operation of a group went; plain data, so that it can cross the border of a thread. */
export type Outcome = { ok: true; output: unknown } | { ok: false; error: PackedError }

export interface PackedError {
  code: string
  message: string
  details?: Record<string, unknown> | undefined
}

/**
 * Does a group of operations in one transaction. One that fails leaves no trace and does not touch the others. Throws
 * `store_failed` when the transaction itself fails: then nothing was done, and the connection is ready for the next group.
 */
export function commitGroup(db: Db, calls: Call[]): Outcome[] {
  try {
    db.run('BEGIN IMMEDIATE')
    const outcomes = calls.map((call) => attempt(db, call))
    db.run('COMMIT')
    return outcomes
  } catch (error) {
    forgetQueues(db)
    try {
      db.run('ROLLBACK')
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
    throw unpackError(packError(error, 'commit'))
  }
}

/** An error as plain data. What is no `AppError` becomes `store_failed`. */
export function packError(error: unknown, doing: string): PackedError {
  if (error instanceof AppError) return { code: error.code, message: error.message, details: error.details }
  const message = `The store could not ${doing} (${errorText(error)}). Check the disk of the data directory, then try again.`
  return { code: 'store_failed', message }
}

export function unpackError({ code, message, details }: PackedError): AppError {
  return new AppError(code, message, details === undefined ? {} : { details })
}

function attempt(db: Db, call: Call): Outcome {
  db.run('SAVEPOINT operation')
  try {
    const output = perform(db, call)
    db.run('RELEASE operation')
    return { ok: true, output }
  } catch (error) {
    forgetQueues(db)
    // These throw when SQLite has ended the transaction; then the whole group has failed.
    db.run('ROLLBACK TO operation')
    db.run('RELEASE operation')
    return { ok: false, error: packError(error, call.name) }
  }
}
