import { randomBytes } from 'node:crypto'
import { type Doorbell, memoryDoorbell } from '../../kit/doorbell.ts'
import type { Log } from '../../kit/log.ts'
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
  close(): Promise<void>
}

export interface BackingOptions extends StoreLimits {
  dataDir: string | null
  redisUrl: string | null
  leaseMs: number
}

/** What all our keys in Redis begin with. */
const PREFIX = 'switchboard:agent:'
const SECRET_BYTES = 32

/** Opens what the settings name. `wake` is called for sessions whose readers may have missed something. */
export async function openBacking(
  options: BackingOptions,
  { log, bellOf }: { log: Log; bellOf: (sessionId: string) => string },
): Promise<Backing> {
  const { dataDir, redisUrl, leaseMs, ...limits } = options
  if (redisUrl !== null) return openShared({ redisUrl, leaseMs, limits, log, bellOf })
  const store = dataDir === null ? memoryStore(limits) : await openDirectory(dataDir, limits)
  return {
    store,
    doorbell: memoryDoorbell(),
    ticketSecret: randomBytes(SECRET_BYTES),
    leaseMs: null,
    trouble: () => null,
    close: () => store.close(),
  }
}

async function openDirectory(dir: string, limits: StoreLimits): Promise<AgentStore> {
  const { openSqliteStore } = await import('./sqlite.ts')
  return openSqliteStore({ dir, ...limits })
}

interface SharedOptions {
  redisUrl: string
  leaseMs: number
  limits: StoreLimits
  log: Log
  bellOf: (sessionId: string) => string
}

async function openShared({ redisUrl, leaseMs, limits, log, bellOf }: SharedOptions): Promise<Backing> {
  const [{ connectRedis }, { redisDoorbell }, { redisStore, sharedSecret }] = await Promise.all([
    import('../../kit/redis/connect-redis.ts'),
    import('../../kit/redis/doorbell.ts'),
    import('./redis.ts'),
  ])
  const redis = await connectRedis({ url: redisUrl, log })
  try {
    const doorbell = await redisDoorbell({ redis, prefix: PREFIX })
    const onLeftMarked = (sessionId: string) => doorbell.ring(bellOf(sessionId))
    const store = redisStore({ redis, prefix: PREFIX, leaseMs, ...limits, onLeftMarked })
    const secret = await sharedSecret(redis, PREFIX, randomBytes(SECRET_BYTES).toString('base64'))
    return {
      store,
      doorbell,
      ticketSecret: Buffer.from(secret, 'base64'),
      leaseMs,
      trouble: () => (redis.isUp ? null : 'Redis cannot be reached.'),
      async close() {
        doorbell.close()
        await store.close()
        await redis.close()
      },
    }
  } catch (error) {
    await redis.close()
    throw error
  }
}
