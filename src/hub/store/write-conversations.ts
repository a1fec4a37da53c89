import type { Db } from '../../kit/sqlite/database.ts'
import type { IngestEntry } from '../model.ts'
import { userKeyOf } from './user-key.ts'

/** Gathers what a batch says of its users, so that each conversation is written once. */
export function conversationUpdates(account: string, now: number) {
  const updates = new Map<string, { userId: string; token: string | null; choose?: number | null }>()

  return {
    add({ userId, upstreamToken, choose }: IngestEntry): void {
      // What was quarantined may have no user.
      if (userId === '') return
      const key = userKeyOf(userId)
      const known = updates.get(key)
      const token = upstreamToken ?? known?.token ?? null
      updates.set(key, { ...known, userId, token, ...(choose !== undefined && { choose }) })
    },
    write(db: Db): void {
      for (const [userKey, { userId, token, choose }] of updates) {
        heard(db, { account, userKey, userId, token, now })
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

interface Heard {
  account: string
  userKey: string
  userId: string
  token: string | null
  now: number
}

// A token that comes again with a new message is as good as new: the upstream counts sends per message of the user.
function heard(db: Db, { account, userKey, userId, token, now }: Heard): void {
  db.run(
    `INSERT INTO conversations (account, user_key, user_id, upstream_token, upstream_token_at, last_inbound_at)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET user_id = excluded.user_id, last_inbound_at = excluded.last_inbound_at,
       upstream_token = coalesce(excluded.upstream_token, upstream_token),
       upstream_token_at = coalesce(excluded.upstream_token_at, upstream_token_at),
       sends_used = CASE WHEN excluded.upstream_token IS NULL THEN sends_used ELSE 0 END`,
    account,
    userKey,
    userId,
    token,
    token === null ? null : now,
    now,
  )
}
