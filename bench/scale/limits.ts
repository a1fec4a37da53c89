import { join } from 'node:path'
import postgres from 'postgres'
import { createClient } from 'redis'
import { openDatabase } from '../../src/kit/sqlite/database.ts'
import { numberedText } from '../load-calls.ts'

/** What the stores under the servers do when nothing stands above them: the most there is to be had. */

const BATCH = 100
const AT_ONCE = 32

/** A message as the bench's users send it, with what is stored beside it. */
function record(index: number): { user: string; text: string; token: string } {
  return { user: `u${index % 100}@im.wechat`, text: numberedText(0, index, 0), token: `ctx_${index}` }
}

/** Rows a second that one connection commits to SQLite, a hundred to a commit, as durable as the hub's. */
export async function sqliteRate(folder: string, count: number): Promise<number> {
  const db = await openDatabase(join(folder, `bare-${performance.now()}.db`), 'write')
  db.exec('create table bare (id integer primary key, user text, text text, token text)')
  const startedAt = performance.now()
  for (let from = 0; from < count; from += BATCH) {
    db.exec('begin')
    for (let index = from; index < from + BATCH; index += 1) {
      const { user, text, token } = record(index)
      db.run('insert into bare (user, text, token) values (?, ?, ?)', user, text, token)
    }
    db.exec('commit')
  }
  const rate = count / ((performance.now() - startedAt) / 1000)
  db.close()
  return rate
}

/** Rows a second that one connection commits to Postgres, a hundred to a statement. */
export async function postgresRate(url: string, count: number): Promise<number> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  await sql`create table bare (id bigserial primary key, user_id text, text text, token text)`
  const startedAt = performance.now()
  for (let from = 0; from < count; from += BATCH) {
    const rows = Array.from({ length: BATCH }, (_, index) => record(from + index))
    await sql`insert into bare (user_id, text, token) select * from unnest(
      ${rows.map(({ user }) => user)}::text[], ${rows.map(({ text }) => text)}::text[],
      ${rows.map(({ token }) => token)}::text[])`
  }
  const rate = count / ((performance.now() - startedAt) / 1000)
  await sql.end()
  return rate
}

/** Entries a second that one connection appends to streams of Redis, some at once. */
export async function redisRate(url: string, count: number): Promise<number> {
  const redis = createClient({ url })
  await redis.connect()
  const startedAt = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, stream) => {
      while (next < count) {
        next += 1
        await redis.xAdd(`bare:${stream}`, '*', { d: record(next).text })
      }
    }),
  )
  const rate = count / ((performance.now() - startedAt) / 1000)
  await redis.close()
  return rate
}
