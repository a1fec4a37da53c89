import { AppError } from '../../kit/errors.ts'
import { type Reply, textsOf } from '../../kit/redis/connect-redis.ts'
import type { Message, StoredEvent } from '../model.ts'
import type { SessionLog } from './port.ts'
import { applyEntry, endsWork, ofRun, storedEvents } from './records.ts'
import type { Archive } from './redis-archive.ts'
import { toEvent } from './redis-events.ts'
import { TRANSCRIPT } from './redis-scripts.ts'
import { commit, loadRun, need, type RedisParts } from './redis-session.ts'

const TRIES = 10

/** What one look at the log found; it goes on where an object ended. */
interface Part {
  events: StoredEvent[]
  goesOn: boolean
}

/** With an archive reads go through both: what is not in Redis any more is in an object. */
export function redisLog(parts: RedisParts, archive: Archive | null): SessionLog {
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
      const all: StoredEvent[] = []
      for (let tries = 0; tries < TRIES; tries++) {
        const found = await tryToRead(sessionId, all.at(-1)?.seq ?? afterSeq, limit - all.length)
        if (found === null) continue
        // Trimmed meanwhile: what comes after the hole is for the next read, which is told so.
        if (all.length > 0 && found.events[0]?.seq !== all.length + (all[0]?.seq ?? 0)) return all
        all.push(...found.events)
        if (!found.goesOn || all.length === limit) return all
        tries = 0
      }
      throw new AppError('store_failed', 'The log is changing too fast to be read; try again.', { retryAfterMs: 1_000 })
    },
    async bounds(sessionId) {
      const found = textsOf(await redis.send('HMGET', keys.session(sessionId).state, 'oldest', 'newest'))
      const [oldest, newest] = found
      return oldest && newest ? { oldest: Number(oldest), newest: Number(newest) } : null
    },
    async transcript(sessionId, runId) {
      const { chunks, transcript } = keys.session(sessionId)
      const [objects, messages] = listsOf(await redis.run(TRANSCRIPT, [chunks, transcript], []))
      const here = (messages ?? []).map((text): Message => JSON.parse(text))
      if (objects === undefined || objects.length === 0) return ofRun(here, runId)
      // With the goal it began with, all of a run is here.
      if (runId !== undefined && here.some((one) => one.runId === runId && one.role === 'user'))
        return ofRun(here, runId)
      if (archive === null) throw archiveNeeded()
      return ofRun([...(await archive.messages(objects)), ...here], runId)
    },
  }

  /** Null when something moved between the looks at two places. */
  async function tryToRead(sessionId: string, afterSeq: number, limit: number): Promise<Part | null> {
    const at = keys.session(sessionId)
    const found = await redis.send('XRANGE', at.events, `${afterSeq + 1}`, '+', 'COUNT', `${limit}`)
    const events = Array.isArray(found) ? found.map(toEvent) : []
    if (events[0]?.seq === afterSeq + 1) return { events, goesOn: false }
    const [oldest, hot, newest] = textsOf(await redis.send('HMGET', at.state, 'oldest', 'hot', 'newest')).map(Number)
    if (!oldest || !hot || !newest || newest <= afterSeq) return { events: [], goesOn: false }
    const next = Math.max(afterSeq + 1, oldest)
    if (next >= hot) return events[0]?.seq === next ? { events, goesOn: false } : null
    if (archive === null) throw archiveNeeded()
    const archived = await archive.events(sessionId, next - 1, limit)
    return archived.length === 0 ? null : { events: archived, goesOn: true }
  }
}

function listsOf(reply: Reply): string[][] {
  return Array.isArray(reply) ? reply.map((list) => textsOf(list).flatMap((text) => text ?? [])) : []
}

function archiveNeeded(): AppError {
  return new AppError('store_failed', 'A part of this session is in the object store; start the server with --s3-url.')
}
