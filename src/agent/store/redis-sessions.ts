import { textOf } from '../../kit/redis/connect-redis.ts'
import type { Message, Session } from '../model.ts'
import type { Receipt, SessionStore } from './port.ts'
import { firstMessages, type KeptReceipt, madeUnder, noSession } from './records.ts'
import type { Archive } from './redis-archive.ts'
import type { SessionIndex } from './redis-index.ts'
import { CREATE, REMOVE, SWAP } from './redis-scripts.ts'
import { commit, load, RECEIPT_LIFE_MS, type RedisParts } from './redis-session.ts'
import { fromSession } from './rows.ts'

export interface RedisSessionsOptions {
  parts: RedisParts
  index: SessionIndex
  transcript: (id: string) => Promise<Message[]>
  archive: Archive | null
}

/** What is kept under a key of `POST /sessions`: written before the session is made, and `isMade` after. */
interface SessionReceipt extends KeptReceipt {
  isMade: boolean
}

const PAGE = 200
const GENERATION_LIFE_S = 24 * 60 * 60

export function redisSessions({ parts, index, transcript, archive }: RedisSessionsOptions): SessionStore {
  const { redis, keys } = parts

  return {
    create: (session, receipt) => keep(session, receipt, async () => []),
    fork: (fromId, session, { messages, receipt }) =>
      keep(session, receipt, async () => {
        if ((await get(fromId)) === null) throw noSession(fromId)
        return firstMessages(await transcript(fromId), messages)
      }),
    get,
    async list({ limit, cursor }) {
      const found: Session[] = []
      const most = limit ?? Number.POSITIVE_INFINITY
      for (let after = cursor; found.length < most; ) {
        const ids = await index.page(after, PAGE)
        // One that is in the index and nowhere else is about to be made, or was left by a crash.
        for (const session of await Promise.all(ids.map(get))) if (session !== null) found.push(session)
        const last = ids.at(-1)
        if (ids.length < PAGE || last === undefined) break
        after = last
      }
      return limit === null ? found : found.slice(0, limit)
    },
    async update(id, patch) {
      for (;;) {
        const loaded = await load(parts, id)
        if (loaded === null) return null
        Object.assign(loaded.session, patch)
        if ((await commit(parts, loaded, { claim: 'none' })) !== 'changed') return loaded.session
      }
    },
    async remove(id) {
      const at = keys.session(id)
      const all = [at.generation, at.state, at.lease, at.events, at.transcript, at.runs, at.order, at.queue]
      all.push(at.segments, at.chunks)
      // Before, so that a crash does not leave objects that nobody knows of.
      if (archive !== null) await redis.send('SADD', keys.garbage, id)
      const wasThere = (await redis.run(REMOVE, all, [GENERATION_LIFE_S])) === 1
      await index.drop(id)
      if (archive !== null) void removeObjects(id, archive)
      return wasThere
    },
  }

  async function get(id: string): Promise<Session | null> {
    return (await load(parts, id))?.session ?? null
  }

  /** Now, or in a later sweep. */
  async function removeObjects(id: string, { forget }: Archive): Promise<void> {
    try {
      await forget(id)
      await redis.send('SREM', keys.garbage, id)
    } catch {
      // It stays on the list.
    }
  }

  async function keep(session: Session, receipt: Receipt | null, messages: () => Promise<Message[]>): Promise<Session> {
    if (receipt === null) return make(session, messages)
    const { id, text } = await reserve(receipt, session.id)
    const earlier = text === null ? await get(id) : null
    if (earlier !== null) return earlier
    try {
      const made = await make({ ...session, id }, messages)
      const kept: SessionReceipt = { bodyHash: receipt.bodyHash, made: id, at: receipt.now, isMade: true }
      await redis.send('SET', keys.receipt(receipt.key), JSON.stringify(kept), 'PX', `${RECEIPT_LIFE_MS}`)
      return made
    } catch (error) {
      // Only successes are kept.
      if (text !== null) await redis.run(SWAP, [keys.receipt(receipt.key)], [text, '', 0]).catch(() => undefined)
      throw error
    }
  }

  /**
   * The id under which a key makes its session, and what was written for it now (null: it was there). Whoever finds a key
   * whose session is not made yet makes it under the same id: so two calls at once make one, and a crash none too many.
   */
  async function reserve(receipt: Receipt, id: string): Promise<{ id: string; text: string | null }> {
    const key = keys.receipt(receipt.key)
    for (;;) {
      const seen = textOf(await redis.send('GET', key))
      const known: SessionReceipt | undefined = seen === null ? undefined : JSON.parse(seen)
      const made = madeUnder(receipt, known)
      if (made !== null && (!known?.isMade || (await get(made)) !== null)) return { id: made, text: null }
      const kept: SessionReceipt = { bodyHash: receipt.bodyHash, made: id, at: receipt.now, isMade: false }
      const text = JSON.stringify(kept)
      if ((await redis.run(SWAP, [key], [seen ?? '', text, RECEIPT_LIFE_MS])) === 1) return { id, text }
    }
  }

  /** Index first: a session that nobody can find is worse than an entry without one. */
  async function make(session: Session, messages: () => Promise<Message[]>): Promise<Session> {
    const texts = (await messages()).map((message) => JSON.stringify(message))
    await index.add(session.id)
    const at = keys.session(session.id)
    const { fixed, state } = fromSession(session)
    await redis.run(CREATE, [at.state, at.transcript], [fixed, state, ...texts])
    return (await get(session.id)) ?? session
  }
}
