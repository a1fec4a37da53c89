// A session is one row; what changes with every step (`state`) stands apart from what never does (`fixed`, which may hold
// a long system prompt), both as JSON: nothing searches in them. `newest` never goes back, so no number is given twice.
const FIRST = `
CREATE TABLE sessions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  fixed TEXT NOT NULL,
  state TEXT NOT NULL,
  unfinished INTEGER NOT NULL DEFAULT 0,
  oldest INTEGER NOT NULL DEFAULT 1,
  newest INTEGER NOT NULL DEFAULT 0,
  log_bytes INTEGER NOT NULL DEFAULT 0,
  messages INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_unfinished ON sessions (number) WHERE unfinished = 1;

CREATE TABLE events (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  session INTEGER NOT NULL,
  number INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  queued INTEGER NOT NULL,
  record TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX runs_by_id ON runs (session, id);
CREATE INDEX runs_queued ON runs (session, number) WHERE queued = 1;

CREATE TABLE receipts (
  key TEXT PRIMARY KEY,
  body_hash TEXT NOT NULL,
  made TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_age ON receipts (at);
`

/** The steps from an empty file to the tables of today. An older one is never edited. */
export const MIGRATIONS: readonly string[] = [FIRST]
