import type { Operations } from '../../kit/sqlite/commit-group.ts'
import type { Db } from '../../kit/sqlite/database.ts'
import { removeCredential, saveCredential } from './credentials.ts'
import { type PackedBatch, type PackedResult, packResult, unpackBatch, unpackSettlements } from './packing.ts'
import { pruneStep } from './prune.ts'
import { forgetQueues, writeQueues } from './queue.ts'
import { setMeta } from './schema.ts'
import { createClient, removeClient, setTokens, touchClients, updateClient } from './write-clients.ts'
import { setChosen } from './write-conversations.ts'
import { buryQueue, settleQueue } from './write-deliveries.ts'
import { ingest } from './write-messages.ts'
import { discardLetter, replayLetter, replayMessage } from './write-replays.ts'
import { beginSend, recordProgress, recoverSends } from './write-sends.ts'

/** Every way to write, by name: what crosses the border to the writer thread is a name and its input. */
const table = {
  createClient,
  updateClient,
  setTokens,
  removeClient,
  touchClients,
  ingest: ingestPacked,
  replayMessage,
  pruneStep,
  settleQueues,
  buryQueue,
  replayLetter,
  discardLetter,
  setChosen,
  beginSend,
  recordProgress,
  recoverSends,
  saveCredential,
  removeCredential,
  setMeta,
}

function ingestPacked(db: Db, packed: PackedBatch): PackedResult {
  const batch = unpackBatch(packed)
  return packResult(ingest(db, batch), batch)
}

function settleQueues(db: Db, packed: readonly number[]): void {
  for (const settlement of unpackSettlements(packed)) settleQueue(db, settlement)
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

/** What the writer does with a call. */
export const operations: Operations<Call> = { perform, finish: writeQueues, forget: forgetQueues }
