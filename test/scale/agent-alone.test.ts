import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { openS3Store } from '../../src/agent/store/s3.ts'
import { silentLog } from '../../src/kit/log.ts'
import { type BucketAddress, openBucket } from '../../src/kit/s3/bucket.ts'
import { type AgentProcess, agentProcess } from '../support/agent-process.ts'
import {
  expectNothingLost,
  keepBusy,
  killInRounds,
  newSession,
  newSessions,
  ROUND_SCRIPT,
  type Told,
  untilIdle,
} from '../support/agent-rounds.ts'
import { type Fault, startFlakyProxy } from '../support/flaky-proxy.ts'
import { runCli, temporaryFolder } from '../support/processes.ts'
import { freshBucket } from '../support/servers/fresh-bucket.ts'
import { verifies } from '../support/verifies.ts'

const LONG_MS = 180_000
const WAIT = { timeout: 60_000, interval: 50 }
const SCRIPT: Script = [
  { match: 'stall', steps: [{ text: 'Hm' }, { stall: 'forever' }] },
  { match: 'slow', steps: [{ text: ['a', 'b', 'c'] }, { stall: 3_000 }, { text: ['d', 'e'] }] },
  { match: 'say', steps: [{ text: 'Here.' }] },
]

/** A server on a bucket and nothing else. */
function alone(
  address: BucketAddress,
  { leaseMs = 1_000, script = SCRIPT }: { leaseMs?: number; script?: Script } = {},
) {
  const query = new URLSearchParams({ endpoint: address.endpoint ?? '', region: address.region ?? '' })
  const args = ['--s3-url', `s3://${address.bucket}/some/where?${query}`, '--lease-ms', String(leaseMs)]
  // What a killed one leaves of its copy goes with the test.
  return agentProcess(script, { workspace: temporaryFolder(), args, env: { TMPDIR: temporaryFolder() } })
}

/** Holds what the bucket has against what callers were told; returns how runs have ended. */
async function nothingLost(address: BucketAddress, told: Told) {
  const bucket = await openBucket({ ...address, prefix: 'some/where/alone/' })
  const limits = { maxSessions: 99, maxLogEvents: 1e9, maxLogBytes: 1e12 }
  const store = await openS3Store({ ...limits, bucket, lifeMs: 1_000, log: silentLog, onLost: () => {} })
  try {
    return await expectNothingLost(store, told)
  } finally {
    await store.close()
    bucket.close()
  }
}

async function finishedRuns(agent: AgentProcess, id: string): Promise<string[]> {
  const { runs } = (await agent.call('GET', `/sessions/${id}/runs`)).body
  return runs.map(({ finish_reason: reason }: { finish_reason: string | null }) => reason)
}

/** The types of all events so far that end something. */
async function endings(agent: AgentProcess, id: string, count: number): Promise<string[]> {
  const told: string[] = []
  for await (const { event } of agent.events(`/sessions/${id}/events?after=0`)) {
    if (event === 'error' || event === 'done') told.push(event)
    if (told.filter((one) => one === 'done').length === count) break
  }
  return told
}

verifies(
  'agentscale:alone:killed',
  async () => {
    const address = await freshBucket()
    const agent = await alone(address, { script: ROUND_SCRIPT })
    const told = await killInRounds(agent, { rounds: 5, withinMs: 40_000 })
    expect(await nothingLost(address, told)).toContain('Interrupted')
  },
  LONG_MS,
)

verifies(
  'agentscale:alone:killed',
  'what ran is over before the port opens, what was queued goes on, and a transcript is there again',
  async () => {
    const agent = await alone(await freshBucket())
    const first = await agent.start()
    const [running, rested] = [await newSession(agent), await newSession(agent)]
    await agent.call('POST', `/sessions/${rested}/run`, { goal: 'say it' })
    await untilIdle(agent, rested)
    const before = (await agent.call('GET', `/sessions/${rested}`)).body
    await agent.call('POST', `/sessions/${running}/run`, { goal: 'stall' })
    await agent.call('POST', `/sessions/${running}/run`, { goal: 'say it', on_busy: 'enqueue' })
    await first.kill('SIGKILL')
    await agent.start()
    expect((await finishedRuns(agent, running))[0]).toBe('Interrupted')
    await untilIdle(agent, running)
    expect(await endings(agent, running, 2)).toEqual(['error', 'done', 'done'])
    expect((await agent.call('GET', `/sessions/${rested}`)).body).toEqual(before)
  },
  LONG_MS,
)

verifies(
  ['agentscale:alone:second', 'agentscale:alone:overtaken'],
  'a second process is refused while the first lives, takes over while it is frozen, and the first ends when it wakes up',
  async () => {
    const address = await freshBucket()
    const agent = await alone(address, { leaseMs: 10_000 })
    const first = await agent.start()
    const id = await newSession(agent)
    const other = await alone(address, { leaseMs: 1_000 })
    const refused = runCli(other.args)
    expect(await refused.ended).toBe(1)
    expect(refused.output()).toContain(`in use by another agent server (process ${first.child.pid} on`)
    await agent.call('POST', `/sessions/${id}/run`, { goal: 'stall' })
    first.child.kill('SIGSTOP')
    const second = await other.start()
    expect(await finishedRuns(other, id)).toEqual(['Interrupted'])
    await other.call('POST', `/sessions/${id}/run`, { goal: 'say it' })
    await untilIdle(other, id)
    first.child.kill('SIGCONT')
    expect(await first.ended).toBe(1)
    expect(first.output()).toContain('Another agent server has taken over the bucket')
    expect(await endings(other, id, 2)).toEqual(['error', 'done', 'done'])
    expect(second.child.exitCode).toBeNull()
  },
  LONG_MS,
)

for (const type of ['refuse', 'stall'] as const)
  verifies(
    'agentscale:alone:away',
    `the bucket is away (${type}): 503 and why, reading goes on, and afterwards all goes on by itself`,
    async () => {
      const address = await freshBucket()
      const proxy = await startFlakyProxy(Number(new URL(address.endpoint).port))
      const agent = await alone({ ...address, endpoint: proxy.url }, { leaseMs: 3_000 })
      await agent.start()
      const [busy, quiet] = [await newSession(agent), await newSession(agent)]
      await agent.call('POST', `/sessions/${quiet}/run`, { goal: 'say it' })
      await untilIdle(agent, quiet)
      await agent.call('POST', `/sessions/${busy}/run`, { goal: 'slow' })
      proxy.plan(() => (type === 'refuse' ? { type } : { type, after: 0 }))
      proxy.cutAll()

      const refused = await agent.call('POST', '/sessions')
      expect([refused.status, refused.body.error.code]).toEqual([503, 'store_failed'])
      expect(refused.body.error.message).toContain('object store')
      const ready = await agent.call('GET', '/ready')
      expect([ready.status, ready.body]).toEqual([
        503,
        { ready: false, reason: expect.stringContaining('object store cannot be reached') },
      ])
      expect((await agent.call('GET', '/health')).status).toBe(200)
      expect((await agent.call('GET', `/sessions/${quiet}`)).body.transcript.length).toBe(2)

      proxy.plan([])
      proxy.cutAll()
      await expect.poll(async () => (await agent.call('GET', '/ready')).status, WAIT).toBe(200)
      await untilIdle(agent, busy)
      const told = await endings(agent, busy, 1)
      expect(told.filter((event) => event === 'done')).toHaveLength(1)
      await expect.poll(async () => (await agent.call('POST', '/sessions')).status, WAIT).toBe(201)
      await agent.call('POST', `/sessions/${busy}/run`, { goal: 'say it' })
      await untilIdle(agent, busy)
      expect((await finishedRuns(agent, busy)).at(-1)).toBe('NoMoreToolCalls')
    },
    LONG_MS,
  )

verifies(
  ['agentscale:alone:doubt', 'agentscale:alone:away'],
  'on a line that breaks all the time, and loses answers, every run has one done and what was told is there',
  async () => {
    const address = await freshBucket()
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint).port))
    const agent = await alone({ ...address, endpoint: proxy.url }, { leaseMs: 3_000, script: ROUND_SCRIPT })
    const server = await agent.start()
    const told = await newSessions(agent)
    const end = keepBusy(agent, told, 'line')
    const faults: Fault[] = [{ type: 'refuse' }, { type: 'cut', after: 0 }, { type: 'cut', after: 0 }, { type: 'pass' }]
    for (let breaks = 0; breaks < 25; breaks += 1) {
      // Long enough that three tries fail now and then.
      const isAway = breaks % 5 === 4
      proxy.plan((connection) => faults[(connection + breaks) % (isAway ? 3 : 4)] ?? { type: 'pass' })
      proxy.cutAll()
      await sleep(Math.random() * (isAway ? 1_500 : 400))
    }
    proxy.plan([])
    proxy.cutAll()
    const before = told.accepted.size
    await expect.poll(() => told.accepted.size, WAIT).toBeGreaterThan(before + 4)
    await end()
    await Promise.all(told.sessions.map((id) => untilIdle(agent, id)))
    await server.kill('SIGTERM')
    await nothingLost(address, told)
  },
  LONG_MS,
)
