import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRedis } from '../../../test/support/servers/redis.ts'
import { soon } from '../../../test/support/soon.ts'
import { silentLog } from '../../kit/log.ts'
import { connectRedis, type Redis } from '../../kit/redis/connect-redis.ts'
import { newRun, newSession, user } from '../core-fixture.contract.ts'
import { DONE, ended, entry, given, ids, partial, REFUSE, receipt } from './fixtures.contract.ts'
import type { AgentStore } from './port.ts'
import { redisStore, sharedSecret } from './redis.ts'
import { agentStoreContract } from './store.contract.ts'

const UNBOUNDED = { maxSessions: 1_000, maxLogEvents: 1_000, maxLogBytes: 1_000_000 }

let server: Awaited<ReturnType<typeof startRedis>>
let redis: Redis
let names = 0

beforeAll(async () => {
  server = await startRedis(['--appendfsync', 'no'])
  redis = await connectRedis({ url: server.url, log: silentLog })
}, 60_000)
afterAll(async () => {
  await redis.close()
  await server.remove()
})

function freshName(): string {
  names += 1
  return `test${names}:`
}

agentStoreContract('Redis', async (limits) => ({
  store: redisStore({ redis, prefix: freshName(), leaseMs: 60_000, ...limits }),
}))

describe('several nodes on one Redis', () => {
  function nodes(leaseMs = 60_000): { one: AgentStore; other: AgentStore; prefix: string; left: string[] } {
    const prefix = freshName()
    const left: string[] = []
    const open = () => redisStore({ redis, prefix, leaseMs, ...UNBOUNDED, onLeftMarked: (id) => void left.push(id) })
    return { one: open(), other: open(), prefix, left }
  }

  /** All marks and entries of the index look an hour old. */
  async function grow(prefix: string): Promise<void> {
    for (const name of ['active', 'sessions']) {
      const key = `${prefix}{index}:${name}`
      for (const id of [await redis.send('ZRANGE', key, '0', '-1')].flat())
        await redis.send('ZINCRBY', key, `${-3_600_000_000}`, String(id))
    }
  }

  test('of runs that come at once to both exactly one is taken', async () => {
    const { one, other } = nodes()
    await one.sessions.create(newSession('s1'), null)
    const all = Array.from({ length: 20 }, (_, n) => (n % 2 ? one : other).runs.admit(newRun(`r${n}`, 's1'), REFUSE))
    const settled = await Promise.allSettled(all)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await one.runs.list('s1')).toHaveLength(1)
  })

  test('changes from all sides while one works are all kept, and events have no gap', async () => {
    const { one, other } = nodes()
    await one.sessions.create(newSession('s1'), null)
    const claim = given((await one.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    const works = async () => {
      for (let n = 0; n < 30; n++) await one.log.append(claim, entry({ events: [partial('x')], messages: [user('m')] }))
    }
    const retitles = async () => {
      for (let n = 0; n < 30; n++) await other.sessions.update('s1', n % 2 ? { title: `t${n}` } : { takenSeq: n })
    }
    const asks = async () => {
      for (let n = 2; n < 12; n++) await other.runs.admit(newRun(`r${n}`, 's1'), { receipt: null, whenBusy: 'enqueue' })
    }
    await Promise.all([works(), retitles(), asks()])
    expect((await other.log.read('s1', 0, 100)).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 30 }, (_, n) => n + 1),
    )
    expect(await other.log.transcript('s1')).toHaveLength(30)
    expect(await one.sessions.get('s1')).toMatchObject({ title: 't29', takenSeq: 28, turnCount: 11 })
    expect(await one.runs.list('s1')).toHaveLength(11)
  })

  test('who was away for longer than a lease lives writes nothing any more, and another ends its run', async () => {
    const { one, other } = nodes(300)
    await one.sessions.create(newSession('s1'), null)
    const late = given((await one.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    const claim = await soon(async () => given(await other.leases.claim('s1')))
    await expect(one.log.append(late, entry({ events: [DONE] }))).rejects.toMatchObject({ code: 'fenced' })
    await other.log.append(claim, ended('r1'))
    await expect(one.log.append(late, ended('r1'))).rejects.toMatchObject({ code: 'fenced' })
    await one.leases.release(late)
    expect(await other.log.read('s1', 0, 10)).toHaveLength(1)
  })

  test('a lease that ran out is worth nothing though nobody has taken it', async () => {
    const { one, prefix } = nodes(200)
    await one.sessions.create(newSession('s1'), null)
    const late = given((await one.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    await soon(async () => expect(await redis.send('EXISTS', `${prefix}{s1}:lease`)).toBe(0))
    await expect(one.log.append(late, entry({}))).rejects.toMatchObject({ code: 'fenced' })
  })

  test('one key makes one session, however many ask at once and where', async () => {
    const { one, other } = nodes()
    const asked = Array.from({ length: 10 }, (_, n) =>
      (n % 2 ? one : other).sessions.create(newSession(`k${n}`), receipt('a', n)),
    )
    const made = new Set(ids(await Promise.all(asked)))
    expect(made.size).toBe(1)
    expect(await one.count()).toBe(1)
  })

  test('a session that was promised to a key and not made before a crash is made under the same id', async () => {
    const { one, prefix } = nodes()
    const promised = { bodyHash: 'a', made: 'p1', at: 0, isMade: false }
    await redis.send('SET', `${prefix}receipt:{key}`, JSON.stringify(promised))
    expect((await one.sessions.create(newSession('x'), receipt('a', 1))).id).toBe('p1')
    expect(ids(await one.sessions.list({ limit: null, cursor: null }))).toEqual(['p1'])
  })

  test('a key whose call failed can be used for another body', async () => {
    const prefix = freshName()
    const full = redisStore({ redis, prefix, leaseMs: 1_000, ...UNBOUNDED, maxSessions: 0 })
    const refused = full.sessions.create(newSession('a'), receipt('a', 0))
    await expect(refused).rejects.toMatchObject({ code: 'too_many_sessions' })
    const roomy = redisStore({ redis, prefix, leaseMs: 1_000, ...UNBOUNDED })
    expect((await roomy.sessions.create(newSession('b'), receipt('b', 1))).id).toBe('b')
  })

  test('what a crash left in the index is repaired: entries without a session, sessions without a mark', async () => {
    const { one, other, prefix } = nodes()
    await one.sessions.create(newSession('s1'), null)
    await one.runs.admit(newRun('r1', 's1'), REFUSE)
    await redis.send('ZADD', `${prefix}{index}:sessions`, '1', 'never-made')
    await redis.send('DEL', `${prefix}{index}:active`)
    await grow(prefix)
    expect(ids(await other.sessions.list({ limit: 1, cursor: null }))).toEqual(['s1'])
    await other.runs.unfinished()
    expect(ids(await other.runs.unfinished())).toEqual(['s1'])
    expect(await other.count()).toBe(1)
  })

  test('what is being made in this moment is left alone', async () => {
    const { one, prefix } = nodes()
    await redis.send('ZADD', `${prefix}{index}:sessions`, `${Date.now() * 1000}`, 'in-the-making')
    await one.runs.unfinished()
    expect(await one.count()).toBe(1)
  })

  test('a finished session is no longer looked after; one whose owner died before it rang is rung for', async () => {
    const { one, other, prefix, left } = nodes()
    const active = () => redis.send('ZCARD', `${prefix}{index}:active`)
    await one.sessions.create(newSession('s1'), null)
    const first = given((await one.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    await one.log.append(first, ended('r1'))
    await one.leases.release(first)
    expect(await active()).toBe(0)
    const second = given((await one.runs.admit(newRun('r2', 's1'), REFUSE)).claim)
    await one.log.append(second, ended('r2'))
    expect(await other.runs.unfinished()).toEqual([])
    expect([await active(), left]).toEqual([1, []])
    await grow(prefix)
    expect(await other.runs.unfinished()).toEqual([])
    expect([await active(), left]).toEqual([0, ['s1']])
  })

  test('a session with a queued run stays marked when another run of it ends', async () => {
    const { one, prefix } = nodes()
    await one.sessions.create(newSession('s1'), null)
    const claim = given((await one.runs.admit(newRun('r1', 's1'), REFUSE)).claim)
    await one.runs.admit(newRun('r2', 's1'), { receipt: null, whenBusy: 'enqueue' })
    await one.log.append(claim, ended('r1'))
    await one.leases.release(claim)
    expect(await redis.send('ZCARD', `${prefix}{index}:active`)).toBe(1)
    expect(ids(await one.runs.unfinished())).toEqual(['s1'])
  })

  test('all keys of a session lie under one hash tag, and nothing is left of it but its generation', async () => {
    const { one, prefix } = nodes()
    await one.sessions.create(newSession('s1'), null)
    const claim = given((await one.runs.admit(newRun('r1', 's1'), { ...REFUSE, receipt: receipt('a', 0) })).claim)
    await one.log.append(claim, entry({ events: [DONE], messages: [user('x')] }))
    await one.runs.admit(newRun('r2', 's1'), { receipt: null, whenBusy: 'enqueue' })
    const names = async () => [await redis.send('KEYS', `${prefix}*`)].flat().map(String).sort()
    const own = (await names()).filter((name) => !name.includes('{index}'))
    expect(own.map((name) => name.slice(prefix.length))).toEqual(
      ['events', 'generation', 'lease', 'order', 'queue', 'receipt:key', 'runs', 'state', 'transcript'].map(
        (name) => `{s1}:${name}`,
      ),
    )
    await one.sessions.remove('s1')
    const rest = (await names()).filter((name) => !name.includes('{index}'))
    expect(rest.map((name) => name.slice(prefix.length))).toEqual(['{s1}:generation', '{s1}:receipt:key'])
    for (const name of rest) expect(await redis.send('PTTL', name)).toBeGreaterThan(0)
  })

  test('the secret of stream tickets is the first that was made', async () => {
    const prefix = freshName()
    expect(await sharedSecret(redis, prefix, 'a')).toBe('a')
    expect(await sharedSecret(redis, prefix, 'b')).toBe('a')
  })
})
