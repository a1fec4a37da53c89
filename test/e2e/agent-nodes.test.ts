import { afterAll, beforeAll, expect } from 'vitest'
import { agentProcess, START_MS } from '../support/agent-process.ts'
import { runCli, temporaryFolder } from '../support/processes.ts'
import { startRedis } from '../support/servers/redis.ts'
import { soon } from '../support/soon.ts'
import { namesOf, startTestAgent, type TestAgentOptions } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'
import { whileAway } from '../support/while-away.ts'

const SCRIPT = [
  { match: 'stall', steps: [{ text: 'Thinking' }, { stall: 'forever' as const }] },
  { match: 'plan', steps: [{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. go' } }] }] },
  { match: 'plan', steps: [{ text: 'Understood.' }] },
]
const LEASE_MS = 1_500
const LONG_MS = 120_000

let redis: Awaited<ReturnType<typeof startRedis>>
beforeAll(async () => {
  redis = await startRedis(['--appendfsync', 'everysec'])
}, LONG_MS)
afterAll(() => redis.remove())

/** Two nodes in this process, on one workspace. */
async function twoNodes(options: TestAgentOptions = {}, redisUrl = redis.url) {
  const one = await startTestAgent({ script: SCRIPT, redisUrl, ...options })
  const other = await startTestAgent({ script: SCRIPT, redisUrl, ...options, workspace: one.workspace })
  return { one, other }
}

/** Two nodes as processes that can be killed. */
async function twoProcesses() {
  const shared = { workspace: temporaryFolder(), args: ['--redis-url', redis.url, '--lease-ms', String(LEASE_MS)] }
  const [one, other] = [await agentProcess(SCRIPT, shared), await agentProcess(SCRIPT, shared)]
  const [first, second] = await Promise.all([one.start(), other.start()])
  const make = async () => (await one.call('POST', '/sessions')).body.session_id
  const done = async (id: string) => {
    const events = []
    for await (const event of other.events(`/sessions/${id}/events?after=0&until=done`)) events.push(event)
    return events
  }
  return { one, other, first, second, make, done }
}

verifies('agentscale:sessions:shared', async () => {
  const { one, other } = await twoNodes()
  const key = { body: { title: 'shared' }, headers: { 'idempotency-key': crypto.randomUUID() } }
  const made = await one.call('POST', '/sessions', key)
  const id = made.body.session_id
  expect((await other.call('POST', '/sessions', key)).body.session_id).toBe(id)
  await one.finish(id, 'hello')
  const details = (await one.call('GET', `/sessions/${id}`)).body
  // Which model answers where none was asked for is the node's own affair.
  const own = { ...details, model: expect.any(String) }
  expect((await other.call('GET', `/sessions/${id}`)).body).toEqual(own)
  await other.call('PATCH', `/sessions/${id}`, { body: { title: 'renamed' } })
  expect((await one.call('GET', '/sessions?limit=1')).body[0]).toMatchObject({ session_id: id })
  expect((await one.call('GET', `/sessions/${id}`)).body.title).toBe('renamed')
  const fork = (await other.call('POST', `/sessions/${id}/fork`)).body.session_id
  expect((await one.call('GET', `/sessions/${fork}`)).body.transcript).toEqual(details.transcript)
})

verifies('agentscale:events:anywhere', async () => {
  const { one, other } = await twoNodes()
  const id = await one.session()
  const reader = await other.events(`/sessions/${id}/events?after=0`)
  const { events_url: url } = await one.run(id, 'stall')
  const first = await reader.next()
  expect(first?.event).toBe('partial_message')
  reader.close()
  const again = await one.events(url, { headers: { 'last-event-id': String(first?.id) } })
  await other.call('POST', `/sessions/${id}/cancel`)
  const rest = await again.until('done')
  expect(rest.map(({ id: seq }) => seq)[0]).toBeGreaterThan(first?.id ?? 0)
  expect(namesOf(rest)).toEqual(['done'])
})

verifies('agentscale:cancel:anywhere', async () => {
  const { one, other } = await twoNodes()
  const id = await one.session()
  await one.run(id, 'stall')
  expect((await other.call('POST', `/sessions/${id}/cancel`)).status).toBe(200)
  expect((await one.call('GET', `/sessions/${id}`)).body.status).toBe('idle')
  await one.run(id, 'stall')
  const reader = await one.events(`/sessions/${id}/events?after=0`)
  expect((await other.call('DELETE', `/sessions/${id}`)).status).toBe(204)
  const events = []
  for (let event = await reader.next(); event !== null; event = await reader.next()) events.push(event)
  expect(namesOf(events)).toEqual(['done', 'done'])
  expect((await one.call('GET', `/sessions/${id}`)).status).toBe(404)
})

verifies('agentscale:tickets:anywhere', async () => {
  const { one, other } = await twoNodes({ authKeys: ['key'] })
  const headers = { 'x-api-key': 'key' }
  const id = (await one.call('POST', '/sessions', { headers })).body.session_id
  const { ticket } = (await one.call('POST', `/sessions/${id}/events/ticket`, { headers })).body
  const reader = await other.events(`/sessions/${id}/events?ticket=${ticket}`)
  expect(reader.status).toBe(200)
  expect((await other.events(`/sessions/${id}/events?ticket=x.y.z`)).status).toBe(401)
})

verifies(
  'agentscale:plans:anywhere',
  async () => {
    const { one, other, first, make, done } = await twoProcesses()
    const [alive, orphaned] = [await make(), await make()]
    for (const id of [alive, orphaned]) {
      await one.call('POST', `/sessions/${id}/run`, { goal: 'plan' })
      await soon(async () => expect((await other.call('GET', `/sessions/${id}`)).body.status).toBe('awaiting_plan'))
    }
    const approve = (id: string) => other.call('POST', `/sessions/${id}/plan`, { decision: 'approve' })
    expect((await approve(alive)).status).toBe(200)
    await first.kill('SIGKILL')
    expect((await approve(orphaned)).status).toBe(200)
    for (const id of [alive, orphaned]) {
      const events = await done(id)
      const names = events.map(({ event }) => event).filter((name) => name !== 'partial_message')
      expect(names).toEqual(['tool_call', 'plan_proposed', 'tool_result', 'message', 'done'])
    }
  },
  LONG_MS,
)

verifies(
  'agentscale:owner:dies',
  async () => {
    const { one, other, first, make, done } = await twoProcesses()
    const id = await make()
    await one.call('POST', `/sessions/${id}/run`, { goal: 'stall' })
    await one.call('POST', `/sessions/${id}/run`, { goal: 'hello', on_busy: 'enqueue' })
    await first.kill('SIGKILL')
    const killedAt = Date.now()
    const events = await done(id)
    expect(Date.now() - killedAt).toBeLessThan(30_000)
    expect(events.map(({ event }) => event).filter((name) => name !== 'partial_message')).toEqual(['error', 'done'])
    expect(JSON.parse(events.at(-1)?.data ?? '')).toMatchObject({ finish_reason: 'Interrupted' })
    // What waited behind it is begun by who is left.
    await soon(async () => {
      const { runs } = (await other.call('GET', `/sessions/${id}/runs`)).body
      expect(runs.map(({ status }: { status: string }) => status)).toEqual(['finished', 'finished'])
    })
  },
  LONG_MS,
)

verifies(
  'agentscale:owner:sleeps',
  async () => {
    const { one, other, first, make, done } = await twoProcesses()
    const id = await make()
    await one.call('POST', `/sessions/${id}/run`, { goal: 'stall' })
    first.child.kill('SIGSTOP')
    const events = await done(id)
    first.child.kill('SIGCONT')
    // It serves again, and has stopped to work on what is not its own.
    await soon(async () => expect((await one.call('GET', '/metrics')).text).toContain('active_runs{kind="session"} 0'))
    expect((await one.call('POST', `/sessions/${id}/run`, { goal: 'hello' })).status).toBe(202)
    await soon(async () => expect((await other.call('GET', `/sessions/${id}`)).body.status).toBe('idle'))
    const all = []
    for await (const event of other.events(`/sessions/${id}/events?after=0&until=done`)) all.push(event)
    expect(all).toEqual(events)
    const { body } = await other.call('GET', `/sessions/${id}/runs`)
    expect(body.runs.map(({ finish_reason: reason }: { finish_reason: string }) => reason)).toEqual([
      'Interrupted',
      'NoMoreToolCalls',
    ])
  },
  LONG_MS,
)

verifies('agentscale:restart:rolling', async () => {
  const { one, other } = await twoNodes()
  const id = await one.session()
  const { events_url: url } = await one.run(id, 'stall')
  const reader = await one.events(url)
  const before = await reader.next()
  await one.stop()
  const again = await other.events(url, { headers: { 'last-event-id': String(before?.id) } })
  const rest = await again.until('done')
  expect(rest.at(-1)?.data).toMatchObject({ finish_reason: 'Interrupted' })
  await other.finish(id, 'hello')
})

verifies(
  'agentscale:redis:away',
  async () => {
    const own = await startRedis()
    try {
      const { one, other } = await twoNodes({ leaseMs: LEASE_MS }, own.url)
      const [finished, busy] = [await one.session(), await one.session()]
      const events = await one.finish(finished, 'hello')
      await one.run(busy, 'stall')
      expect((await one.call('GET', '/ready')).status).toBe(200)
      await own.stop()
      await soon(async () => expect((await one.call('GET', '/ready')).status).toBe(503))
      await whileAway(async () => {
        const reason = expect.stringMatching(/Redis/)
        expect((await one.call('GET', '/ready')).body).toMatchObject({ ready: false, reason })
        for (const path of ['/health', '/metrics']) expect((await one.call('GET', path)).status).toBe(200)
        const refused = await one.call('GET', `/sessions/${finished}`)
        expect([refused.status, refused.body.error.code]).toEqual([503, 'store_failed'])
        expect(refused.headers.get('retry-after')).toBe('1')
        expect((await other.call('POST', '/sessions')).status).toBe(503)
      })
      await own.start()
      for (const node of [one, other])
        await soon(async () => expect((await node.call('GET', '/ready')).status).toBe(200))
      const reader = await other.events(`/sessions/${finished}/events?after=0`)
      expect(await reader.until('done')).toEqual(events)
      // However long it was away, the run it cut off ends once.
      await soon(async () => {
        const { status } = (await one.call('GET', `/sessions/${busy}`)).body
        if (status === 'running') await one.call('POST', `/sessions/${busy}/cancel`)
        expect(status).toBe('idle')
      })
      const all = await other.events(`/sessions/${busy}/events?after=0`)
      expect((await all.until('done')).filter(({ event }) => event === 'done')).toHaveLength(1)
      await one.finish(busy, 'hello')
    } finally {
      await own.remove()
    }
  },
  LONG_MS,
)

verifies(
  'agentscale:redis:settings',
  async () => {
    const start = async (...args: string[]) => {
      const program = runCli(['agent', '--addr', '127.0.0.1:0', ...args])
      return { code: await program.ended, output: program.output() }
    }
    const wrong = await start('--redis-url', 'http://user:secret@host')
    expect(wrong.code).not.toBe(0)
    expect(wrong.output).toContain('--redis-url must be an address such as redis://host:6379')
    expect(wrong.output).not.toContain('secret')
    const both = await start('--redis-url', redis.url, '--data-dir', temporaryFolder())
    expect(both.output).toContain('exclude each other')
    const refused = await start('--redis-url', redis.url.replace('//', '//nobody:secret@'))
    expect(refused.output).toContain('refuses us')
    expect(refused.output).not.toContain('secret')
  },
  START_MS,
)
