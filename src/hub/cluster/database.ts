import { randomBytes } from 'node:crypto'
import type { Sql } from '../../kit/postgres/connect.ts'
import { createLeaseTable } from '../../kit/postgres/lease.ts'
import { createLogTables } from '../../kit/postgres/shared-log.ts'

/** Any number, the same in every version: only one node at a time makes the tables. */
const SETUP_LOCK = 7_306_086

/** Which lease the node that leads holds. */
export const LEADER = 'hub'

/** Makes what is missing in the database; returns the secret by which its nodes know each other. */
export async function prepareDatabase(sql: Sql): Promise<string> {
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${SETUP_LOCK})`
    await createLeaseTable(transaction)
    await createLogTables(transaction)
    await transaction`create table if not exists switchboard_secret (id boolean primary key, value text not null)`
    await transaction`
      insert into switchboard_secret values (true, ${randomBytes(32).toString('hex')}) on conflict do nothing`
    const rows = await transaction<{ value: string }[]>`select value from switchboard_secret`
    return rows[0]?.value ?? ''
  })
}
