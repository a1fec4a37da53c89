import type { Db } from '../../kit/sqlite/database.ts'
import { readCredentials } from './credentials.ts'
import type { HubWriter } from './hub-writer.ts'
import { packBatch, unpackResult } from './packing.ts'
import type { HubStore } from './port.ts'
import type { PruneProgress } from './prune.ts'
import { hasSeen, listConversations, loadClients, readChosen, readConversation } from './read-clients.ts'
import { readDeliveries, readPositions, resolveContext } from './read-deliveries.ts'
import { countDeadLetters, listDeadLetters, listMessages, readCursor } from './read-messages.ts'
import { findAuthor, findSend, listSends } from './read-sends.ts'
import { readHubId } from './schema.ts'

const PRUNE_STEP_ROWS = 500

/** The store's ports over a connection to read from and a writer. `close` closes both. */
export function hubStore(
  db: Db,
  writer: HubWriter,
  close: () => Promise<void>,
  inbox: HubStore['inbox'] = null,
): HubStore {
  return {
    inbox,
    hubId: readHubId(db),
    close,
    clients: {
      load: async () => loadClients(db),
      create: (client) => writer.run({ name: 'createClient', input: client }),
      update: (id, patch) => writer.run({ name: 'updateClient', input: { id, patch } }),
      setTokens: (id, tokens) => writer.run({ name: 'setTokens', input: { id, tokens } }),
      remove: (id, now) => writer.run({ name: 'removeClient', input: { id, now } }),
      touch: (seen) => writer.touch(seen),
    },
    messages: {
      ingest: async (batch) => unpackResult(await writer.run({ name: 'ingest', input: packBatch(batch) }), batch),
      cursor: async (account, source) => readCursor(db, account, source),
      list: async (filter) => listMessages(db, filter),
      replay: (messageId, clientId, now) => writer.run({ name: 'replayMessage', input: { messageId, clientId, now } }),
      prune: (now) => prune(writer, now),
    },
    deliveries: {
      positions: async () => readPositions(db),
      read: async (clientId, afterSeq, limit, since) => readDeliveries(db, clientId, afterSeq, limit, since),
      settle: (settlement) => writer.settle(settlement),
      flush: (clientId) => writer.flush(clientId),
      bury: (clientId, throughSeq, reason, now, notice) =>
        writer.run({ name: 'buryQueue', input: { clientId, throughSeq, reason, now, notice } }),
      resolveContext: async (contextToken) => resolveContext(db, contextToken),
    },
    deadLetters: {
      list: async (filter) => listDeadLetters(db, filter),
      count: async () => countDeadLetters(db),
      replay: (id, clientId, now, contextToken) =>
        writer.run({ name: 'replayLetter', input: { id, clientId, now, contextToken } }),
      discard: (id) => writer.run({ name: 'discardLetter', input: { id } }),
    },
    conversations: {
      get: async (account, userId) => readConversation(db, account, userId),
      chosen: async (account, userIds) => readChosen(db, account, userIds),
      hasSeen: async (clientId, account, userId) => hasSeen(db, clientId, account, userId),
      list: async (filter) => listConversations(db, filter),
      choose: (account, userId, clientId) => writer.run({ name: 'setChosen', input: { account, userId, clientId } }),
    },
    sends: {
      begin: (send) => writer.run({ name: 'beginSend', input: send }),
      find: async (clientId, key, bodyHash, since) => findSend(db, clientId, key, bodyHash, since),
      progress: (update) => writer.run({ name: 'recordProgress', input: update }),
      recover: (now) => writer.run({ name: 'recoverSends', input: { now } }),
      list: async (filter) => listSends(db, filter),
      author: async (account, userId, quote, now) => findAuthor(db, account, userId, quote, now),
    },
    credentials: {
      load: async () => readCredentials(db),
      save: (account, sealed, now) => writer.run({ name: 'saveCredential', input: { account, sealed, now } }),
      remove: (account) => writer.run({ name: 'removeCredential', input: { account } }),
    },
  }
}

/** One short write after another, so that messages go on between them. */
async function prune(writer: HubWriter, now: number): Promise<number> {
  let gone = 0
  let after: PruneProgress | null = { wipedAt: 0, wipedId: 0, deletedId: 0 }
  while (after !== null) {
    const step: { gone: number; next: PruneProgress | null } = await writer.run({
      name: 'pruneStep',
      input: { now, limit: PRUNE_STEP_ROWS, after },
    })
    gone += step.gone
    after = step.next
  }
  return gone
}
