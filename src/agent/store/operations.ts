import type { Operations } from '../../kit/sqlite/commit-group.ts'
import type { Db } from '../../kit/sqlite/database.ts'
import { rewriteVersion } from '../../kit/sqlite/migrate.ts'
import { noteApplied } from './applied.ts'
import { admitRun, appendEntry, nextRun, settlePlan } from './write-runs.ts'
import { createSession, removeSession, updateSession } from './write-sessions.ts'

/** Every way to write, by name: what crosses the border to the writer thread is a name and its input. */
const table = {
  createSession,
  updateSession,
  removeSession,
  appendEntry,
  admitRun,
  nextRun,
  settlePlan,
  noteApplied,
  tryWrite,
}

type Table = typeof table

type OperationName = keyof Table

type Input<Name extends OperationName> = Parameters<Table[Name]>[1]

/** An operation that is to be done. */
export type Call<Name extends OperationName = OperationName> = {
  [Key in Name]: { name: Key; input: Input<Key> }
}[Name]

/** What each operation answers. */
export type Outputs = { [Name in OperationName]: ReturnType<Table[Name]> }

const byName: { [Name in OperationName]: (db: Db, input: Input<Name>) => Outputs[Name] } = table

function perform<Name extends OperationName>(db: Db, call: Call<Name>): Outputs[Name] {
  return byName[call.name](db, call.input)
}

/** Shows whether anything can be written. */
function tryWrite(db: Db, _input: null): void {
  rewriteVersion(db)
}

/** What the writer does with a call. */
export const operations: Operations<Call> = { perform }
