import { type Redis, textOf, textsOf } from '../../kit/redis/connect-redis.ts'
import { checkRoom, unknownCursor } from './records.ts'
import type { Keys } from './redis-keys.ts'
import { ENLIST, MARK, MARKS, UNMARK } from './redis-scripts.ts'

/** Which sessions there are. Lies outside of the sessions, so it may say too much, never too little. */
export interface SessionIndex {
  /** Before a session is made. Fails with `too_many_sessions`. */
  add(id: string): Promise<void>
  drop(id: string): Promise<void>
  count(): Promise<number>
  /** Ids, newest first, `size` at most; after `cursor` when given. Fails with `bad_request` for an unknown one. */
  page(cursor: string | null, size: number): Promise<string[]>
  /** The next few of all, round and round. */
  someOfAll(): Promise<Marked[]>
}

/** Sessions that somebody is to look after. */
export interface MarkedSet {
  /** Marks a session anew; the mark is what {@link MarkedSet.unmark} takes away. */
  mark(id: string): Promise<string>
  /** Nothing when a newer mark was made. */
  unmark(id: string, mark: string): Promise<void>
  /** So many, or all (null); the oldest mark first. */
  oldest(count: number | null): Promise<Marked[]>
}

export interface Marked {
  id: string
  mark: string
  ageMs: number
}

const SLICE = 100

export function sessionIndex(redis: Redis, keys: Keys, maxSessions: number): SessionIndex {
  const most = Number.isFinite(maxSessions) ? maxSessions : Number.MAX_SAFE_INTEGER
  let place = 0
  return {
    async add(id) {
      if ((await redis.run(ENLIST, [keys.index, keys.clock], [id, most])) === 0) checkRoom(most, most)
    },
    async drop(id) {
      for (const key of [keys.index, keys.active, keys.warm]) await redis.send('ZREM', key, id)
    },
    count: async () => Number(await redis.send('ZCARD', keys.index)),
    async page(cursor, size) {
      let from = 0
      if (cursor !== null) {
        const rank = textOf(await redis.send('ZREVRANK', keys.index, cursor))
        if (rank === null) throw unknownCursor(cursor)
        from = Number(rank) + 1
      }
      const found = await redis.send('ZREVRANGE', keys.index, `${from}`, `${from + size - 1}`)
      return textsOf(found).flatMap((id) => id ?? [])
    },
    async someOfAll() {
      const found = await readMarks(redis, keys.index, place, place + SLICE - 1)
      place = found.length < SLICE ? 0 : place + SLICE
      return found
    },
  }
}

/** The sorted set `key`; a mark is made in those of `also` too. */
export function markedSet(redis: Redis, key: string, clock: string, also: readonly string[] = []): MarkedSet {
  return {
    mark: async (id) => String(await redis.run(MARK, [key, clock, ...also], [id])),
    async unmark(id, mark) {
      await redis.run(UNMARK, [key], [id, mark])
    },
    oldest: (count) => readMarks(redis, key, 0, count === null ? -1 : count - 1),
  }
}

async function readMarks(redis: Redis, key: string, first: number, last: number): Promise<Marked[]> {
  const [now, ...found] = textsOf(await redis.run(MARKS, [key], [first, last]))
  const list: Marked[] = []
  for (let at = 0; at + 1 < found.length; at += 2) {
    const mark = found[at + 1] ?? ''
    list.push({ id: found[at] ?? '', mark, ageMs: (Number(now) - Number(mark)) / 1000 })
  }
  return list
}
