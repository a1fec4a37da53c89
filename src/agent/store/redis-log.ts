import { type Reply, textsOf } from '../../kit/redis/connect-redis.ts'
import type { Message, StoredEvent } from '../model.ts'
import type { SessionLog } from './port.ts'
import { applyEntry, endsWork, storedEvents } from './records.ts'
import { commit, loadRun, need, type RedisParts } from './redis-session.ts'

export function redisLog(parts: RedisParts): SessionLog {
  const { redis, keys } = parts
  return {
    async append(claim, entry) {
      const sessionId = claim.key
      for (;;) {
        // The session first: whatever changes after it was read makes the step be worked out again.
        const [loaded, run] = await Promise.all([
          need(parts, sessionId),
          entry.run === undefined ? null : loadRun(parts, sessionId, entry.runId),
        ])
        const events = storedEvents(entry, loaded.newest)
        applyEntry(loaded.session, run ?? undefined, entry)
        const { messages } = entry
        const change = { claim, ends: endsWork(entry), events, messages, runs: run === null ? [] : [run] }
        if ((await commit(parts, loaded, change)) !== 'changed') return loaded.newest + events.length
      }
    },
    async read(sessionId, afterSeq, limit) {
      const { events } = keys.session(sessionId)
      const found = await redis.send('XRANGE', events, `${afterSeq + 1}`, '+', 'COUNT', `${limit}`)
      return Array.isArray(found) ? found.map(toEvent) : []
    },
    async bounds(sessionId) {
      const found = textsOf(await redis.send('HMGET', keys.session(sessionId).state, 'oldest', 'newest'))
      const [oldest, newest] = found
      return oldest && newest ? { oldest: Number(oldest), newest: Number(newest) } : null
    },
    async transcript(sessionId) {
      const found = textsOf(await redis.send('LRANGE', keys.session(sessionId).transcript, '0', '-1'))
      return found.map((text): Message => JSON.parse(text ?? 'null'))
    },
  }
}

/** An entry of the stream: its id, then names and values in the order they were written. */
function toEvent(entry: Reply): StoredEvent {
  const [id, fields] = Array.isArray(entry) ? entry : []
  const [, about, , data] = textsOf(fields ?? null)
  return { seq: Number.parseInt(String(id), 10), ...JSON.parse(about ?? '{}'), data: data ?? '' }
}
