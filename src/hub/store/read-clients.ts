import type { Db } from '../../kit/sqlite/database.ts'
import type { Client, ClientToken, Conversation } from '../model.ts'
import { userKeyOf } from './user-key.ts'

/** Every client, oldest first, and every token. */
export function loadClients(db: Db): { clients: Client[]; tokens: ClientToken[] } {
  return {
    clients: db.all<ClientRow>(`${SELECT_CLIENT} ORDER BY id`).map(toClient),
    tokens: db.all<ClientToken>('SELECT hash, client_id AS clientId, expires_at AS expiresAt FROM tokens'),
  }
}

export function readClient(db: Db, id: number): Client | undefined {
  const row = db.get<ClientRow>(`${SELECT_CLIENT} WHERE id = ?`, id)
  return row && toClient(row)
}

/** What is known of a user, whose id counts in any case. */
export function readConversation(db: Db, account: string, userId: string): Conversation | null {
  const row = db.get<Conversation>(`${CONVERSATIONS} WHERE account = ? AND user_key = ?`, account, userKeyOf(userId))
  return row ?? null
}

/** Conversations in the order of account and user. */
export function listConversations(
  db: Db,
  { userId, after, limit }: { userId?: string; after?: { account: string; userId: string }; limit: number },
): Conversation[] {
  const userKey = userId === undefined ? null : userKeyOf(userId)
  return db.all<Conversation>(
    `${CONVERSATIONS} WHERE (account, user_key) > (?, ?) AND (? IS NULL OR user_key = ?)
     ORDER BY account, user_key LIMIT ?`,
    after?.account ?? '',
    after === undefined ? '' : userKeyOf(after.userId),
    userKey,
    userKey,
    limit,
  )
}

const CONVERSATIONS = `SELECT account, user_id AS userId, upstream_token AS upstreamToken,
    upstream_token_at AS upstreamTokenAt, last_inbound_at AS lastInboundAt, sends_used AS sendsUsed,
    chosen_client_id AS chosenClientId
  FROM conversations`

/** Whom these users chose, by `userKeyOf` their ids. */
export function readChosen(db: Db, account: string, userIds: Iterable<string>): Map<string, number> {
  const keys = new Set(Array.from(userIds, userKeyOf))
  const [only] = keys
  // By far the most common case, and a list costs several times as much.
  if (only !== undefined && keys.size === 1) {
    const sql = 'SELECT chosen_client_id AS clientId FROM conversations WHERE account = ? AND user_key = ?'
    const { clientId } = db.get<{ clientId: number | null }>(sql, account, only) ?? { clientId: null }
    return new Map(clientId === null ? [] : [[only, clientId]])
  }
  const rows = db.all<{ userKey: string; clientId: number }>(
    `SELECT c.user_key AS userKey, c.chosen_client_id AS clientId
     FROM json_each(?) AS wanted CROSS JOIN conversations c ON c.account = ? AND c.user_key = wanted.value
     WHERE c.chosen_client_id IS NOT NULL`,
    JSON.stringify([...keys]),
    account,
  )
  return new Map(rows.map(({ userKey, clientId }) => [userKey, clientId]))
}

/** Whether a message of this user ever stood in the client's queue. */
export function hasSeen(db: Db, clientId: number, account: string, userId: string): boolean {
  const sql = 'SELECT 1 FROM participants WHERE client_id = ? AND account = ? AND user_key = ?'
  return db.get(sql, clientId, account, userKeyOf(userId)) !== undefined
}

interface ClientRow extends Omit<Client, 'stopped' | 'isDefault' | 'fallback' | 'passthrough' | 'echoesCursor'> {
  stopped: number
  isDefault: number
  fallback: number
  passthrough: string
  echoesCursor: number
}

const SELECT_CLIENT = `
  SELECT id, name, label, created_at AS createdAt, last_seen AS lastSeen, stopped, is_default AS isDefault, fallback,
    passthrough, echoes_cursor AS echoesCursor, account
  FROM clients`

function toClient(row: ClientRow): Client {
  return {
    ...row,
    stopped: row.stopped === 1,
    isDefault: row.isDefault === 1,
    fallback: row.fallback === 1,
    passthrough: JSON.parse(row.passthrough),
    echoesCursor: row.echoesCursor === 1,
  }
}
