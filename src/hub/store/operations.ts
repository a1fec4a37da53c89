import type { Db } from './database.ts'
import { pruneStep } from './prune.ts'
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
  ingest,
  replayMessage,
  pruneStep,
  settleQueue,
  buryQueue,
  replayLetter,
  discardLetter,
  setChosen,
  beginSend,
  recordProgress,
  recoverSends,
}

type Table = typeof table

export type OperationName = keyof Table

type Input<Name extends OperationName> = Parameters<Table[Name]>[1]

export type Output<Name extends OperationName> = ReturnType<Table[Name]>

/** An operation that is to be done. */
export type Call<Name extends OperationName = OperationName> = {
  [Key in Name]: { name: Key; input: Input<Key> }
}[Name]

const operations: { [Name in OperationName]: (db: Db, input: Input<Name>) => Output<Name> } = table

/** Does one operation inside the transaction that is open. */
export function perform<Name extends OperationName>(db: Db, call: Call<Name>): Output<Name> {
  return operations[call.name](db, call.input)
}
