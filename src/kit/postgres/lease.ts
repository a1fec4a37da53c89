import type { Claim, Lease } from '../lease.ts'
import type { Sql, Statements } from './connect.ts'

/** Leases that stand in rows, so that other processes can see who has one and where to find them. Time is the database's own. */
export interface PostgresLease extends Lease {
  /** Where the one that holds it now can be reached; null when nobody does. */
  holder(key: string): Promise<{ address: string; generation: number } | null>
}

export interface PostgresLeaseOptions {
  sql: Sql
  /** Where this process can be reached. */
  address: string
  lifeMs: number
}

/** Makes the table that leases stand in. */
export async function createLeaseTable(sql: Statements): Promise<void> {
  await sql`
    create table if not exists switchboard_lease (
      key text primary key,
      address text not null,
      generation bigint not null,
      expires_at timestamptz not null
    )`
}

export function postgresLease({ sql, address, lifeMs }: PostgresLeaseOptions): PostgresLease {
  const life = `${lifeMs} milliseconds`
  return {
    async claim(key) {
      const rows = await sql<{ generation: string }[]>`
        insert into switchboard_lease as lease (key, address, generation, expires_at)
        values (${key}, ${address}, 1, clock_timestamp() + ${life}::interval)
        on conflict (key) do update
          set address = excluded.address, generation = lease.generation + 1, expires_at = excluded.expires_at
        where lease.expires_at <= clock_timestamp()
        returning generation`
      return rows[0] ? { key, generation: Number(rows[0].generation) } : null
    },
    async renew(claims) {
      const lost: Claim[] = []
      for (const claim of claims) {
        const { count } = await sql`
          update switchboard_lease set expires_at = clock_timestamp() + ${life}::interval
          where key = ${claim.key} and generation = ${claim.generation} and expires_at > clock_timestamp()`
        if (count === 0) lost.push(claim)
      }
      return lost
    },
    async release({ key, generation }) {
      await sql`
        update switchboard_lease set expires_at = clock_timestamp()
        where key = ${key} and generation = ${generation} and expires_at > clock_timestamp()`
    },
    async holder(key) {
      const rows = await sql<{ address: string; generation: string }[]>`
        select address, generation from switchboard_lease where key = ${key} and expires_at > clock_timestamp()`
      return rows[0] ? { address: rows[0].address, generation: Number(rows[0].generation) } : null
    },
  }
}
