import type { Db } from '../../kit/sqlite/database.ts'

/** Every sealed login. */
export function readCredentials(db: Db): { account: string; sealed: string }[] {
  return db.all('SELECT account, sealed FROM credentials ORDER BY account')
}

/** Keeps the login of an account in place of the one before. */
export function saveCredential(
  db: Db,
  { account, sealed, now }: { account: string; sealed: string; now: number },
): void {
  db.run(
    `INSERT INTO credentials (account, sealed, saved_at) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET sealed = excluded.sealed, saved_at = excluded.saved_at`,
    account,
    sealed,
    now,
  )
}

/** Forgets the login of an account. */
export function removeCredential(db: Db, { account }: { account: string }): void {
  db.run('DELETE FROM credentials WHERE account = ?', account)
}
