import { AppError } from '../../kit/errors.ts'
import type { Db } from '../../kit/sqlite/database.ts'

/** The id that was made with the database. */
export function readHubId(db: Db): string {
  const hubId = readMeta(db, 'hub_id')
  if (hubId === null) throw new AppError('store_failed', 'The database has no hub_id; restore it from a backup.')
  return hubId
}

/** What is known of the database itself; null when nothing is. */
export function readMeta(db: Db, key: string): string | null {
  return db.get<{ value: string }>('SELECT value FROM meta WHERE key = ?', key)?.value ?? null
}

/** Keeps something about the database itself. */
export function setMeta(db: Db, { key, value }: { key: string; value: string }): void {
  db.run('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value', key, value)
}

// A relayed message costs one row in `messages` and one in `deliveries` with their indexes; all else is per batch or rare.
// `seq` and `total_bytes` of a client's deliveries count on without gaps, so the sizes of a queue are differences of
// columns of its client. Ids are AUTOINCREMENT where one must never be used twice.
const FIRST = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('hub_id', lower(hex(randomblob(4))));

CREATE TABLE clients (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL UNIQUE,
  label TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  stopped INTEGER NOT NULL DEFAULT 0,
  is_default INTEGER NOT NULL DEFAULT 0,
  fallback INTEGER NOT NULL DEFAULT 0,
  passthrough TEXT NOT NULL DEFAULT '[]',
  echoes_cursor INTEGER NOT NULL DEFAULT 0,
  last_seq INTEGER NOT NULL DEFAULT 0,
  sent_seq INTEGER NOT NULL DEFAULT 0,
  settled_seq INTEGER NOT NULL DEFAULT 0,
  last_bytes INTEGER NOT NULL DEFAULT 0,
  settled_bytes INTEGER NOT NULL DEFAULT 0,
  last_wire_id TEXT
) STRICT;
CREATE UNIQUE INDEX clients_default ON clients (is_default) WHERE is_default = 1;

CREATE TABLE tokens (hash TEXT PRIMARY KEY, client_id INTEGER NOT NULL, expires_at INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_client ON tokens (client_id);

CREATE TABLE accounts (
  account TEXT NOT NULL,
  cursor_source TEXT NOT NULL,
  cursor TEXT NOT NULL,
  PRIMARY KEY (account, cursor_source)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account TEXT NOT NULL,
  upstream_id TEXT,
  fingerprint TEXT,
  user_id TEXT NOT NULL,
  user_key TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  duplicate_of INTEGER,
  spec TEXT,
  raw TEXT
) STRICT;
CREATE UNIQUE INDEX messages_by_upstream_id ON messages (account, upstream_id)
  WHERE upstream_id IS NOT NULL AND state <> 'suppressed';
-- Also finds the messages of a user. A suppressed one has no fingerprint.
CREATE UNIQUE INDEX messages_by_fingerprint ON messages (user_key, account, fingerprint);
CREATE INDEX messages_not_routed ON messages (state) WHERE state <> 'routed';
CREATE INDEX messages_with_text ON messages (received_at) WHERE raw IS NOT NULL;

CREATE TABLE deliveries (
  client_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  message_id INTEGER NOT NULL,
  context_token TEXT NOT NULL UNIQUE,
  queued_at INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  total_bytes INTEGER NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  wire_id TEXT NOT NULL,
  outcome TEXT,
  PRIMARY KEY (client_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_message ON deliveries (message_id, client_id);

CREATE TABLE acks (
  client_id INTEGER NOT NULL,
  to_seq INTEGER NOT NULL,
  from_seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (client_id, to_seq, from_seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  account TEXT NOT NULL,
  user_key TEXT NOT NULL,
  user_id TEXT NOT NULL,
  upstream_token TEXT,
  upstream_token_at INTEGER,
  last_inbound_at INTEGER,
  sends_used INTEGER NOT NULL DEFAULT 0,
  chosen_client_id INTEGER,
  PRIMARY KEY (account, user_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_by_chosen ON conversations (chosen_client_id) WHERE chosen_client_id IS NOT NULL;

CREATE TABLE participants (
  client_id INTEGER NOT NULL,
  account TEXT NOT NULL,
  user_key TEXT NOT NULL,
  PRIMARY KEY (client_id, account, user_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE notices (
  account TEXT NOT NULL,
  user_key TEXT NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (account, user_key, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_by_time ON notices (at);

CREATE TABLE sends (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  client_id INTEGER,
  account TEXT NOT NULL,
  user_id TEXT NOT NULL,
  user_key TEXT NOT NULL,
  key TEXT,
  body_hash TEXT NOT NULL,
  text TEXT,
  state TEXT NOT NULL,
  answer TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sends_by_key ON sends (client_id, key, body_hash) WHERE key IS NOT NULL;
CREATE INDEX sends_by_user ON sends (account, user_key, created_at);
CREATE INDEX sends_with_text ON sends (created_at) WHERE text IS NOT NULL;

CREATE TABLE send_parts (
  send_id INTEGER NOT NULL,
  part INTEGER NOT NULL,
  body TEXT NOT NULL,
  state TEXT NOT NULL,
  upstream_id TEXT,
  PRIMARY KEY (send_id, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX send_parts_open ON send_parts (send_id) WHERE state IN ('queued', 'sending');
CREATE INDEX send_parts_by_upstream_id ON send_parts (upstream_id) WHERE upstream_id IS NOT NULL;

CREATE TABLE dead_letters (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  client_id INTEGER,
  client_name TEXT,
  message_id INTEGER NOT NULL,
  reason TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_letters_by_message ON dead_letters (message_id);
`

// An index whose neighbours come from different users costs a page of its own for every message. So the fingerprints
// are ordered by time, which they start with; a user's messages are found along `previous_id`, newest first; and the
// newest stretch of acknowledgements stands with its client, where it grows without a row.
const TIME_ORDERED = `
ALTER TABLE messages ADD COLUMN previous_id INTEGER;
ALTER TABLE conversations ADD COLUMN last_message_id INTEGER;
UPDATE messages SET previous_id = older.id FROM (
  SELECT id AS newer, lag(id) OVER (PARTITION BY account, user_key ORDER BY id) AS id FROM messages
) AS older WHERE older.newer = messages.id AND messages.user_key <> '';
INSERT INTO conversations (account, user_key, user_id, last_message_id)
  SELECT account, user_key, user_id, max(id) FROM messages WHERE user_key <> '' GROUP BY account, user_key
  ON CONFLICT DO UPDATE SET last_message_id = excluded.last_message_id;
DROP INDEX messages_by_fingerprint;
CREATE UNIQUE INDEX messages_by_fingerprint ON messages (fingerprint, user_key, account)
  WHERE fingerprint IS NOT NULL;

ALTER TABLE clients ADD COLUMN ack_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE clients ADD COLUMN ack_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE clients ADD COLUMN ack_kind TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN ack_at INTEGER NOT NULL DEFAULT 0;
`

// Several accounts: their logins, encrypted; and which of them a client is for (NULL: all).
const ACCOUNTS = `
CREATE TABLE credentials (account TEXT PRIMARY KEY, sealed TEXT NOT NULL, saved_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
ALTER TABLE clients ADD COLUMN account TEXT;
`

/** The steps from an empty file to the tables of today. An older one is never edited. */
export const MIGRATIONS: readonly string[] = [FIRST, TIME_ORDERED, ACCOUNTS]
