import type { Lease } from '../../kit/lease.ts'
import type { Log } from '../../kit/log.ts'
import { type Redis, textOf } from '../../kit/redis/connect-redis.ts'
import { redisLease } from '../../kit/redis/lease.ts'
import type { Bucket } from '../../kit/s3/bucket.ts'
import { archiver } from './archiver.ts'
import type { AgentStore, LogEntry, SessionLog, StoreLimits } from './port.ts'
import { redisArchive } from './redis-archive.ts'
import { markedSet, sessionIndex } from './redis-index.ts'
import { redisKeys } from './redis-keys.ts'
import { redisLog } from './redis-log.ts'
import { redisRuns } from './redis-runs.ts'
import type { RedisParts } from './redis-session.ts'
import { redisSessions } from './redis-sessions.ts'

export interface RedisStoreOptions extends StoreLimits {
  redis: Redis
  /** What all keys begin with. */
  prefix: string
  /** How long a claim lives that is not renewed. */
  leaseMs: number
  /** Where what is old goes; null: everything stays in Redis. */
  archive?: { bucket: Bucket; afterMs: number; log: Log } | null
  /** Told of sessions whose last ring may have been lost. */
  onLeftMarked?: (sessionId: string) => void
}

/**
 * The store of several agent servers on one Redis. A step is worked out here, from what was read, by the functions that all
 * stores share; one script then makes it, if nothing has changed meanwhile and the claim still holds.
 */
export function redisStore(options: RedisStoreOptions): AgentStore {
  const { redis, prefix, leaseMs, onLeftMarked = () => {} } = options
  const { maxSessions, maxLogEvents, maxLogBytes } = options
  const keys = redisKeys(prefix)
  const parts: RedisParts = { redis, keys, leaseMs, limits: { maxSessions, maxLogEvents, maxLogBytes } }
  const index = sessionIndex(redis, keys, maxSessions)
  const active = markedSet(redis, keys.active, keys.clock, options.archive ? [keys.warm] : [])
  const warm = markedSet(redis, keys.warm, keys.clock)
  const archive = options.archive ? redisArchive(parts, options.archive.bucket) : null
  const archiving = archive && options.archive ? archiver({ parts, warm, archive, ...options.archive }) : null
  const marks = new Map<string, { mark: string; isOver: boolean }>()
  const leases = redisLease({ redis, keysOf: keys.session, lifeMs: leaseMs })
  const log = redisLog(parts, archive)
  return {
    sessions: redisSessions({ parts, index, transcript: log.transcript, archive }),
    log: watched(log),
    runs: redisRuns({
      parts,
      index,
      active,
      onClaimed: (sessionId, mark) => void marks.set(sessionId, { mark, isOver: false }),
      onLeftMarked,
    }),
    leases: { ...leases, release },
    count: index.count,
    async close() {
      archiving?.stop()
      marks.clear()
    },
  }

  function watched(all: SessionLog): SessionLog {
    return {
      ...all,
      async append(claim, entry) {
        const newest = await all.append(claim, entry)
        const own = marks.get(claim.key)
        if (own && isOver(entry)) own.isOver = true
        return newest
      },
    }
  }

  /** Whoever worked on a session has rung by now: nobody needs to look after it, unless a newer mark says so. */
  async function release(claim: Parameters<Lease['release']>[0]): Promise<void> {
    await leases.release(claim)
    const own = marks.get(claim.key)
    marks.delete(claim.key)
    if (own?.isOver) await active.unmark(claim.key, own.mark)
  }
}

/** What stream tickets are signed with, the same on all nodes. */
export async function sharedSecret(redis: Redis, prefix: string, fresh: string): Promise<string> {
  const { secret } = redisKeys(prefix)
  await redis.send('SET', secret, fresh, 'NX')
  return textOf(await redis.send('GET', secret)) ?? fresh
}

function isOver({ session }: LogEntry): boolean {
  return session?.status === 'idle'
}
