import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { type AgentCluster, agentCluster, type ClusterNode } from '../support/agent-cluster.ts'
import type { RawEvent } from '../support/agent-process.ts'
import { type FlakyProxy, startFlakyProxy } from '../support/flaky-proxy.ts'
import { temporaryFolder } from '../support/processes.ts'
import { freshBucket } from '../support/servers/fresh-bucket.ts'
import type { TestServer } from '../support/servers/program.ts'
import { startRedis } from '../support/servers/redis.ts'
import { verifies } from '../support/verifies.ts'
import { LONG_CHAOS } from '../support/while-away.ts'

/** `CHAOS=long` is the whole of it: 200 runs at once for two minutes. */
const [SESSIONS, CHAOS_MS] = LONG_CHAOS ? [200, 120_000] : [24, 25_000]
const LEASE_MS = 2_000
/** So soon that readers find a run partly in Redis and partly in objects. */
const ARCHIVE_MS = 500
/** Shorter than a claim lives for some runs, longer for others. */
const AWAY_MS = 1_000
const ENDS_WITHIN_MS = 30_000
const WHOLE_MS = CHAOS_MS + 180_000

const SCRIPT = [
  {
    match: 'go',
    steps: [
      { text: ['Let ', 'me '] },
      { stall: 200 },
      { text: 'look.' },
      { stall: 200 },
      { tool_calls: [{ name: 'list_dir', input: { path: '.' } }] },
    ],
  },
  { match: 'go', steps: [{ text: ['There ', 'is '] }, { stall: 300 }, { text: 'nothing.' }] },
]

interface Played {
  sessionId: string
  runs: { runId: string; events: RawEvent[]; waitedMs: number }[]
}

verifies(
  'agentscale:chaos:one-done',
  async () => {
    const redis = await startRedis()
    try {
      const { bucket, endpoint } = await freshBucket()
      const proxy = await startFlakyProxy(Number(new URL(endpoint).port))
      const args = ['--redis-url', redis.url, '--lease-ms', String(LEASE_MS)]
      args.push('--s3-url', `s3://${bucket}?endpoint=${proxy.url}`, '--archive-after-ms', String(ARCHIVE_MS))
      const cluster = await agentCluster(3, SCRIPT, { workspace: temporaryFolder(), args })
      const until = Date.now() + CHAOS_MS
      const hurting = Promise.all([hurt(cluster.nodes, until), cutOff(redis, proxy)])
      const played = await Promise.all(Array.from({ length: SESSIONS }, () => play(cluster, until)))
      await hurting
      const accepted = played.flatMap(({ runs }) => runs)
      const reasons = new Map<string, number>()
      for (const one of played) for (const reason of await check(cluster, one)) count(reasons, reason)
      console.log(`chaos: ${accepted.length} runs`, Object.fromEntries(reasons))
      expect(accepted.length).toBeGreaterThan(SESSIONS)
      expect(reasons.get('NoMoreToolCalls')).toBeGreaterThan(0)
      expect(Math.max(...accepted.map(({ waitedMs }) => waitedMs))).toBeLessThan(ENDS_WITHIN_MS)
    } finally {
      await redis.remove()
    }
  },
  WHOLE_MS,
)

/** Runs one after the other in one session, each read to its end. */
async function play(cluster: AgentCluster, until: number): Promise<Played> {
  const key = () => ({ 'idempotency-key': crypto.randomUUID() })
  const { session_id: sessionId } = (await cluster.call('POST', '/sessions', {}, key())).body
  const played: Played = { sessionId, runs: [] }
  let after = 0
  while (Date.now() < until) {
    const { status, body } = await cluster.call('POST', `/sessions/${sessionId}/run`, { goal: 'go' }, key())
    expect([status, body]).toEqual([202, expect.anything()])
    const acceptedAt = Date.now()
    const events = await cluster.readRun(sessionId, after)
    after = events.at(-1)?.id ?? after
    played.runs.push({ runId: body.run_id, events, waitedMs: Date.now() - acceptedAt })
  }
  return played
}

/** Kills and freezes nodes at random; one is always left alone. All of them serve again when it is over. */
async function hurt(nodes: ClusterNode[], until: number): Promise<void> {
  const busy = new Set<ClusterNode>()
  const wounds: Promise<void>[] = []
  while (Date.now() < until) {
    await pause(500 + Math.random() * 1_000)
    const free = nodes.filter((node) => !busy.has(node))
    const victim = free[Math.floor(Math.random() * free.length)]
    if (victim === undefined || free.length < 2) continue
    busy.add(victim)
    wounds.push(wound(victim).finally(() => busy.delete(victim)))
  }
  await Promise.all(wounds)
}

/** For a while there are no objects; later Redis is killed, and started again. */
async function cutOff(redis: TestServer, proxy: FlakyProxy): Promise<void> {
  await pause(CHAOS_MS / 4)
  proxy.plan(() => ({ type: 'refuse' }))
  proxy.cutAll()
  await pause(CHAOS_MS / 4)
  proxy.plan([])
  await pause(CHAOS_MS / 8)
  await redis.stop()
  await pause(AWAY_MS)
  await redis.start()
}

async function wound(node: ClusterNode): Promise<void> {
  if (Math.random() < 0.5) {
    await node.kill()
    await node.start()
    return
  }
  node.freeze()
  await pause(Math.random() * 3 * LEASE_MS)
  node.thaw()
}

/** What was seen is the log, without gaps, with one done for each run that was accepted. Returns how they ended. */
async function check(cluster: AgentCluster, { sessionId, runs }: Played): Promise<string[]> {
  const seen = runs.flatMap(({ events }) => events)
  expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1))
  const logs = await Promise.all(cluster.nodes.map(({ agent }) => wholeLog(agent.url, sessionId, seen.length)))
  for (const log of logs) expect(log).toEqual(seen)
  const kept = (await cluster.call('GET', `/sessions/${sessionId}/runs`)).body.runs
  expect(kept.map((run: { run_id: string }) => run.run_id)).toEqual(runs.map(({ runId }) => runId))
  for (const run of kept) expect(run.status).toBe('finished')
  const ends = seen.filter(({ event }) => event === 'done').map(({ data }) => JSON.parse(data))
  expect(ends.map((end) => end.run_id)).toEqual(runs.map(({ runId }) => runId))
  return ends.map((end) => end.finish_reason)
}

async function wholeLog(url: string, sessionId: string, count: number): Promise<RawEvent[]> {
  const response = await fetch(`${url}/sessions/${sessionId}/events?extended=1&after=0`)
  const log: RawEvent[] = []
  let rest = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = `${rest}${chunk}`.split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const [, id, event, data] = /^id: (\d+)\nevent: (.*)\ndata: (.*)$/.exec(part) ?? []
      if (id !== undefined) log.push({ id: Number(id), event: event ?? '', data: data ?? '' })
    }
    if (log.length >= count) break
  }
  return log
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}
