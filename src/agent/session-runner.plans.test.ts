import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { callOf, FINISH, handMade, newRun, newSession, resultTexts } from './core-fixture.contract.ts'
import { type Message, NO_USAGE, type PlanDecision } from './model.ts'
import type { Provider } from './provider/port.ts'
import { scriptedProvider } from './provider/scripted.ts'
import { type RunnerBench, runnerBench } from './session-runner-fixture.contract.ts'
import { memoryStore } from './store/memory.ts'

const PLAN = { tool_calls: [{ name: 'propose_plan', input: { plan: '1. write' } }] }
const WRITE = { tool_calls: [{ name: 'write', input: { text: 'x' } }] }
const CAREFUL = scriptedProvider([[WRITE], [PLAN], [WRITE], [{ text: 'Ready.' }]])
const STOPS_AFTER_PLAN = scriptedProvider([[PLAN], [{ stall: 'forever' }]])
const APPROVE: PlanDecision = { decision: 'approve', feedback: null, plan: null }

describe('a plan', () => {
  verifies('agent:plan:mode', 'is refused its writes before it is approved, and gets them after', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    const run = await waiting(bench)
    expect(bench.written).toEqual([])
    expect(await bench.told('tool_result')).toMatchObject([{ name: 'write', success: false }])
    expect(bench.runner.active).toBe(0)
    const session = await bench.store.sessions.get('s1')
    expect(session).toMatchObject({ status: 'awaiting_plan', pendingPlan: { plan: '1. write', runId: run.id } })

    const decided = await bench.runner.decide('s1', session?.pendingPlan?.planId ?? '', APPROVE)
    expect(decided.runId).toBe(run.id)
    await bench.until('done')
    expect(bench.written).toEqual(['x'])
    expect(await bench.told('done')).toMatchObject([
      { finish_reason: 'NoMoreToolCalls', total_steps: 4, run_id: run.id },
    ])
  })

  verifies(
    'agent:plan:reaches-agent',
    'that was changed by the person reaches the agent as it was changed',
    async () => {
      const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
      await waiting(bench)
      await bench.runner.decide('s1', null, { decision: 'approve', feedback: 'carefully', plan: '1. write less' })
      await bench.until('done')
      const texts = resultTexts(await bench.store.log.transcript('s1'))
      expect(texts[1]).toContain('1. write less')
      expect(texts[1]).toContain('carefully')
    },
  )

  test('that is rejected tells the agent why, and writes stay refused', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    await waiting(bench)
    await bench.runner.decide('s1', null, { decision: 'reject', feedback: 'too much', plan: null })
    await bench.until('done')
    expect(resultTexts(await bench.store.log.transcript('s1'))[1]).toContain('too much')
    expect(bench.written).toEqual([])
    expect(await bench.told('plan_decided')).toMatchObject([{ decision: 'reject' }])
  })

  test('is not approved by the result of another call with the same id', async () => {
    const turns = [callOf('0', 'look'), callOf('0', 'propose_plan', { plan: 'p' }), callOf('0', 'write', { text: 'x' })]
    const model = handMade((_request, turn) => [...turns.slice(turn - 1, turn), FINISH])
    const bench = await runnerBench(model, { session: { planMode: true } })
    await waiting(bench)
    await bench.runner.decide('s1', null, { decision: 'reject', feedback: null, plan: null })
    await bench.until('done')
    expect(bench.written).toEqual([])
  })

  verifies('agent:plan:released', 'keeps the session busy and the queue waiting until it is decided', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    await waiting(bench)
    await expect(bench.submit('more')).rejects.toMatchObject({ code: 'session_busy' })
    await bench.submit('more', { whenBusy: 'enqueue' })
    await bench.runner.decide('s1', null, APPROVE)
    await bench.until('done', 2)
    expect((await bench.told('run_started')).map(({ goal }) => goal)).toEqual(['go', 'more'])
  })

  test('of another id, in another session, or none at all cannot be decided', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    await expect(bench.runner.decide('s1', null, APPROVE)).rejects.toMatchObject({ code: 'no_plan' })
    await waiting(bench)
    await expect(bench.runner.decide('s1', 'other', APPROVE)).rejects.toMatchObject({ code: 'no_plan' })
    await expect(bench.runner.decide('s2', null, APPROVE)).rejects.toMatchObject({ code: 'not_found' })
    await bench.runner.cancel('s1')
  })

  test('that is decided twice at once is carried out once', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    await waiting(bench)
    const [one, two] = await Promise.all([1, 2].map(() => bench.runner.decide('s1', null, APPROVE)))
    expect(two).toEqual(one)
    await bench.until('done')
    expect(bench.written).toEqual(['x'])
    expect(await bench.told('plan_decided')).toHaveLength(1)
    expect(bench.finished).toEqual(['NoMoreToolCalls'])
  })

  verifies('agent:plan:repeated', 'takes the same decision again, also without its id, and no other one', async () => {
    const bench = await runnerBench(STOPS_AFTER_PLAN, { session: { planMode: true } })
    await waiting(bench)
    const decision: PlanDecision = { decision: 'approve', feedback: 'well', plan: '1. write less' }
    const first = await bench.runner.decide('s1', null, decision)
    expect(await bench.runner.decide('s1', first.planId, decision)).toMatchObject(first)
    expect(await bench.runner.decide('s1', null, decision)).toMatchObject(first)
    for (const other of [APPROVE, { ...decision, feedback: 'badly' }, { ...decision, decision: 'reject' as const }]) {
      await expect(bench.runner.decide('s1', first.planId, other)).rejects.toMatchObject({
        code: 'plan_decided',
        details: { plan_id: first.planId, decision: 'approve' },
      })
    }
    await bench.runner.cancel('s1')
    expect(await bench.runner.decide('s1', first.planId, decision)).toMatchObject(first)
    await expect(bench.runner.decide('s1', null, decision)).rejects.toMatchObject({ code: 'no_plan' })
    expect(await bench.told('plan_decided')).toHaveLength(1)
  })

  test('of two decisions that differ and come at once exactly one counts', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    await waiting(bench)
    const both = await Promise.allSettled([
      bench.runner.decide('s1', null, { decision: 'reject', feedback: null, plan: null }),
      bench.runner.decide('s1', null, APPROVE),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'plan_decided' } })
    await bench.until('done')
    expect(await bench.told('plan_decided')).toHaveLength(1)
  })

  test('that is decided and cancelled at once ends once', async () => {
    const bench = await runnerBench(STOPS_AFTER_PLAN, { session: { planMode: true } })
    await waiting(bench)
    const [decided] = await Promise.allSettled([
      bench.runner.decide('s1', null, APPROVE),
      bench.runner.cancel('s1'),
      bench.runner.cancel('s1'),
    ])
    if (decided.status === 'rejected') expect(decided.reason).toMatchObject({ code: 'no_plan' })
    await bench.until('done')
    await expect.poll(() => bench.runner.active).toBe(0)
    expect(bench.finished).toEqual(['Cancelled'])
  })

  verifies(
    'agent:plan:expires',
    'that nobody answers in time counts as rejected; one that has time stays',
    async () => {
      let time = 1_000
      const options = { now: () => time, planLifeMs: 100 }
      const bench = await runnerBench(CAREFUL, { session: { planMode: true }, options })
      await waiting(bench)
      time = 1_099
      await bench.runner.sweep()
      expect((await bench.store.sessions.get('s1'))?.status).toBe('awaiting_plan')
      time = 1_100
      await bench.runner.sweep()
      await bench.until('done')
      expect(resultTexts(await bench.store.log.transcript('s1'))[1]).toContain('Nobody answered')
      expect(bench.written).toEqual([])
    },
  )

  test('outlives a stop of the server and cannot be decided while it stops', async () => {
    const bench = await runnerBench(CAREFUL, { session: { planMode: true } })
    await waiting(bench)
    await bench.runner.stop()
    await expect(bench.runner.decide('s1', null, APPROVE)).rejects.toMatchObject({ code: 'shutting_down' })
    expect((await bench.store.sessions.get('s1'))?.status).toBe('awaiting_plan')
    expect(bench.finished).toEqual([])
  })
})

describe('after a crash', () => {
  verifies(
    'agent:boot:ends-running',
    'a run that was under way ends with an error and done, and the next one can come',
    async () => {
      const bench = await crashed('running', scriptedProvider({ turns: [], after: 'Hello.' }))
      expect(await bench.runner.recover()).toBe(1)
      expect((await bench.events()).map(({ type }) => type)).toEqual(['error', 'done'])
      expect(await bench.told('error')).toMatchObject([{ code: 'interrupted', run_id: 'r1' }])
      expect(await bench.told('done')).toMatchObject([{ finish_reason: 'Interrupted', total_steps: 1, run_id: 'r1' }])
      expect(await bench.store.runs.get('s1', 'r1')).toMatchObject({ status: 'finished', finishReason: 'Interrupted' })
      expect(await bench.runner.recover()).toBe(0)
      await bench.submit('again')
      await bench.until('done', 2)
    },
  )

  verifies(
    'agent:boot:ends-running',
    'runs that were queued start, behind one that was under way or alone',
    async () => {
      for (const state of ['running', 'idle'] as const) {
        const bench = await crashed(state, scriptedProvider({ turns: [], after: 'Hello.' }), true)
        await bench.runner.sweep()
        await bench.until('run_started')
        expect(await bench.told('run_started')).toMatchObject([{ goal: 'queued' }])
        await bench.until('done', 2)
      }
    },
  )

  verifies('agent:plan:survives', 'a plan goes on waiting, and its decision carries the same run on', async () => {
    const first = await runnerBench(CAREFUL, { session: { planMode: true } })
    const run = await waiting(first)
    const bench = await runnerBench(CAREFUL, { store: first.store })
    await bench.runner.sweep()
    expect((await bench.store.sessions.get('s1'))?.status).toBe('awaiting_plan')
    await bench.runner.decide('s1', null, APPROVE)
    await bench.until('done')
    expect(bench.written).toEqual(['x'])
    expect(await bench.told('done')).toMatchObject([
      { finish_reason: 'NoMoreToolCalls', run_id: run.id, total_steps: 4 },
    ])
  })
})

async function waiting(bench: RunnerBench) {
  const run = await bench.submit('go')
  await bench.until('plan_proposed')
  await expect.poll(() => bench.runner.active).toBe(0)
  return run
}

/** A store as a process left it that died in the middle of run `r1`, or directly after it. */
async function crashed(state: 'running' | 'idle', provider: Provider, queued = false): Promise<RunnerBench> {
  const store = memoryStore()
  await store.sessions.create(newSession('s1'), null)
  const { claim } = await store.runs.admit(newRun('r1', 's1'), { receipt: null, whenBusy: 'refuse' })
  if (claim === null) throw new Error('not admitted')
  if (queued) await store.runs.admit(newRun('r2', 's1', { goal: 'queued' }), { receipt: null, whenBusy: 'enqueue' })
  const messages: Message[] = [
    { role: 'user', content: [{ type: 'text', text: 'go' }], runId: 'r1', step: 0, createdAt: 0 },
  ]
  const usage = { ...NO_USAGE, totalSteps: 1 }
  const entry = { now: 0, runId: 'r1', events: [], messages, run: { status: 'running' as const, usage } }
  await store.log.append(claim, entry)
  if (state === 'idle')
    await store.log.append(claim, {
      now: 0,
      runId: 'r1',
      events: [{ type: 'done', finishReason: 'NoMoreToolCalls', usage }],
      messages: [],
      session: { status: 'idle', activeRunId: null, pendingPlan: null },
      run: { status: 'finished', finishReason: 'NoMoreToolCalls' },
    })
  // Its lease ends with the process.
  await store.leases.release(claim)
  return runnerBench(provider, { store })
}
