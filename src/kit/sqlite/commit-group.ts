import { AppError, errorText } from '../errors.ts'
import type { Db } from './database.ts'

/** An operation that is to be done: plain data, so that it can cross the border of a thread. */
export interface AnyCall {
  name: string
  input: unknown
}

/** Every way to write that a store has. */
export interface Operations<Call extends AnyCall> {
  /** Does one operation inside the transaction that is open. May be called again after a rollback. */
  perform(db: Db, call: Call): unknown
  /** Writes what operations only noted, at the end of each transaction, or of each operation that may be undone alone. */
  finish?(db: Db): void
  /** Told before something is rolled back: what was kept in memory of the tables may be wrong. */
  forget?(db: Db): void
}

/** How one operation of a group went; plain data, so that it can cross the border of a thread. */
export type Outcome = { ok: true; output: unknown } | { ok: false; error: PackedError }

export interface PackedError {
  code: string
  message: string
  details?: Record<string, unknown> | undefined
  retryAfterMs?: number | undefined
}

/**
 * Does a group of operations in one transaction. One that fails leaves no trace and does not touch the others. Throws
 * `store_failed` when the transaction itself fails: then nothing was done, and the connection is ready for the next group.
 */
export function commitGroup<Call extends AnyCall>(db: Db, calls: Call[], operations: Operations<Call>): Outcome[] {
  try {
    // A savepoint costs a copy of every page that is changed under it, and nearly every group goes through without.
    return transaction(db, operations, () =>
      calls.map((call) => ({ ok: true, output: operations.perform(db, call) }) as const),
    )
  } catch {
    // Nothing of it was done. Once more, so that only what fails is left out.
    try {
      return transaction(db, operations, () => calls.map((call) => attempt(db, call, operations)))
    } catch (error) {
      throw unpackError(packError(error, 'commit'))
    }
  }
}

function transaction<T>(db: Db, operations: Omit<Operations<never>, 'perform'>, work: () => T): T {
  try {
    db.run('BEGIN IMMEDIATE')
    const result = work()
    operations.finish?.(db)
    db.run('COMMIT')
    return result
  } catch (error) {
    operations.forget?.(db)
    try {
      db.run('ROLLBACK')
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
    throw error
  }
}

/** An error as plain data. What is no `AppError` becomes `store_failed`. */
export function packError(error: unknown, doing: string): PackedError {
  if (error instanceof AppError) {
    const { code, message, details, retryAfterMs } = error
    return { code, message, details, retryAfterMs }
  }
  const message = `The store could not ${doing} (${errorText(error)}). Check the disk of the data directory, then try again.`
  return { code: 'store_failed', message }
}

export function unpackError({ code, message, details, retryAfterMs }: PackedError): AppError {
  return new AppError(code, message, {
    ...(details === undefined ? {} : { details }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

function attempt<Call extends AnyCall>(db: Db, call: Call, operations: Operations<Call>): Outcome {
  db.run('SAVEPOINT operation')
  try {
    const output = operations.perform(db, call)
    operations.finish?.(db)
    db.run('RELEASE operation')
    return { ok: true, output }
  } catch (error) {
    operations.forget?.(db)
    // These throw when SQLite has ended the transaction; then the whole group has failed.
    db.run('ROLLBACK TO operation')
    db.run('RELEASE operation')
    return { ok: false, error: packError(error, call.name) }
  }
}
