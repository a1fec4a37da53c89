import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startFlakyProxy } from '../../../test/support/flaky-proxy.ts'
import { startRedis } from '../../../test/support/servers/redis.ts'
import { soon } from '../../../test/support/soon.ts'
import { doorbellContract } from '../doorbell.contract.ts'
import { leaseContract } from '../lease.contract.ts'
import { silentLog } from '../log.ts'
import { connectRedis, luaScript, type Redis } from './connect-redis.ts'
import { redisDoorbell } from './doorbell.ts'
import { redisLease } from './lease.ts'

const LEASE_MS = 1_000

let server: Awaited<ReturnType<typeof startRedis>>
let redis: Redis
let names = 0

beforeAll(async () => {
  server = await startRedis()
  redis = await connect()
}, 60_000)
afterAll(async () => {
  await redis.close()
  await server.remove()
})

function connect(more: { url?: string; answerWithinMs?: number; startWithinMs?: number } = {}): Promise<Redis> {
  return connectRedis({ url: server.url, log: silentLog, ...more })
}

function freshName(): string {
  names += 1
  return `test${names}:`
}

doorbellContract('Redis', async () => {
  const doorbell = await redisDoorbell({ redis, prefix: freshName() })
  onTestFinished(() => doorbell.close())
  return doorbell
})

leaseContract('Redis', async () => {
  const name = freshName()
  const keysOf = (key: string) => ({ lease: `${name}{${key}}:lease`, generation: `${name}{${key}}:generation` })
  const lease = () => redisLease({ redis, keysOf, lifeMs: LEASE_MS })
  return {
    one: lease(),
    other: lease(),
    // The clock that counts is that of Redis.
    runOut: () => soon(async () => expect(await redis.send('EXISTS', keysOf('a').lease)).toBe(0)),
  }
})

describe('a doorbell on several nodes', () => {
  test('is heard on another node', async () => {
    const prefix = freshName()
    const [one, other] = [await redisDoorbell({ redis, prefix }), await redisDoorbell({ redis, prefix })]
    const heard = new Promise<void>((resolve) => void other.listen('ann', resolve))
    one.ring('ann')
    await heard
    one.close()
    other.close()
  })

  test('is heard by the sweep where pub/sub lost it, also by who comes later in that second', async () => {
    const prefix = freshName()
    const deaf: Redis = { ...redis, isUp: true, subscribe: async () => {} }
    const one = await redisDoorbell({ redis, prefix, sweepEveryMs: 20 })
    const other = await redisDoorbell({ redis: deaf, prefix, sweepEveryMs: 20 })
    const heard = new Promise<void>((resolve) => void other.listen('ann', resolve))
    one.ring('ann')
    await heard
    one.close()
    other.close()
  })

  test('rings for everything where more was missed than is kept', async () => {
    const prefix = freshName()
    const deaf: Redis = { ...redis, isUp: true, subscribe: async () => {} }
    await redis.send('XADD', `${prefix}rings`, '*', 'k', '["other"]')
    const bell = await redisDoorbell({ redis: deaf, prefix, sweepEveryMs: 20 })
    const heard = new Promise<void>((resolve) => void bell.listen('ann', resolve))
    await redis.send('XADD', `${prefix}rings`, 'MAXLEN', '1', '*', 'k', '["other","bob"]')
    await heard
    bell.close()
  })
})

describe('a connection', () => {
  test('fails at once while Redis is away, and comes back by itself, subscription and scripts too', async () => {
    const own = await startRedis()
    onTestFinished(() => own.remove())
    const link = await connect({ url: own.url })
    onTestFinished(() => link.close())
    const texts: string[] = []
    await link.subscribe(
      'channel',
      (text) => texts.push(text),
      () => texts.push('again'),
    )
    const echo = luaScript('return ARGV[1]')
    expect(await link.run(echo, [], ['x'])).toBe('x')
    await own.stop()
    await soon(() => expect(link.isUp).toBe(false))
    await expect(link.send('PING')).rejects.toMatchObject({ code: 'store_failed', retryAfterMs: 1_000 })
    await own.start()
    await soon(async () => expect(await link.run(echo, [], ['y'])).toBe('y'))
    await soon(() => expect(texts).toContain('again'))
    await link.send('PUBLISH', 'channel', 'hello')
    await soon(() => expect(texts).toContain('hello'))
  }, 60_000)

  test('that falls silent is given up and made anew', async () => {
    const proxy = await startFlakyProxy(server.port)
    const link = await connect({ url: `redis://127.0.0.1:${proxy.port}`, answerWithinMs: 200 })
    onTestFinished(() => link.close())
    process.kill(server.pid(), 'SIGSTOP')
    const before = proxy.connections
    const silent = link.send('PING')
    await expect(silent).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('not answer') })
    process.kill(server.pid(), 'SIGCONT')
    await soon(async () => expect(await link.send('PING')).toBe('PONG'))
    expect(proxy.connections).toBeGreaterThan(before)
  })

  test('to nowhere is an error that says where, and no password', async () => {
    const url = 'redis://user:secret@127.0.0.1:1'
    const failed = await connect({ url, startWithinMs: 100 }).catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'redis_unreachable', message: expect.stringContaining('127.0.0.1:1') })
    expect(String(failed)).not.toContain('secret')
  })

  test('with a wrong password is refused with a clear word', async () => {
    const url = server.url.replace('redis://', 'redis://nobody:wrong@')
    await expect(connect({ url })).rejects.toMatchObject({ code: 'redis_refused' })
  })

  test('to a Redis that throws keys away is refused', async () => {
    const own = await startRedis(['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'])
    onTestFinished(() => own.remove())
    await expect(connect({ url: own.url })).rejects.toMatchObject({
      code: 'redis_evicts',
      message: expect.stringContaining('noeviction'),
    })
  })

  test('tells a full Redis from a mistake in a script', async () => {
    const own = await startRedis(['--maxmemory', '3mb', '--maxmemory-policy', 'noeviction'])
    onTestFinished(() => own.remove())
    const link = await connect({ url: own.url })
    onTestFinished(() => link.close())
    await expect(link.run(luaScript('return nothing.here'), [], [])).rejects.not.toHaveProperty('code', 'store_failed')
    const fill = async () => {
      for (let index = 0; index < 50; index++) await link.send('SET', `k${index}`, 'x'.repeat(100_000))
    }
    await expect(fill()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('OOM') })
  })
})
