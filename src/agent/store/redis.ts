import type { Lease } from '../../kit/lease.ts'
import { type Redis, textOf } from '../../kit/redis/connect-redis.ts'
import { redisLease } from '../../kit/redis/lease.ts'
import type { AgentStore, LogEntry, SessionLog, StoreLimits } from './port.ts'
import { sessionIndex } from './redis-index.ts'
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
  const marks = new Map<string, { mark: string; isOver: boolean }>()
  const leases = redisLease({ redis, keysOf: keys.session, lifeMs: leaseMs })
  const log = redisLog(parts)
  return {
    sessions: redisSessions({ parts, index, transcript: log.transcript }),
    log: watched(log),
    runs: redisRuns({
      parts,
      index,
      onClaimed: (sessionId, mark) => void marks.set(sessionId, { mark, isOver: false }),
      onLeftMarked,
    }),
    leases: { ...leases, release },
    count: index.count,
    close: async () => marks.clear(),
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
    if (own?.isOver) await index.unmark(claim.key, own.mark)
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
