import type { Claim, Lease } from '../lease.ts'
import { luaScript, type Redis } from './connect-redis.ts'

/** Where the lease of a key is kept: both keys under one hash tag. */
export interface LeaseKeys {
  /** The generation of the holder; goes away by itself when it is not renewed. */
  lease: string
  /** The newest generation given. */
  generation: string
}

export interface RedisLeaseOptions {
  redis: Redis
  keysOf: (key: string) => LeaseKeys
  lifeMs: number
}

const CLAIM = luaScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local generation = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], generation, 'PX', ARGV[1])
return generation`)

const RENEW = luaScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)

const RELEASE = luaScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)

/** Leases that all nodes share. They run out by the clock of Redis, so the clocks of nodes do not matter. */
export function redisLease({ redis, keysOf, lifeMs }: RedisLeaseOptions): Lease {
  return {
    async claim(key) {
      const { lease, generation } = keysOf(key)
      const given = await redis.run(CLAIM, [lease, generation], [lifeMs])
      return given === null ? null : { key, generation: Number(given) }
    },
    async renew(claims) {
      const kept = await Promise.all(claims.map((claim) => onOwn(RENEW, claim, [lifeMs])))
      return claims.filter((_, index) => !kept[index])
    },
    async release(claim) {
      await onOwn(RELEASE, claim, [])
    },
  }

  async function onOwn(script: typeof RENEW, { key, generation }: Claim, more: number[]): Promise<boolean> {
    return (await redis.run(script, [keysOf(key).lease], [generation, ...more])) === 1
  }
}
