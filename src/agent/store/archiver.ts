import { errorText } from '../../kit/errors.ts'
import type { Log } from '../../kit/log.ts'
import { textsOf } from '../../kit/redis/connect-redis.ts'
import { redisLease } from '../../kit/redis/lease.ts'
import { type Bucket, checkBucket } from '../../kit/s3/bucket.ts'
import type { Archive } from './redis-archive.ts'
import type { MarkedSet } from './redis-index.ts'
import { load, type RedisParts } from './redis-session.ts'

export interface ArchiverOptions {
  parts: RedisParts
  /** Sessions that have something in Redis to be archived. */
  warm: MarkedSet
  archive: Archive
  bucket: Bucket
  log: Log
  /** How long after its last run a session stays in Redis. */
  afterMs: number
}

/** Moves sessions that have cooled down into objects, and removes the objects of deleted ones. One node at a time. */
export interface Archiver {
  sweep(): Promise<void>
  stop(): void
}

const LEASE_MS = 60_000
const LEAST_PAUSE_MS = 1_000
const MOST_PAUSE_MS = 15_000
const AT_ONCE = 100

export function archiver({ parts, warm, archive, bucket, log, afterMs }: ArchiverOptions): Archiver {
  const { redis, keys } = parts
  const keysOf = () => ({ lease: keys.archiver, generation: `${keys.archiver}:generation` })
  const turns = redisLease({ redis, keysOf, lifeMs: LEASE_MS })
  let isSweeping = false
  let isTroubled = false
  const pauseMs = Math.min(MOST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, afterMs / 2))
  const timer = setInterval(() => void sweep(), pauseMs).unref()
  return { sweep, stop: () => clearInterval(timer) }

  async function sweep(): Promise<void> {
    if (isSweeping || !redis.isUp) return
    isSweeping = true
    try {
      // Whoever reads next shall know whether it is worth trying.
      if (!bucket.isUp) await checkBucket(bucket)
      const turn = await turns.claim('archiver')
      if (turn === null) return
      try {
        await moveCooled()
        await removeGarbage()
      } finally {
        await turns.release(turn)
      }
      isTroubled = false
    } catch (error) {
      if (!isTroubled) log.warn('sessions cannot be archived; it is tried again', { error: errorText(error) })
      isTroubled = true
    } finally {
      isSweeping = false
    }
  }

  async function moveCooled(): Promise<void> {
    for (const { id, mark, ageMs } of await warm.oldest(AT_ONCE)) {
      if (ageMs < afterMs) return
      const loaded = await load(parts, id)
      if (loaded !== null) await archive.move(id)
      // One that is at work grows on, and is looked at again.
      if (loaded !== null && loaded.session.status !== 'idle') await warm.mark(id)
      else await warm.unmark(id, mark)
    }
  }

  async function removeGarbage(): Promise<void> {
    for (const id of textsOf(await redis.send('SRANDMEMBER', keys.garbage, `${AT_ONCE}`))) {
      if (id === null) continue
      // One that is still there is being deleted in this moment.
      if ((await load(parts, id)) !== null) continue
      await archive.forget(id)
      await redis.send('SREM', keys.garbage, id)
    }
  }
}
