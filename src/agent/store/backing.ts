import { randomBytes } from 'node:crypto'
import { type Doorbell, memoryDoorbell } from '../../kit/doorbell.ts'
import type { Log } from '../../kit/log.ts'
import type { Bucket, BucketAddress } from '../../kit/s3/bucket.ts'
import { memoryStore } from './memory.ts'
import type { AgentStore, StoreLimits } from './port.ts'

/** What a server stands on: in its process, in a directory, or shared with other nodes. */
export interface Backing {
  store: AgentStore
  doorbell: Doorbell
  /** What stream tickets are signed with: a ticket of one node opens a stream on another. */
  ticketSecret: Buffer
  /** How long a claim lives that is not renewed; null where nobody outlives the process. */
  leaseMs: number | null
  /** Why nothing can be taken now; null when all is well. */
  trouble(): string | null
  /** Where it keeps files: nothing for tools and commands. */
  dir: string | null
  /** What cannot be done now, though the rest can; null when all can. */
  limited(): string | null
  close(): Promise<void>
}

export interface BackingOptions extends StoreLimits {
  dataDir: string | null
  redisUrl: string | null
  s3Url: BucketAddress | null
  leaseMs: number
  archiveAfterMs: number
}

/** What all our keys in Redis begin with. */
const PREFIX = 'switchboard:agent:'
const SECRET_BYTES = 32

export interface BackingSurroundings {
  log: Log
  /** Where the readers of a session listen. */
  bellOf: (sessionId: string) => string
  /** Called once when another server has taken over what this one stands on: nothing can be kept any more. */
  onLost: (reason: string) => void
}

/** Opens what the settings name. */
export async function openBacking(
  options: BackingOptions,
  { log, bellOf, onLost }: BackingSurroundings,
): Promise<Backing> {
  const { dataDir, redisUrl, s3Url, ...rest } = options
  if (redisUrl !== null) return openShared({ ...rest, redisUrl, s3Url, log, bellOf })
  if (s3Url !== null) return openBucketAlone({ ...rest, s3Url, log, onLost })
  if (dataDir === null) return alone(memoryStore(options), { trouble: () => null, dir: null })
  const { openSqliteStore } = await import('./sqlite.ts')
  const store = await openSqliteStore({ dir: dataDir, ...options })
  return alone(store, { trouble: store.trouble, dir: dataDir })
}

/** A server that shares nothing with others. */
function alone(store: AgentStore, about: Pick<Backing, 'trouble' | 'dir'>): Backing {
  return {
    store,
    doorbell: memoryDoorbell(),
    ticketSecret: randomBytes(SECRET_BYTES),
    leaseMs: null,
    ...about,
    limited: () => null,
    close: () => store.close(),
  }
}

interface AloneOptions extends Omit<BackingOptions, 'dataDir' | 'redisUrl'> {
  s3Url: BucketAddress
  log: Log
  onLost: (reason: string) => void
}

/** One server, whose sessions outlive its machine. */
async function openBucketAlone({ s3Url, leaseMs, ...options }: AloneOptions): Promise<Backing> {
  const [{ openBucket }, { openS3Store }] = await Promise.all([import('../../kit/s3/bucket.ts'), import('./s3.ts')])
  // Beside what several servers on Redis archive in the same bucket.
  const bucket = await openBucket({ ...s3Url, prefix: `${s3Url.prefix}alone/` })
  try {
    const store = await openS3Store({ ...options, bucket, lifeMs: leaseMs })
    return {
      ...alone(store, { trouble: store.trouble, dir: store.dir }),
      leaseMs,
      async close() {
        await store.close().finally(() => bucket.close())
      },
    }
  } catch (error) {
    bucket.close()
    throw error
  }
}

interface SharedOptions extends Omit<BackingOptions, 'dataDir'> {
  redisUrl: string
  log: Log
  bellOf: (sessionId: string) => string
}

async function openShared(options: SharedOptions): Promise<Backing> {
  const { redisUrl, s3Url, leaseMs, archiveAfterMs: afterMs, log, bellOf } = options
  const [{ connectRedis }, { redisDoorbell }, { redisStore, sharedSecret }] = await Promise.all([
    import('../../kit/redis/connect-redis.ts'),
    import('../../kit/redis/doorbell.ts'),
    import('./redis.ts'),
  ])
  const redis = await connectRedis({ url: redisUrl, log })
  let bucket: Bucket | null = null
  try {
    if (s3Url !== null) bucket = await (await import('../../kit/s3/bucket.ts')).openBucket(s3Url)
    const opened = bucket
    const archive = bucket && { bucket, afterMs, log }
    const doorbell = await redisDoorbell({ redis, prefix: PREFIX })
    const onLeftMarked = (sessionId: string) => doorbell.ring(bellOf(sessionId))
    const store = redisStore({ ...options, redis, prefix: PREFIX, archive, onLeftMarked })
    const secret = await sharedSecret(redis, PREFIX, randomBytes(SECRET_BYTES).toString('base64'))
    return {
      store,
      doorbell,
      ticketSecret: Buffer.from(secret, 'base64'),
      leaseMs,
      trouble: () => (redis.isUp ? null : 'Redis cannot be reached.'),
      dir: null,
      limited: () =>
        opened === null || opened.isUp ? null : 'The object store cannot be reached: older sessions cannot be read.',
      async close() {
        doorbell.close()
        await store.close()
        await redis.close()
        opened?.close()
      },
    }
  } catch (error) {
    bucket?.close()
    await redis.close()
    throw error
  }
}
