import { setTimeout as pause } from 'node:timers/promises'
import type postgres from 'postgres'
import { AppError, errorText } from '../errors.ts'

/** A pool of connections to one database. */
export type Sql = postgres.Sql

/** What takes statements: the pool, or one of its transactions. */
export type Statements = postgres.ISql

/** As much of it as {@link checkListen} needs. */
export interface Notifier {
  listen(channel: string, hear: () => void): PromiseLike<{ unlisten(): Promise<void> }>
  notify(channel: string, text: string): PromiseLike<unknown>
}

const CONNECT_WITHIN_S = 10
const CONNECTIONS = 4
const FIRST_BACKOFF_S = 0.05
const MOST_BACKOFF_S = 1
const HEARD_WITHIN_MS = 5_000

/** Connects, and looks whether the database answers. Fails with `database_unreachable`, whose text holds no password. */
export async function openPostgres(url: string): Promise<Sql> {
  const { default: connect } = await import('postgres')
  const sql = connect(url, {
    max: CONNECTIONS,
    connect_timeout: CONNECT_WITHIN_S,
    // Left alone it waits ever longer, up to 20 s after the database is back.
    backoff: (failures) => Math.min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** failures),
    onnotice: () => {},
  })
  try {
    await sql`select 1`
    return sql
  } catch (error) {
    await sql.end({ timeout: 0 })
    throw new AppError(
      'database_unreachable',
      `The database ${withoutSecrets(url)} does not answer (${errorText(error)}); start it, or check --database-url.`,
      { cause: error },
    )
  }
}

/**
 * Fails with `database_without_listen` where a notification does not arrive: a pooler between us and the database drops
 * them without a word, and everything would seem to work, a second late.
 */
export async function checkListen(sql: Notifier, withinMs = HEARD_WITHIN_MS): Promise<void> {
  const channel = `switchboard_check_${crypto.randomUUID().replaceAll('-', '')}`
  let hear = () => {}
  const heard = new Promise<true>((resolve) => {
    hear = () => resolve(true)
  })
  const { unlisten } = await sql.listen(channel, hear)
  await sql.notify(channel, '')
  const stop = new AbortController()
  const late = pause(withinMs, false, { signal: stop.signal }).catch(() => false)
  const works = await Promise.race([heard, late])
  stop.abort()
  await unlisten()
  if (works) return
  throw new AppError(
    'database_without_listen',
    'Notifications (LISTEN/NOTIFY) do not arrive over this database address. A connection pooler in transaction mode ' +
      'does that; give the address of the database itself with --database-url.',
  )
}

/** An address as it may be shown to a person. */
function withoutSecrets(url: string): string {
  try {
    const { host, pathname } = new URL(url)
    return `${host}${pathname}`
  } catch {
    return 'at the given address'
  }
}
