import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import type { Claim } from '../../kit/lease.ts'
import { openPostgres } from '../../kit/postgres/connect.ts'
import { postgresLease } from '../../kit/postgres/lease.ts'
import { type SharedLog, sharedLog } from '../../kit/postgres/shared-log.ts'
import { copyDatabase } from '../../kit/sqlite/copy.ts'
import { openDataDirectory } from '../../kit/sqlite/data-directory.ts'
import { LEADER, prepareDatabase } from './database.ts'

export interface Migration {
  dataDir: string
  databaseUrl: string
}

/** Begins an empty log with what is in a database file. */
type Seed = (path: string, log: SharedLog, claim: Claim) => Promise<void>

const LEASE_MS = 600_000

/**
 * Copies the data directory of a hub that is stopped into a database that no hub has used. Fails with `data_dir_in_use`,
 * `database_in_use` where a hub runs on it, and `database_not_empty`. The directory stays as it is.
 */
export async function copyIntoLog({ dataDir, databaseUrl }: Migration, seed: Seed): Promise<void> {
  const { databasePath, unlock } = await openDataDirectory(dataDir, { database: 'hub.db', service: 'hub' })
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-migrate-'))
  try {
    const copy = join(folder, 'hub.db')
    await copyDatabase(databasePath, copy)
    await intoLog(copy, databaseUrl, seed)
  } finally {
    await rm(folder, { recursive: true, force: true })
    unlock()
  }
}

async function intoLog(copy: string, databaseUrl: string, seed: Seed): Promise<void> {
  const sql = await openPostgres(databaseUrl)
  try {
    await prepareDatabase(sql)
    const log = sharedLog(sql)
    const lease = postgresLease({ sql, address: '', lifeMs: LEASE_MS })
    const claim = await lease.claim(LEADER)
    if (claim === null)
      throw new AppError('database_in_use', 'A hub runs on that database; stop all of them, or choose another.')
    try {
      if ((await log.bounds()).newest > 0)
        throw new AppError('database_not_empty', 'That database holds messages already; choose an empty one.')
      await seed(copy, log, claim)
    } finally {
      await lease.release(claim)
    }
  } finally {
    await sql.end({ timeout: 2 })
  }
}
