import { describe, expect, test } from 'vitest'
import { message, newRun } from '../core-fixture.contract.ts'
import type { DecidedPlan } from '../model.ts'
import {
  ENQUEUE,
  ended,
  entry,
  given,
  IDLE,
  ids,
  PLAN,
  partial,
  proposed,
  REFUSE,
  receipt,
} from './fixtures.contract.ts'
import type { AgentStore } from './port.ts'

/** What {@link RunStore} and the store's leases promise. */
export function runsContract(at: () => AgentStore): void {
  admissions(at)
  plans(at)
}

function admissions(at: () => AgentStore): void {
  describe('a run', () => {
    test('is taken at once by an idle session, which is claimed with it', async () => {
      const { sessions, runs, leases } = at()
      const { run, repeated, claim } = await runs.admit(newRun('r1', 's1'), REFUSE)
      expect({ repeated, ...run }).toMatchObject({ repeated: false, status: 'running', startedAt: 2_000, afterSeq: 0 })
      const busy = { status: 'running', activeRunId: 'r1', turnCount: 1, lastActive: 2_000 }
      expect(await sessions.get('s1')).toMatchObject(busy)
      expect(ids(await runs.unfinished())).toEqual(['s1'])
      expect(await leases.claim('s1')).toBeNull()
      expect(await leases.renew([given(claim)])).toEqual([])
    })

    test('is refused by a busy one with the id of its run, and nothing is changed by that', async () => {
      const { sessions, runs } = at()
      await runs.admit(newRun('r1', 's1'), REFUSE)
      const refused = runs.admit(newRun('r2', 's1'), { ...REFUSE, receipt: receipt('a', 0) })
      await expect(refused).rejects.toMatchObject({ code: 'session_busy', details: { active_run_id: 'r1' } })
      expect(await runs.get('s1', 'r2')).toBeNull()
      expect((await sessions.get('s1'))?.turnCount).toBe(1)
      const queued = await runs.admit(newRun('r2', 's1'), { ...ENQUEUE, receipt: receipt('b', 0) })
      expect(queued).toMatchObject({ repeated: false, claim: null })
    })

    test('of many that come at once exactly one is taken', async () => {
      const { runs } = at()
      const all = Array.from({ length: 8 }, (_, index) => runs.admit(newRun(`r${index}`, 's1'), REFUSE))
      const settled = await Promise.allSettled(all)
      expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    })

    test('waits among sixteen at most, and they come in their order once the session is idle', async () => {
      const { runs, log, leases } = at()
      const { claim } = await runs.admit(newRun('r0', 's1'), REFUSE)
      for (let index = 1; index <= 16; index++) {
        expect((await runs.admit(newRun(`r${index}`, 's1'), ENQUEUE)).run.status).toBe('queued')
      }
      await expect(runs.admit(newRun('r17', 's1'), ENQUEUE)).rejects.toMatchObject({
        code: 'queue_full',
        retryAfterMs: 5_000,
      })
      expect(await runs.next('s1', 3_000)).toBeNull()
      await log.append(given(claim), ended('r0'))
      const next = await runs.next('s1', 3_000)
      expect(next?.run).toMatchObject({ id: 'r1', status: 'running', startedAt: 3_000, afterSeq: 1, acceptedSeq: 0 })
      expect(await leases.renew([given(next?.claim)])).toEqual([])
      expect(await runs.next('s1', 3_000)).toBeNull()
      expect((await at().sessions.get('s1'))?.activeRunId).toBe('r1')
      expect(ids(await runs.list('s1'))).toEqual(Array.from({ length: 17 }, (_, index) => `r${index}`))
    })

    test('that comes between the end of one and the start of the next does not pass the queue', async () => {
      const { runs, log } = at()
      const { claim } = await runs.admit(newRun('r0', 's1'), REFUSE)
      await runs.admit(newRun('r1', 's1'), ENQUEUE)
      await log.append(given(claim), ended('r0'))
      expect((await runs.admit(newRun('r2', 's1'), ENQUEUE)).run.status).toBe('queued')
      expect((await runs.next('s1', 0))?.run.id).toBe('r1')
    })

    test('that is to be next goes before all that wait, the newest of such first, and learns what is active', async () => {
      const { runs, log } = at()
      const next = { receipt: receipt('n', 0), whenBusy: 'next' as const, maxQueued: 4 }
      let { claim } = await runs.admit(newRun('r0', 's1'), { ...next, receipt: null })
      for (const id of ['a', 'b']) await runs.admit(newRun(id, 's1'), ENQUEUE)
      const first = await runs.admit(newRun('x', 's1'), next)
      expect(first).toMatchObject({ run: { id: 'x', status: 'queued' }, claim: null, activeRunId: 'r0' })
      expect(await runs.admit(newRun('z', 's1'), next)).toMatchObject({ repeated: true, activeRunId: null })
      await runs.admit(newRun('y', 's1'), { ...next, receipt: null })
      const full = runs.admit(newRun('z', 's1'), { ...next, receipt: null })
      await expect(full).rejects.toMatchObject({ code: 'queue_full' })
      const order: string[] = []
      for (let last = 'r0'; order.length < 4; last = order.at(-1) ?? '') {
        await log.append(given(claim), ended(last))
        const started = await runs.next('s1', 0)
        order.push(started?.run.id ?? 'none')
        claim = given(started?.claim)
      }
      expect(order).toEqual(['y', 'x', 'a', 'b'])
    })

    test('is found again by its key, also while the session is busy; another body is refused', async () => {
      const { sessions, runs } = at()
      await runs.admit(newRun('r1', 's1'), { ...REFUSE, receipt: receipt('a', 0) })
      const again = await runs.admit(newRun('r2', 's1'), { ...REFUSE, receipt: receipt('a', 1) })
      expect(again).toMatchObject({ repeated: true, run: { id: 'r1' }, claim: null })
      expect((await sessions.get('s1'))?.turnCount).toBe(1)
      const other = runs.admit(newRun('r3', 's1'), { ...REFUSE, receipt: receipt('b', 2) })
      await expect(other).rejects.toMatchObject({ code: 'key_reused' })
    })

    test('that was queued says in its receipt where it was accepted, also after it has begun', async () => {
      const { runs, log } = at()
      const { claim } = await runs.admit(newRun('r1', 's1'), REFUSE)
      await log.append(given(claim), entry({ events: [partial('a')] }))
      const queue = { ...ENQUEUE, receipt: receipt('a', 0) }
      expect((await runs.admit(newRun('r2', 's1'), queue)).run).toMatchObject({ acceptedSeq: 1, afterSeq: 1 })
      await log.append(given(claim), ended('r1'))
      await runs.next('s1', 0)
      const again = await runs.admit(newRun('r3', 's1'), queue)
      expect(again.run).toMatchObject({ id: 'r2', acceptedSeq: 1, afterSeq: 2 })
    })

    test('that is queued makes its session unfinished though it is idle', async () => {
      const { runs, log } = at()
      const { claim } = await runs.admit(newRun('r1', 's1'), REFUSE)
      await runs.admit(newRun('r2', 's1'), ENQUEUE)
      await log.append(given(claim), ended('r1'))
      expect(ids(await runs.unfinished())).toEqual(['s1'])
      const next = await runs.next('s1', 0)
      await log.append(given(next?.claim), ended('r2'))
      expect(await runs.unfinished()).toEqual([])
    })
  })
}

function plans(at: () => AgentStore): void {
  const approved: DecidedPlan = {
    planId: 'p',
    runId: 'r1',
    decision: { decision: 'approve', feedback: 'go', plan: '1. do it' },
  }
  const goesOn = entry({
    messages: [message('tool', [{ type: 'tool_result', toolUseId: 'c', content: 'approved', isError: false }])],
    session: { status: 'running', activeRunId: 'r1', pendingPlan: null },
    run: { status: 'running' },
  })

  const waiting = async () => {
    const { runs, log } = at()
    const { claim } = await runs.admit(newRun('r1', 's1'), REFUSE)
    await log.append(given(claim), proposed(PLAN))
    return given(claim)
  }

  describe('a plan that waits', () => {
    test('is part of the session, which nobody holds and which takes no other run', async () => {
      const { runs, sessions, leases } = at()
      const owner = await waiting()
      const session = { status: 'awaiting_plan', activeRunId: 'r1', pendingPlan: PLAN }
      expect(await sessions.get('s1')).toMatchObject(session)
      expect(await runs.unfinished()).toMatchObject([session])
      expect(await leases.renew([owner])).toEqual([owner])
      await expect(runs.admit(newRun('r2', 's1'), REFUSE)).rejects.toMatchObject({ code: 'session_busy' })
    })

    test('is decided once, in one step with what follows, by a new holder', async () => {
      const { runs, sessions, log, leases } = at()
      const before = await waiting()
      const settled = await runs.settlePlan('s1', 'p', goesOn, approved)
      const claim = settled.settled ? settled.claim : null
      expect(given(claim).generation).toBeGreaterThan(before.generation)
      expect(await leases.renew([given(claim)])).toEqual([])
      expect(await sessions.get('s1')).toMatchObject({ status: 'running', pendingPlan: null, decidedPlan: approved })
      expect(await runs.get('s1', 'r1')).toMatchObject({ status: 'running' })
      expect(await log.transcript('s1')).toEqual(goesOn.messages)
      expect(await runs.settlePlan('s1', 'p', goesOn, approved)).toEqual({ settled: false })
      expect(await log.transcript('s1')).toEqual(goesOn.messages)
      await expect(log.append(before, entry({}))).rejects.toMatchObject({ code: 'fenced' })
    })

    test('of two decisions at once exactly one counts', async () => {
      const { runs, sessions } = at()
      await waiting()
      const rejected: DecidedPlan = { ...approved, decision: { ...approved.decision, decision: 'reject' } }
      const both = await Promise.all([approved, rejected].map((one) => runs.settlePlan('s1', 'p', goesOn, one)))
      expect(both.map(({ settled }) => settled)).toEqual([true, false])
      expect((await sessions.get('s1'))?.decidedPlan).toEqual(approved)
    })

    test('can be ended without a decision, and then nobody holds the session', async () => {
      const { runs, sessions, leases } = at()
      await waiting()
      expect(await runs.settlePlan('s1', 'p', ended('r1'), null)).toEqual({ settled: true, claim: null })
      expect(await sessions.get('s1')).toMatchObject(IDLE)
      expect((await sessions.get('s1'))?.decidedPlan).toBeUndefined()
      expect(await leases.claim('s1')).not.toBeNull()
    })

    test('is not another one', async () => {
      const { runs } = at()
      await waiting()
      expect(await runs.settlePlan('s1', 'other', goesOn, approved)).toEqual({ settled: false })
    })
  })
}
