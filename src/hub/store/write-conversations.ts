import type { Db } from '../../kit/sqlite/database.ts'
import type { IngestEntry } from '../model.ts'
import { userKeyOf } from './user-key.ts'

/** What a batch says of one user. */
interface Update {
  userId: string
  /** The newest of the user's messages, a suppressed one too. */
  lastMessageId: number
  /** Something of it counts: it was not all suppressed. */
  heard: boolean
  token: string | null
  choose: number | null | undefined
}

/** Gathers what a batch says of its users, so that each conversation is written once. */
export function conversationUpdates(account: string, now: number) {
  const updates = new Map<string, Update>()

  return {
    /** The user's last message in this batch; null when this is the first one. */
    lastMessageId: (userKey: string): number | null => updates.get(userKey)?.lastMessageId ?? null,
    add({ userId, upstreamToken, choose }: IngestEntry, userKey: string, messageId: number, suppressed: boolean): void {
      // What was quarantined may have no user.
      if (userKey === '') return
      const known = updates.get(userKey)
      const update = known ?? { userId, lastMessageId: messageId, heard: false, token: null, choose: undefined }
      if (known === undefined) updates.set(userKey, update)
      update.lastMessageId = messageId
      if (suppressed) return
      update.heard = true
      update.userId = userId
      update.token = upstreamToken ?? update.token
      if (choose !== undefined) update.choose = choose
    },
    write(db: Db): void {
      for (const [userKey, { userId, lastMessageId, heard, token, choose }] of updates) {
        if (heard) setHeard(db, { account, userKey, userId, lastMessageId, token, now })
        else setLastMessage(db, { account, userKey, userId, lastMessageId })
        if (choose !== undefined) setChosen(db, { account, userId, clientId: choose })
      }
    },
  }
}

export interface Choice {
  account: string
  userId: string
  clientId: number | null
}

/** Remembers whom a user chose. A client that has gone is nobody. */
export function setChosen(db: Db, { account, userId, clientId }: Choice): void {
  db.run(
    `INSERT INTO conversations (account, user_key, user_id, chosen_client_id)
     VALUES (?, ?, ?, (SELECT id FROM clients WHERE id = ?))
     ON CONFLICT DO UPDATE SET chosen_client_id = excluded.chosen_client_id`,
    account,
    userKeyOf(userId),
    userId,
    clientId,
  )
}

interface LastMessage {
  account: string
  userKey: string
  userId: string
  lastMessageId: number
}

interface Heard extends LastMessage {
  token: string | null
  now: number
}

function setLastMessage(db: Db, { account, userKey, userId, lastMessageId }: LastMessage): void {
  db.run(
    `INSERT INTO conversations (account, user_key, user_id, last_message_id) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET last_message_id = excluded.last_message_id`,
    account,
    userKey,
    userId,
    lastMessageId,
  )
}

// A token that comes again with a new message is as good as new: the upstream counts sends per message of the user.
function setHeard(db: Db, { account, userKey, userId, lastMessageId, token, now }: Heard): void {
  db.run(
    `INSERT INTO conversations
       (account, user_key, user_id, upstream_token, upstream_token_at, last_inbound_at, last_message_id)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET user_id = excluded.user_id, last_inbound_at = excluded.last_inbound_at,
       last_message_id = excluded.last_message_id,
       upstream_token = coalesce(excluded.upstream_token, upstream_token),
       upstream_token_at = coalesce(excluded.upstream_token_at, upstream_token_at),
       sends_used = CASE WHEN excluded.upstream_token IS NULL THEN sends_used ELSE 0 END`,
    account,
    userKey,
    userId,
    token,
    token === null ? null : now,
    now,
    lastMessageId,
  )
}
