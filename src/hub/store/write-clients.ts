import { AppError } from '../../kit/errors.ts'
import type { Db } from '../../kit/sqlite/database.ts'
import type { Client, ClientToken } from '../model.ts'
import type { ClientPatch } from './port.ts'
import { buryFront, forgetQueue, loadQueue } from './queue.ts'
import { readClient } from './read-clients.ts'

export interface NewClient {
  name: string
  label: string
  fallback: boolean
  account?: string | null
  tokenHash: string
  now: number
}

/** Keeps a client and its first token; `name_taken` when the name is another's in any case. */
export function createClient(db: Db, client: NewClient): Client {
  const { changes, id } = db.run(
    `INSERT INTO clients (name, name_key, label, created_at, last_seen, fallback, account) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name_key) DO NOTHING`,
    client.name,
    client.name.toLowerCase(),
    client.label,
    client.now,
    client.now,
    Number(client.fallback),
    client.account ?? null,
  )
  if (changes === 0) {
    throw new AppError('name_taken', `A client named "${client.name}" is registered already; choose another name.`)
  }
  insertToken(db, { hash: client.tokenHash, clientId: id, expiresAt: null })
  return existing(db, id)
}

/** Changes what is given. The mark of the default is taken from whoever had it. */
export function updateClient(db: Db, { id, patch }: { id: number; patch: ClientPatch }): Client {
  const client = existing(db, id)
  if (patch.isDefault) db.run('UPDATE clients SET is_default = 0 WHERE is_default = 1')
  db.run(
    'UPDATE clients SET label = ?, is_default = ?, fallback = ?, passthrough = ?, account = ? WHERE id = ?',
    patch.label ?? client.label,
    Number(patch.isDefault ?? client.isDefault),
    Number(patch.fallback ?? client.fallback),
    JSON.stringify(patch.passthrough ?? client.passthrough),
    patch.account === undefined ? client.account : patch.account,
    id,
  )
  return existing(db, id)
}

export function setTokens(db: Db, { id, tokens }: { id: number; tokens: ClientToken[] }): void {
  existing(db, id)
  deleteTokens(db, id)
  for (const token of tokens) insertToken(db, { ...token, clientId: id })
}

/** Forgets a client; what waited for it becomes dead letters. Returns how many. */
export function removeClient(db: Db, { id, now }: { id: number; now: number }): number {
  const queue = loadQueue(db, id)
  if (queue === undefined) return 0
  const { count } = buryFront(db, queue, queue.lastSeq, { reason: 'client_removed', now })
  deleteTokens(db, id)
  db.run('UPDATE conversations SET chosen_client_id = NULL WHERE chosen_client_id = ?', id)
  db.run('DELETE FROM participants WHERE client_id = ?', id)
  db.run('DELETE FROM acks WHERE client_id = ?', id)
  // Its deliveries go with their messages: reads join them with their client, and an id is never used twice.
  db.run('DELETE FROM clients WHERE id = ?', id)
  forgetQueue(db, queue)
  return count
}

export interface Seen {
  id: number
  lastSeen: number
  stopped: boolean
}

/** Remembers when clients were last seen; that time never goes back. */
export function touchClients(db: Db, seen: Seen[]): void {
  for (const { id, lastSeen, stopped } of seen) {
    db.run('UPDATE clients SET last_seen = max(last_seen, ?), stopped = ? WHERE id = ?', lastSeen, Number(stopped), id)
  }
}

/** The failure of everything that needs a client that is not there. */
export function clientNotFound(): AppError {
  return new AppError('not_found', 'There is no such client; GET /hub/clients lists them.')
}

function existing(db: Db, id: number): Client {
  const client = readClient(db, id)
  if (client === undefined) throw clientNotFound()
  return client
}

function insertToken(db: Db, token: ClientToken): void {
  db.run(
    'INSERT INTO tokens (hash, client_id, expires_at) VALUES (?, ?, ?)',
    token.hash,
    token.clientId,
    token.expiresAt,
  )
}

function deleteTokens(db: Db, clientId: number): void {
  db.run('DELETE FROM tokens WHERE client_id = ?', clientId)
}
