import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Message, Run, StoredEvent } from '../../src/agent/model.ts'
import { validMessages } from '../../src/agent/request.ts'
import { openSqliteStore } from '../../src/agent/store/sqlite.ts'
import { type AgentProcess, agentProcess, type RawEvent } from '../support/agent-process.ts'
import { verifies } from '../support/verifies.ts'

const SESSIONS = 4
const ROUNDS = 12
const WITHIN_MS = 20_000
const LOOK = { tool_calls: [{ name: 'list_dir', input: { path: '.' } }] }
const WRITE = { tool_calls: [{ name: 'write_file', input: { path: 'a.txt', content: 'x' } }, ...LOOK.tool_calls] }
/** A run of several steps, none of them instant. */
const SCRIPT = [
  { match: 'goal', steps: [{ text: ['I ', 'look.'] }, { stall: 5 }, LOOK] },
  { match: 'goal', steps: [{ stall: 5 }, WRITE] },
  { match: 'goal', steps: [{ text: ['All ', 'is ', 'well.'] }, { stall: 5 }] },
]

verifies(
  ['agentstore:crash:one-done', 'agentstore:crash:ids-rise', 'agentstore:crash:valid-request'],
  'killed at random moments while runs come in, the server loses no run, no event and no step of a conversation',
  async () => {
    const agent = await agentProcess(SCRIPT)
    let server = await agent.start()
    const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => newSession(agent)))
    const accepted = new Map<string, string>()
    const seen = sessions.map((): RawEvent[] => [])
    const deadline = Date.now() + WITHIN_MS
    let rounds = 0
    while (rounds < ROUNDS && (rounds < 2 || Date.now() < deadline)) {
      const over = new AbortController()
      const busy = sessions.flatMap((id, index) => [
        submit(agent, id, `${rounds}-${index}`, accepted, over.signal),
        watch(agent, id, seen[index] ?? [], over.signal),
      ])
      await sleep(20 + Math.random() * 300)
      await server.kill('SIGKILL')
      over.abort()
      await Promise.all(busy)
      rounds += 1
      server = await agent.start()
    }
    await Promise.all(sessions.map((id) => untilIdle(agent, id)))
    expect(await server.child.kill('SIGTERM')).toBe(true)
    await server.ended

    const store = await openSqliteStore({ dir: agent.dataDir, maxSessions: 99, maxLogEvents: 1e9, maxLogBytes: 1e12 })
    const runs: Run[] = []
    for (const [index, id] of sessions.entries()) {
      const events = await store.log.read(id, 0, 1_000_000)
      runs.push(...(await store.runs.list(id)))
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place + 1))
      expect(seen[index]?.filter(({ id: seq, data }) => events[seq - 1]?.data !== data)).toEqual([])
      expectOneDoneEach(events, await store.runs.list(id))
      expectValid(await store.log.transcript(id))
    }
    await store.close()
    expect(accepted.size).toBeGreaterThan(SESSIONS)
    expect([...accepted.values()].filter((id) => !runs.some((run) => run.id === id))).toEqual([])
    // A repetition after a crash found the run of the first call.
    expect(new Set(runs.map(({ goal }) => goal)).size).toBe(runs.length)
    expect(new Set(runs.map(({ finishReason }) => finishReason))).toContain('Interrupted')
  },
  120_000,
)

verifies(
  ['agentstore:crash:plan-waits', 'agentstore:crash:interrupted', 'agentstore:crash:queue-goes-on'],
  'a plan waits over kill -9 and is decided after it; what ran is over before the port opens; what was queued goes on',
  async () => {
    const agent = await agentProcess([
      { match: 'stall', steps: [{ text: 'Hm' }, { stall: 'forever' }] },
      { match: 'plan', steps: [{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. paint it red' } }] }] },
      { match: 'plan', steps: [{ text: 'Understood.' }] },
      { match: 'later', steps: [{ text: 'Here.' }] },
    ])
    const first = await agent.start()
    const [approved, rejected, running] = await Promise.all([1, 2, 3].map(() => newSession(agent)))
    if (!approved || !rejected || !running) throw new Error('no sessions')
    for (const id of [approved, rejected]) {
      await agent.call('POST', `/sessions/${id}/run`, { goal: 'plan' })
      await untilStatus(agent, id, 'awaiting_plan')
    }
    const before = (await agent.call('GET', `/sessions/${approved}`)).body.pending_plan
    await agent.call('POST', `/sessions/${running}/run`, { goal: 'stall' })
    await agent.call('POST', `/sessions/${running}/run`, { goal: 'later', on_busy: 'enqueue' })
    await untilStatus(agent, running, 'running')
    await first.kill('SIGKILL')
    await agent.start()

    // At once: it was ended before the server could be asked.
    const runs = (await agent.call('GET', `/sessions/${running}/runs`)).body.runs
    expect(runs[0]).toMatchObject({ goal: 'stall', status: 'finished', finish_reason: 'Interrupted' })
    await untilIdle(agent, running)
    const told = await eventsOf(agent, running, 2)
    expect(told.filter(({ event }) => ['error', 'message', 'done'].includes(event)).map(({ event }) => event)).toEqual([
      'error',
      'done',
      'message',
      'done',
    ])
    expect(told.map(({ id }) => id)).toEqual([...told.map(({ id }) => id)].sort((a, b) => a - b))

    expect((await agent.call('GET', `/sessions/${approved}`)).body.pending_plan).toEqual(before)
    const edited = { decision: 'approve', plan: '1. paint it green', plan_id: before.plan_id }
    expect((await agent.call('POST', `/sessions/${approved}/plan`, edited)).status).toBe(200)
    const refusal = { decision: 'reject', feedback: 'red is ugly' }
    expect((await agent.call('POST', `/sessions/${rejected}/plan`, refusal)).status).toBe(200)
    await Promise.all([untilIdle(agent, approved), untilIdle(agent, rejected)])
    for (const [id, says] of [
      [approved, 'paint it green'],
      [rejected, 'red is ugly'],
    ] as const) {
      const { transcript } = (await agent.call('GET', `/sessions/${id}`)).body
      expect(JSON.stringify(transcript.filter(({ role }: { role: string }) => role === 'tool'))).toContain(says)
      expect((await eventsOf(agent, id, 1)).at(-1)?.data).toContain('"finish_reason":"NoMoreToolCalls"')
    }
    expect((await agent.call('POST', `/sessions/${approved}/plan`, edited)).status).toBe(200)
  },
  120_000,
)

async function newSession(agent: AgentProcess): Promise<string> {
  const { body } = await agent.call('POST', '/sessions')
  return body.session_id
}

/** Asks for one run after another until the server is gone; what was accepted is noted by its key. */
async function submit(
  agent: AgentProcess,
  id: string,
  name: string,
  accepted: Map<string, string>,
  over: AbortSignal,
): Promise<void> {
  for (let count = 0; !over.aborted; count++) {
    const key = `${name}-${count}`
    const body = { goal: `goal ${key}`, on_busy: 'enqueue' }
    const answer = await agent
      .call('POST', `/sessions/${id}/run`, body, { 'idempotency-key': key })
      .catch(() => undefined)
    if (answer?.status === 202) accepted.set(key, answer.body.run_id)
    await sleep(answer?.status === 202 ? 15 : 40)
  }
}

/** Reads a session's events from where it was left, until the server is gone. */
async function watch(agent: AgentProcess, id: string, seen: RawEvent[], over: AbortSignal): Promise<void> {
  const path = `/sessions/${id}/events?extended=1&after=${seen.at(-1)?.id ?? 0}`
  for await (const event of agent.events(path, over)) seen.push(event)
}

async function untilIdle(agent: AgentProcess, id: string): Promise<void> {
  const isOver = async () =>
    (await agent.call('GET', `/sessions/${id}/runs`)).body.runs.every(
      ({ status }: { status: string }) => status === 'finished',
    )
  await expect.poll(isOver, { timeout: 60_000, interval: 50 }).toBe(true)
}

async function untilStatus(agent: AgentProcess, id: string, status: string): Promise<void> {
  const now = async () => (await agent.call('GET', `/sessions/${id}`)).body.status
  await expect.poll(now, { timeout: 20_000, interval: 20 }).toBe(status)
}

/** What a session has told, up to so many ends of runs. */
async function eventsOf(agent: AgentProcess, id: string, runs: number): Promise<RawEvent[]> {
  const events: RawEvent[] = []
  for await (const event of agent.events(`/sessions/${id}/events?after=0`)) {
    events.push(event)
    if (events.filter((one) => one.event === 'done').length === runs) break
  }
  return events
}

function expectOneDoneEach(events: StoredEvent[], runs: Run[]): void {
  const done = events.filter(({ type }) => type === 'done').map(({ runId }) => runId)
  expect(done.sort()).toEqual(runs.map(({ id }) => id).sort())
  for (const { id, status } of runs) {
    expect(status).toBe('finished')
    expect(events.findLast(({ runId }) => runId === id)?.type).toBe('done')
  }
}

/** As a provider checks it: every call has one result, directly behind it. */
function expectValid(transcript: Message[]): void {
  const valid = validMessages(transcript)
  for (const [index, { role, content }] of valid.entries()) {
    expect(content.length).toBeGreaterThan(0)
    const calls = content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    const answered = valid[index + 1]?.content.flatMap((block) =>
      block.type === 'tool_result' ? [block.toolUseId] : [],
    )
    if (calls.length > 0) expect([role, answered]).toEqual(['assistant', calls])
    if (role === 'tool') expect(valid[index - 1]?.role).toBe('assistant')
  }
}
