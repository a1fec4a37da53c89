import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { handMade } from './core-fixture.contract.ts'
import { scriptedProvider } from './provider/scripted.ts'
import { type RunnerBench, runnerBench } from './session-runner-fixture.contract.ts'

const STALLS = scriptedProvider([[{ text: 'Thinking' }, { stall: 'forever' }]])
const TALKS = scriptedProvider({ turns: [], after: 'Hello.' })

describe('every run has exactly one done:', () => {
  verifies(
    ['agent:events:one-done', 'agent:events:order'],
    'after an answer, in the order of the contract, and the session is free at once',
    async () => {
      const bench = await runnerBench(scriptedProvider([[{ tool_calls: [{ name: 'look' }] }], [{ text: 'There.' }]]))
      const run = await bench.submit('look')
      await bench.until('done')
      const types = (await bench.events()).map(({ type }) => type).filter((type) => type !== 'usage')
      expect(types).toEqual(['run_started', 'tool_call', 'tool_result', 'partial_message', 'message', 'done'])
      expect(await bench.told('done')).toMatchObject([
        { finish_reason: 'NoMoreToolCalls', total_steps: 2, run_id: run.id },
      ])
      expect(await bench.store.sessions.get('s1')).toMatchObject({ status: 'idle', activeRunId: null, turnCount: 1 })
      expect(await bench.store.runs.get('s1', run.id)).toMatchObject({ status: 'finished', usage: { totalSteps: 2 } })
      expect((await bench.store.log.transcript('s1')).map(({ role }) => role)).toEqual([
        'user',
        'assistant',
        'tool',
        'assistant',
      ])
      await bench.submit('again')
      await bench.until('done', 2)
      expect(bench.finished).toEqual(['NoMoreToolCalls', 'NoMoreToolCalls'])
    },
  )

  verifies(
    ['agent:events:one-done', 'agent:loop:provider-stop'],
    'after an error of the provider, which is told before',
    async () => {
      const bench = await runnerBench(scriptedProvider([[{ error: { kind: 'auth', message: 'No such key.' } }]]))
      await bench.submit('go')
      await expectEnd(bench, 'ProviderStop', { code: 'provider_auth', message: 'No such key.' })
    },
  )

  test('after an error that nobody foresaw, whose text stays in the log', async () => {
    const bench = await runnerBench(
      handMade(() => {
        throw new Error('secret detail')
      }),
    )
    await bench.submit('go')
    await expectEnd(bench, 'Interrupted', { code: 'internal' })
    expect(JSON.stringify(await bench.events())).not.toContain('secret detail')
  })

  verifies(
    'agent:events:one-done',
    'after a cancel in the middle of a stream; a second cancel finds nothing',
    async () => {
      const bench = await runnerBench(STALLS)
      await bench.submit('go')
      await bench.until('partial_message')
      expect(await bench.runner.cancel('s1')).toBe(true)
      expect(bench.runner.active).toBe(0)
      await expectEnd(bench, 'Cancelled')
      expect(await bench.runner.cancel('s1')).toBe(false)
    },
  )

  test('after a cancel while the very first piece of text is being kept', async () => {
    const bench = await runnerBench(STALLS)
    const { append } = bench.store.log
    bench.store.log.append = async (claim, entry) => {
      if (entry.events.some(({ type }) => type === 'partial_message')) void bench.runner.cancel('s1')
      return append(claim, entry)
    }
    await bench.submit('go')
    await expectEnd(bench, 'Cancelled')
  })

  test('after a cancel while a plan waits, which cannot be decided any more', async () => {
    const bench = await runnerBench(PLANS)
    await bench.submit('go')
    await bench.until('plan_proposed')
    expect(await bench.runner.cancel('s1')).toBe(true)
    await expectEnd(bench, 'Cancelled')
    await expect(bench.runner.decide('s1', null, APPROVE)).rejects.toMatchObject({ code: 'no_plan' })
  })

  test('after a cancel in the moment the plan is being kept', async () => {
    const bench = await runnerBench(PLANS)
    const { append } = bench.store.log
    let cancelled: Promise<boolean> | undefined
    bench.store.log.append = async (claim, entry) => {
      if (entry.events.some(({ type }) => type === 'plan_proposed')) cancelled = bench.runner.cancel('s1')
      return append(claim, entry)
    }
    await bench.submit('go')
    await expectEnd(bench, 'Cancelled')
    expect(await cancelled).toBe(true)
    expect(await bench.store.sessions.get('s1')).toMatchObject({ status: 'idle', pendingPlan: null })
  })

  verifies('agent:errors:draining', 'after the server stops, with Interrupted; then nothing new is taken', async () => {
    const bench = await runnerBench(STALLS)
    await bench.submit('go')
    await bench.submit('later', { whenBusy: 'enqueue' })
    await bench.until('partial_message')
    await bench.runner.stop()
    await expectEnd(bench, 'Interrupted', { code: 'interrupted' })
    await expect(bench.submit('more')).rejects.toMatchObject({ code: 'shutting_down' })
    expect((await bench.store.runs.list('s1')).map(({ status }) => status)).toEqual(['finished', 'queued'])
  })

  verifies('agent:loop:wall-clock', 'after its time is over, with WallClockExceeded', async () => {
    const bench = await runnerBench(STALLS, { options: { wallClockMs: 20 } })
    await bench.submit('go')
    await expectEnd(bench, 'WallClockExceeded')
  })

  verifies('agent:events:one-done', 'before its session is deleted; what was queued is never started', async () => {
    let turns = 0
    const bench = await runnerBench(
      handMade(async function* (_request, turn, signal) {
        turns = turn
        yield { type: 'text', delta: 'Hm' }
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
      }),
    )
    await bench.submit('go')
    await bench.submit('queued', { whenBusy: 'enqueue' })
    await bench.until('partial_message')
    await bench.runner.forget('s1')
    await expectEnd(bench, 'Cancelled')
    await bench.store.sessions.remove('s1')
    expect(bench.runner.active).toBe(0)
    expect(turns).toBe(1)
  })

  test('a session that is gone from the store ends the call of the model, and nothing is thrown', async () => {
    let left = () => {}
    const aborted = new Promise<void>((resolve) => {
      left = resolve
    })
    const bench = await runnerBench(
      handMade(async function* (_request, _turn, signal) {
        signal.addEventListener('abort', () => left())
        await bench.store.sessions.remove('s1')
        yield { type: 'text', delta: 'Hm' }
        await aborted
      }),
    )
    await bench.submit('go')
    await aborted
    await bench.runner.stop()
    expect(bench.finished).toEqual([])
  })
})

describe('runs of one session', () => {
  test('are refused while one is active, with its id', async () => {
    const bench = await runnerBench(STALLS)
    const { id } = await bench.submit('go')
    await expect(bench.submit('more')).rejects.toMatchObject({ code: 'session_busy', details: { active_run_id: id } })
    await bench.runner.cancel('s1')
  })

  test('wait in a queue and start in its order, each with its own done', async () => {
    const bench = await runnerBench(TALKS)
    const runs = await Promise.all(['a', 'b', 'c'].map((goal) => bench.submit(goal, { whenBusy: 'enqueue' })))
    expect(runs.map(({ status }) => status)).toEqual(['running', 'queued', 'queued'])
    await bench.until('done', 3)
    expect((await bench.told('run_started')).map(({ goal }) => goal)).toEqual(['a', 'b', 'c'])
    expect((await bench.told('done')).map(({ run_id }) => run_id)).toEqual(runs.map(({ id }) => id))
  })

  test('the next in the queue follows after a cancel and after an error', async () => {
    const bench = await runnerBench(
      scriptedProvider([
        { match: 'stall', steps: [{ stall: 'forever' }] },
        { match: 'fail', steps: [{ error: { kind: 'other', message: 'no' } }] },
        { match: 'talk', steps: [{ text: 'Hi.' }] },
      ]),
    )
    await bench.submit('stall')
    await bench.submit('fail', { whenBusy: 'enqueue' })
    await bench.submit('talk', { whenBusy: 'enqueue' })
    await bench.runner.cancel('s1')
    await bench.until('done', 3)
    expect(bench.finished).toEqual(['Cancelled', 'ProviderStop', 'NoMoreToolCalls'])
  })

  verifies(
    'agent:run:interrupt',
    'interrupt ends the active one and starts next; what was queued before follows in its order',
    async () => {
      const bench = await runnerBench(
        scriptedProvider([
          { match: 'stall', steps: [{ stall: 'forever' }] },
          { match: 'talk', steps: [{ text: 'Hi.' }] },
        ]),
      )
      await bench.submit('stall')
      for (const goal of ['talk a', 'talk b']) await bench.submit(goal, { whenBusy: 'enqueue' })
      await bench.submit('talk now', { whenBusy: 'interrupt' })
      await bench.until('done', 4)
      const started = (await bench.told('run_started')).map(({ goal }) => goal)
      expect(started).toEqual(['stall', 'talk now', 'talk a', 'talk b'])
      expect(bench.finished[0]).toBe('Cancelled')
    },
  )

  verifies(
    'agent:run:interrupt',
    'of several that interrupt at once none ends another that began after it',
    async () => {
      const bench = await runnerBench(scriptedProvider([{ match: 'stall', steps: [{ stall: 'forever' }] }]))
      await bench.submit('stall')
      await bench.until('run_started')
      await Promise.all(['one', 'two', 'three'].map((goal) => bench.submit(goal, { whenBusy: 'interrupt' })))
      await bench.until('done', 4)
      await expect.poll(() => bench.finished.length).toBe(4)
      expect(bench.finished.filter((reason) => reason === 'Cancelled')).toHaveLength(1)
    },
  )

  test('an interrupt that finds the queue full is refused and ends nothing', async () => {
    const bench = await runnerBench(STALLS, { options: { maxQueued: 1 } })
    await bench.submit('go')
    await bench.submit('waits', { whenBusy: 'enqueue' })
    await expect(bench.submit('now', { whenBusy: 'interrupt' })).rejects.toMatchObject({ code: 'queue_full' })
    expect(bench.finished).toEqual([])
    await bench.runner.forget('s1')
  })

  test('an interrupt that is repeated with its key finds its own run and leaves it alone', async () => {
    const bench = await runnerBench(STALLS)
    const order = { whenBusy: 'interrupt' as const, receipt: { key: 'k', bodyHash: 'b', now: 0 } }
    const first = await bench.submit('go', order)
    expect((await bench.submit('go', order)).id).toBe(first.id)
    expect(bench.finished).toEqual([])
    await bench.runner.cancel('s1')
  })

  test('too many at once are refused', async () => {
    const bench = await runnerBench(STALLS, { options: { maxConcurrentRuns: 0 } })
    await expect(bench.submit('go')).rejects.toMatchObject({ code: 'too_many_runs' })
  })
})

const PLANS = scriptedProvider([[{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. write' } }] }]])
const APPROVE = { decision: 'approve', feedback: null, plan: null } as const

async function expectEnd(
  bench: RunnerBench,
  reason: string,
  error?: { code: string; message?: string },
): Promise<void> {
  await bench.until('done')
  expect(await bench.told('done')).toMatchObject([{ finish_reason: reason }])
  expect(await bench.told('error')).toMatchObject(error === undefined ? [] : [error])
  expect((await bench.events()).at(-1)?.type).toBe('done')
  expect(bench.finished).toEqual([reason])
}
