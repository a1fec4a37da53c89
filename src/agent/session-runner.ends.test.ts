import { describe, expect } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { callOf, FINISH, handMade, newRun, newSession, resultTexts } from './core-fixture.contract.ts'
import { NO_USAGE } from './model.ts'
import { ProviderError } from './provider/port.ts'
import { scriptedProvider } from './provider/scripted.ts'
import { type RunnerBench, runnerBench } from './session-runner-fixture.contract.ts'
import { memoryStore } from './store/memory.ts'
import type { Tool } from './tools/port.ts'

const PLANS = scriptedProvider([
  [{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. write' } }] }],
  [{ text: 'Ready.' }],
])
const HANGS: Tool = {
  name: 'hang',
  description: 'Hangs.',
  parameters: {},
  readOnly: false,
  source: 'builtin',
  run: (_input, { signal }) =>
    new Promise((resolve) =>
      signal.addEventListener('abort', () => resolve({ success: false, text: 'aborted' }), { once: true }),
    ),
}
const CALLS_HANG = handMade(() => [callOf('a', 'hang'), callOf('b', 'write', { text: 'x' }), FINISH])

describe('every tool_call has its tool_result:', () => {
  for (const decision of ['approve', 'reject'] as const) {
    verifies('agent:events:every-result', `a plan, with the decision (${decision})`, async () => {
      const bench = await runnerBench(PLANS)
      await bench.submit('go')
      await bench.until('plan_proposed')
      await expect.poll(() => bench.runner.active).toBe(0)
      await bench.runner.decide('s1', null, { decision, feedback: 'mind the gap', plan: null })
      await bench.until('done')
      const [result] = await answered(bench)
      expect(result).toMatchObject({ name: 'propose_plan', success: decision === 'approve', step: 1 })
      expect(result?.output).toContain('mind the gap')
    })
  }

  verifies('agent:events:every-result', 'a plan that waited when the run was cancelled', async () => {
    const bench = await runnerBench(PLANS)
    await bench.submit('go')
    await bench.until('plan_proposed')
    await bench.runner.cancel('s1')
    expect(await answered(bench)).toMatchObject([{ name: 'propose_plan', success: false }])
    expect(resultTexts(await bench.store.log.transcript('s1'))).toEqual([expect.stringContaining('decided')])
  })

  verifies('agent:events:every-result', 'a tool that was cancelled, and the one behind it', async () => {
    const bench = await runnerBench(CALLS_HANG, { tools: [HANGS] })
    await bench.submit('go')
    await bench.until('tool_call', 2)
    await bench.runner.cancel('s1')
    const results = await answered(bench)
    expect(results).toMatchObject([
      { call_id: 'a', success: false, output: expect.stringContaining('Cancelled') },
      { call_id: 'b', success: false },
    ])
    expect(bench.written).toEqual([])
    expect((await bench.events()).map(({ type }) => type).slice(-3)).toEqual(['tool_result', 'tool_result', 'done'])
  })

  verifies('agent:events:every-result', 'a tool whose run had no time left', async () => {
    const bench = await runnerBench(CALLS_HANG, { tools: [HANGS], options: { wallClockMs: 20 } })
    await bench.submit('go')
    await bench.until('done')
    expect(await answered(bench)).toMatchObject([{ call_id: 'a' }, { call_id: 'b' }])
  })

  verifies(
    'agent:events:every-result',
    'a tool that ran when the process died; the next run tells it too',
    async () => {
      const store = memoryStore()
      await store.sessions.create(newSession('s1'), null)
      const { claim } = await store.runs.admit(newRun('r1', 's1'), { receipt: null, whenBusy: 'refuse' })
      if (claim === null) throw new Error('not admitted')
      const call = { id: 'a', name: 'write' }
      await store.log.append(claim, {
        now: 0,
        runId: 'r1',
        events: [{ type: 'tool_call', ...call, arguments: {}, step: 1 }],
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'go' }], runId: 'r1', step: 0, createdAt: 0 },
          {
            role: 'assistant',
            content: [{ type: 'tool_use', ...call, input: {} }],
            runId: 'r1',
            step: 1,
            createdAt: 0,
          },
        ],
        run: { status: 'running', usage: { ...NO_USAGE, totalSteps: 1 } },
      })
      await store.leases.release(claim)
      const bench = await runnerBench(
        handMade(() => [{ type: 'text', delta: 'Hi.' }, FINISH]),
        { store },
      )
      await bench.runner.recover()
      expect((await bench.events()).map(({ type }) => type)).toEqual(['tool_call', 'tool_result', 'error', 'done'])
      expect(await answered(bench)).toMatchObject([{ call_id: 'a', name: 'write', success: false, run_id: 'r1' }])
      await bench.runner.recover()
      expect(await bench.told('tool_result')).toHaveLength(1)
      expect(resultTexts(await store.log.transcript('s1'))).toEqual([expect.stringContaining('not known')])
    },
  )
})

describe('a run that failed says so before done:', () => {
  verifies('agent:events:failure-ends', 'a conversation that is too long', async () => {
    const model = handMade(() => {
      throw new ProviderError('context_overflow', 'too long')
    })
    expect(await endsWith(await runnerBench(model))).toEqual(['context_overflow', 'ContextOverflow'])
  })

  verifies('agent:events:failure-ends', 'a model that broke off by itself', async () => {
    const model = handMade(() => [
      { type: 'text', delta: 'It is' },
      { ...FINISH, reason: 'length' },
    ])
    expect(await endsWith(await runnerBench(model))).toEqual(['provider_stopped', 'ProviderStop'])
  })

  verifies('agent:events:failure-ends', 'a limit that was set is no failure', async () => {
    const bench = await runnerBench(handMade((_request, turn) => [callOf(`${turn}`, 'look'), FINISH]))
    await bench.submit('go', { maxSteps: 2 })
    await bench.until('done')
    expect([await bench.told('error'), bench.finished]).toEqual([[], ['BudgetExceeded']])
  })
})

/** The results, each of which answers one call, and all of the calls. */
async function answered(bench: RunnerBench): Promise<Record<string, unknown>[]> {
  const results = await bench.told('tool_result')
  const calls = await bench.told('tool_call')
  expect(results.map(({ call_id: id }) => id)).toEqual(calls.map(({ call_id: id }) => id))
  return results
}

async function endsWith(bench: RunnerBench): Promise<unknown[]> {
  const run = await bench.submit('go')
  await bench.until('done')
  const [error] = await bench.told('error')
  const [done] = await bench.told('done')
  expect((await bench.events()).map(({ type }) => type).slice(-2)).toEqual(['error', 'done'])
  expect(await bench.store.runs.get('s1', run.id)).toMatchObject({ error: error?.message })
  return [error?.code, done?.finish_reason]
}
