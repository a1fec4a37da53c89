import { AppError } from '../errors.ts'
import type { Claim } from '../lease.ts'
import type { Sql, Statements } from './connect.ts'

/** One entry of the log. */
export interface LogRecord {
  seq: number
  text: string
}

/**
 * A log that several processes read and the holder of a lease appends to, with snapshots of what its records make, so
 * that neither the log nor the time to read it grows for ever.
 */
export interface SharedLog {
  /**
   * Makes a record durable under the next number. Fails with `lease_lost` when the lease is another's, and with
   * `log_moved` when the number is taken: by an append of ours whose answer was lost.
   */
  append(claim: Claim, seq: number, text: string): Promise<void>
  read(afterSeq: number, limit: number): Promise<LogRecord[]>
  /** The first and the last number that can be read, and the newest snapshot's (0: none). `oldest` is `newest + 1` when it is empty. */
  bounds(): Promise<{ oldest: number; newest: number; snapshot: number }>
  /** Keeps a snapshot of what the records up to `seq` make, and forgets the records that the snapshot before it had. */
  saveSnapshot(claim: Claim, seq: number, parts: AsyncIterable<Buffer>): Promise<void>
  /** Hands over the newest snapshot, part by part, and says its number; null when there is none. */
  readSnapshot(take: (part: Buffer) => Promise<void>): Promise<number | null>
}

const UNIQUE_VIOLATION = '23505'

/** Makes the tables of the log. */
export async function createLogTables(sql: Statements): Promise<void> {
  await sql`
    create table if not exists switchboard_log (
      seq bigint primary key,
      generation bigint not null,
      written_at timestamptz not null default clock_timestamp(),
      record text not null
    )`
  await sql`
    create table if not exists switchboard_snapshot (
      seq bigint not null,
      part integer not null,
      bytes bytea not null,
      primary key (seq, part)
    )`
}

export function sharedLog(sql: Sql): SharedLog {
  return {
    async append(claim, seq, text) {
      try {
        // The row of the lease stays locked until this is committed: who takes the lease comes after us, or we fail.
        const { count } = await sql`
          with mine as (${stillMine(claim)})
          insert into switchboard_log (seq, generation, record)
          select ${seq}::bigint, ${claim.generation}::bigint, ${text}::text from mine`
        if (count === 0) throw leaseLost()
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION)
          throw new AppError('log_moved', 'The log has gone on; read it first.', { cause: error })
        throw error
      }
    },
    async read(afterSeq, limit) {
      const rows = await sql<{ seq: string; record: string }[]>`
        select seq, record from switchboard_log where seq > ${afterSeq} order by seq limit ${limit}`
      return rows.map(({ seq, record }) => ({ seq: Number(seq), text: record }))
    },
    async bounds() {
      const rows = await sql<{ oldest: string | null; newest: string | null; snapshot: string | null }[]>`
        select (select min(seq) from switchboard_log) as oldest, (select max(seq) from switchboard_log) as newest,
          (select max(seq) from switchboard_snapshot) as snapshot`
      const { oldest = null, newest = null, snapshot = null } = rows[0] ?? {}
      const last = Math.max(Number(newest ?? 0), Number(snapshot ?? 0))
      return { oldest: oldest === null ? last + 1 : Number(oldest), newest: last, snapshot: Number(snapshot ?? 0) }
    },
    async saveSnapshot(claim, seq, parts) {
      await sql.begin(async (transaction) => {
        let part = 0
        for await (const bytes of parts) {
          await transaction`insert into switchboard_snapshot (seq, part, bytes) values (${seq}, ${part}, ${bytes})`
          part += 1
        }
        const { count } = await transaction`${stillMine(claim)}`
        if (count === 0) throw leaseLost()
        const before = await transaction<{ seq: string | null }[]>`
          select max(seq) as seq from switchboard_snapshot where seq < ${seq}`
        await transaction`delete from switchboard_snapshot where seq < ${seq}`
        await transaction`delete from switchboard_log where seq <= ${Number(before[0]?.seq ?? 0)}`
      })
    },
    readSnapshot: (take) =>
      // As of one moment: a newer one may replace it meanwhile.
      sql.begin('isolation level repeatable read read only', async (transaction) => {
        const newest = await transaction<{ seq: string | null }[]>`select max(seq) as seq from switchboard_snapshot`
        const seq = newest[0]?.seq ?? null
        if (seq === null) return null
        for (let part = 0; ; part += 1) {
          const rows = await transaction<{ bytes: Buffer }[]>`
            select bytes from switchboard_snapshot where seq = ${seq} and part = ${part}`
          if (rows[0] === undefined) return Number(seq)
          await take(rows[0].bytes)
        }
      }),
  }

  function stillMine({ key, generation }: Claim) {
    return sql`
      select 1 from switchboard_lease where key = ${key} and generation = ${generation}
        and expires_at > clock_timestamp() for share`
  }
}

function leaseLost(): AppError {
  return new AppError('lease_lost', 'Another node has taken over; this one may write no more.')
}
