import { type Redis, textOf, textsOf } from '../../kit/redis/connect-redis.ts'
import { checkRoom, unknownCursor } from './records.ts'
import type { Keys } from './redis-keys.ts'
import { ENLIST, MARK, MARKS, UNMARK } from './redis-scripts.ts'

/** Which sessions there are, and which may be unfinished. Lies outside of the sessions, so it may say too much, never too little. */
export interface SessionIndex {
  /** Before a session is made. Fails with `too_many_sessions`. */
  add(id: string): Promise<void>
  drop(id: string): Promise<void>
  count(): Promise<number>
  /** Ids, newest first, `size` at most; after `cursor` when given. Fails with `bad_request` for an unknown one. */
  page(cursor: string | null, size: number): Promise<string[]>
  /** Before a run is accepted or begun. The mark is taken away with {@link SessionIndex.unmark}. */
  mark(id: string): Promise<string>
  unmark(id: string, mark: string): Promise<void>
  /** Sessions that have something in Redis to be archived, the one that rests longest first. */
  warm(): Promise<Marked[]>
  warmUp(id: string): Promise<void>
  coolDown(id: string, mark: string): Promise<void>
  /** All that are marked. */
  marked(): Promise<Marked[]>
  /** The next few of the whole index, round and round. */
  someOfAll(): Promise<Marked[]>
}

export interface Marked {
  id: string
  mark: string
  ageMs: number
}

export interface IndexOptions {
  maxSessions: number
  /** Sessions go into objects some time after their last run. */
  isArchived: boolean
}

const SLICE = 100

export function sessionIndex(redis: Redis, keys: Keys, { maxSessions, isArchived }: IndexOptions): SessionIndex {
  const most = Number.isFinite(maxSessions) ? maxSessions : Number.MAX_SAFE_INTEGER
  let place = 0
  return {
    async add(id) {
      if ((await redis.run(ENLIST, [keys.index, keys.clock], [id, most])) === 0) checkRoom(most, most)
    },
    async drop(id) {
      await redis.send('ZREM', keys.index, id)
      await redis.send('ZREM', keys.active, id)
      await redis.send('ZREM', keys.warm, id)
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
    mark: async (id) =>
      String(await redis.run(MARK, [keys.active, keys.clock, ...(isArchived ? [keys.warm] : [])], [id])),
    async unmark(id, mark) {
      await redis.run(UNMARK, [keys.active], [id, mark])
    },
    warm: () => marks(keys.warm, 0, SLICE - 1),
    async warmUp(id) {
      await redis.run(MARK, [keys.warm, keys.clock], [id])
    },
    async coolDown(id, mark) {
      await redis.run(UNMARK, [keys.warm], [id, mark])
    },
    marked: () => marks(keys.active, 0, -1),
    async someOfAll() {
      const found = await marks(keys.index, place, place + SLICE - 1)
      place = found.length < SLICE ? 0 : place + SLICE
      return found
    },
  }

  async function marks(key: string, first: number, last: number): Promise<Marked[]> {
    const [now, ...found] = textsOf(await redis.run(MARKS, [key], [first, last]))
    const list: Marked[] = []
    for (let at = 0; at + 1 < found.length; at += 2) {
      const mark = found[at + 1] ?? ''
      list.push({ id: found[at] ?? '', mark, ageMs: (Number(now) - Number(mark)) / 1000 })
    }
    return list
  }
}
