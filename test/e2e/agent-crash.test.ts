import { expect } from 'vitest'
import { openSqliteStore } from '../../src/agent/store/sqlite.ts'
import { type AgentProcess, agentProcess, type RawEvent } from '../support/agent-process.ts'
import { expectNothingLost, killInRounds, newSession, ROUND_SCRIPT, untilIdle } from '../support/agent-rounds.ts'
import { verifies } from '../support/verifies.ts'

verifies(
  ['agentstore:crash:one-done', 'agentstore:crash:ids-rise', 'agentstore:crash:valid-request'],
  'killed at random moments while runs come in, the server loses no run, no event and no step of a conversation',
  async () => {
    const agent = await agentProcess(ROUND_SCRIPT)
    const told = await killInRounds(agent, { rounds: 12, withinMs: 20_000 })
    const store = await openSqliteStore({ dir: agent.dataDir, maxSessions: 99, maxLogEvents: 1e9, maxLogBytes: 1e12 })
    expect(await expectNothingLost(store, told)).toContain('Interrupted')
    await store.close()
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
