import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { message, newRun, newSession, user } from '../core-fixture.contract.ts'
import { NO_USAGE, type PendingPlan, type RunEvent } from '../model.ts'
import type { AgentStore, LogEntry, Receipt } from './port.ts'

const DAY_MS = 24 * 60 * 60_000
const DONE: RunEvent = { type: 'done', finishReason: 'NoMoreToolCalls', usage: NO_USAGE }
const IDLE = { status: 'idle', activeRunId: null, pendingPlan: null } as const
const REFUSE = { receipt: null, whenBusy: 'refuse' } as const
const ENQUEUE = { receipt: null, whenBusy: 'enqueue' } as const

/** What every store of the agent server promises. `open` gives an empty one. */
export function agentStoreContract(name: string, open: () => Promise<AgentStore>): void {
  describe(`agent store (${name})`, () => {
    let store: AgentStore
    beforeEach(async () => {
      store = await open()
      await store.sessions.create(newSession('s1'), null)
    })
    afterEach(() => store.close())
    sessionTests(() => store)
    admissionTests(() => store)
    logTests(() => store)
  })
}

function sessionTests(at: () => AgentStore): void {
  test('a session is kept, counted, listed newest first, changed and forgotten', async () => {
    const { sessions } = at()
    await sessions.create(newSession('s2', { title: 'two' }), null)
    await sessions.create(newSession('s3'), null)
    expect(await sessions.get('s2')).toEqual(newSession('s2', { title: 'two' }))
    expect(await sessions.count()).toBe(3)
    expect(ids(await sessions.list({ limit: null, cursor: null }))).toEqual(['s3', 's2', 's1'])
    expect(ids(await sessions.list({ limit: 2, cursor: null }))).toEqual(['s3', 's2'])
    expect(ids(await sessions.list({ limit: 2, cursor: 's2' }))).toEqual(['s1'])
    expect(await sessions.update('s2', { title: null, takenSeq: 7 })).toMatchObject({ title: null, takenSeq: 7 })
    expect(await sessions.get('s2')).toMatchObject({ title: null, takenSeq: 7 })
    expect(await sessions.remove('s2')).toBe(true)
    expect(await sessions.remove('s2')).toBe(false)
    expect(await sessions.get('s2')).toBeNull()
    expect(await sessions.update('s2', { title: 'x' })).toBeNull()
    expect(await sessions.count()).toBe(2)
  })

  test('what was given out is a copy', async () => {
    const { sessions } = at()
    const given = await sessions.get('s1')
    if (given) given.title = 'changed outside'
    expect((await sessions.get('s1'))?.title).toBeNull()
  })

  test('a key makes one session: again the same, another body refused, a new one after a day or a removal', async () => {
    const { sessions } = at()
    await sessions.create(newSession('k1'), receipt('a', 0))
    expect((await sessions.create(newSession('k2'), receipt('a', 1))).id).toBe('k1')
    expect(await sessions.get('k2')).toBeNull()
    await expect(sessions.create(newSession('k2'), receipt('b', 2))).rejects.toMatchObject({ code: 'key_reused' })
    expect((await sessions.create(newSession('k3'), receipt('b', DAY_MS + 1))).id).toBe('k3')
    await sessions.remove('k3')
    expect((await sessions.create(newSession('k4'), receipt('b', DAY_MS + 2))).id).toBe('k4')
  })

  test('a removed session takes its log, transcript and runs along, and can be made anew', async () => {
    const { sessions, runs, log } = at()
    await runs.admit(newRun('r1', 's1'), REFUSE)
    await log.append('s1', await runs.fence('s1'), entry({ events: [DONE], messages: [user('go')] }))
    await sessions.remove('s1')
    expect(await log.bounds('s1')).toBeNull()
    expect(await log.read('s1', 0, 10)).toEqual([])
    expect(await log.transcript('s1')).toEqual([])
    expect(await runs.get('s1', 'r1')).toBeNull()
    expect(await runs.list('s1')).toEqual([])
    expect(await runs.next('s1', 0)).toBeNull()
    expect(await runs.unfinished()).toEqual([])
    await expect(runs.fence('s1')).rejects.toMatchObject({ code: 'not_found' })
    await expect(runs.admit(newRun('r2', 's1'), REFUSE)).rejects.toMatchObject({ code: 'not_found' })
    await expect(log.append('s1', 99, entry({}))).rejects.toMatchObject({ code: 'not_found' })
  })
}

function admissionTests(at: () => AgentStore): void {
  test('an idle session takes a run at once', async () => {
    const { sessions, runs } = at()
    const { run, repeated } = await runs.admit(newRun('r1', 's1'), REFUSE)
    expect({ repeated, ...run }).toMatchObject({ repeated: false, status: 'running', startedAt: 2_000, afterSeq: 0 })
    const busy = { status: 'running', activeRunId: 'r1', turnCount: 1, lastActive: 2_000 }
    expect(await sessions.get('s1')).toMatchObject(busy)
    expect(ids(await runs.unfinished())).toEqual(['s1'])
  })

  test('a busy one refuses with the id of its run, and nothing is changed by that', async () => {
    const { sessions, runs } = at()
    await runs.admit(newRun('r1', 's1'), REFUSE)
    const refused = runs.admit(newRun('r2', 's1'), { ...REFUSE, receipt: receipt('a', 0) })
    await expect(refused).rejects.toMatchObject({ code: 'session_busy', details: { active_run_id: 'r1' } })
    expect(await runs.get('s1', 'r2')).toBeNull()
    expect((await sessions.get('s1'))?.turnCount).toBe(1)
    expect((await runs.admit(newRun('r2', 's1'), { ...ENQUEUE, receipt: receipt('b', 0) })).repeated).toBe(false)
  })

  test('of many that come at once exactly one is taken', async () => {
    const { runs } = at()
    const all = Array.from({ length: 8 }, (_, index) => runs.admit(newRun(`r${index}`, 's1'), REFUSE))
    const settled = await Promise.allSettled(all)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('sixteen wait at most, and come in their order once the session is idle', async () => {
    const { runs, log } = at()
    await runs.admit(newRun('r0', 's1'), REFUSE)
    for (let index = 1; index <= 16; index++) {
      expect((await runs.admit(newRun(`r${index}`, 's1'), ENQUEUE)).run.status).toBe('queued')
    }
    await expect(runs.admit(newRun('r17', 's1'), ENQUEUE)).rejects.toMatchObject({ code: 'queue_full' })
    expect(await runs.next('s1', 3_000)).toBeNull()
    await log.append('s1', await runs.fence('s1'), entry({ runId: 'r0', events: [DONE], session: IDLE }))
    const next = await runs.next('s1', 3_000)
    expect(next).toMatchObject({ id: 'r1', status: 'running', startedAt: 3_000, afterSeq: 1 })
    expect(await runs.next('s1', 3_000)).toBeNull()
    expect((await at().sessions.get('s1'))?.activeRunId).toBe('r1')
    expect(ids(await runs.list('s1'))).toEqual(Array.from({ length: 17 }, (_, index) => `r${index}`))
  })

  test('a key gives the same run again, also while the session is busy; another body is refused', async () => {
    const { sessions, runs } = at()
    await runs.admit(newRun('r1', 's1'), { ...REFUSE, receipt: receipt('a', 0) })
    const again = await runs.admit(newRun('r2', 's1'), { ...REFUSE, receipt: receipt('a', 1) })
    expect(again).toMatchObject({ repeated: true, run: { id: 'r1' } })
    expect((await sessions.get('s1'))?.turnCount).toBe(1)
    const other = runs.admit(newRun('r3', 's1'), { ...REFUSE, receipt: receipt('b', 2) })
    await expect(other).rejects.toMatchObject({ code: 'key_reused' })
  })

  test('a session with queued runs is unfinished though it is idle', async () => {
    const { runs, log } = at()
    await runs.admit(newRun('r1', 's1'), REFUSE)
    await runs.admit(newRun('r2', 's1'), ENQUEUE)
    const ended = { events: [DONE], session: IDLE, run: { status: 'finished' as const } }
    await log.append('s1', await runs.fence('s1'), entry(ended))
    expect(ids(await runs.unfinished())).toEqual(['s1'])
    await runs.next('s1', 0)
    await log.append('s1', await runs.fence('s1'), entry({ ...ended, runId: 'r2' }))
    expect(await runs.unfinished()).toEqual([])
  })
}

function logTests(at: () => AgentStore): void {
  test('events are numbered from 1, read after a number, and told with run, time and payload', async () => {
    const { log, runs } = at()
    expect(await log.bounds('s1')).toEqual({ oldest: 1, newest: 0 })
    const owner = await runs.fence('s1')
    expect(await log.append('s1', owner, entry({ events: [partial('a'), partial('b')] }))).toBe(2)
    expect(await log.append('s1', owner, entry({}))).toBe(2)
    expect(await log.append('s1', owner, entry({ events: [DONE] }))).toBe(3)
    const events = await log.read('s1', 0, 10)
    expect(events.map(({ seq, type, runId, at: time }) => [seq, type, runId, time])).toEqual([
      [1, 'partial_message', 'r1', 5_000],
      [2, 'partial_message', 'r1', 5_000],
      [3, 'done', 'r1', 5_000],
    ])
    expect(JSON.parse(events[1]?.data ?? '')).toEqual({ text: 'b', step: 1, run_id: 'r1', id: 2 })
    expect(seqs(await log.read('s1', 1, 10))).toEqual([2, 3])
    expect(seqs(await log.read('s1', 0, 2))).toEqual([1, 2])
    expect(await log.read('s1', 3, 10)).toEqual([])
    expect(await log.read('s1', 99, 10)).toEqual([])
    expect(await log.bounds('s1')).toEqual({ oldest: 1, newest: 3 })
    expect(await log.bounds('unknown')).toBeNull()
  })

  test('trimmed events are gone, their numbers are not used again, and the transcript stays', async () => {
    const { log, runs } = at()
    const owner = await runs.fence('s1')
    await log.append('s1', owner, entry({ events: [partial('a'), partial('b'), partial('c')], messages: [user('go')] }))
    await log.trim('s1', 2)
    expect(await log.bounds('s1')).toEqual({ oldest: 3, newest: 3 })
    expect(seqs(await log.read('s1', 0, 10))).toEqual([3])
    await log.trim('s1', 3)
    expect(await log.bounds('s1')).toEqual({ oldest: 4, newest: 3 })
    expect(await log.append('s1', owner, entry({ events: [DONE] }))).toBe(4)
    expect(seqs(await log.read('s1', 0, 10))).toEqual([4])
    expect(seqs(await log.read('s1', 3, 10))).toEqual([4])
    expect(await log.transcript('s1')).toEqual([user('go')])
    await log.trim('unknown', 1)
  })

  test('an entry changes transcript, session and run in one step, and its usage is added to both', async () => {
    const { log, runs, sessions } = at()
    await runs.admit(newRun('r1', 's1'), REFUSE)
    const owner = await runs.fence('s1')
    const usage = { totalSteps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, cost: 0.5 }
    const said = message('assistant', [{ type: 'text', text: 'Hi.' }])
    await log.append('s1', owner, entry({ messages: [user('go')], run: { status: 'running', usage } }))
    const run = { status: 'finished', finishReason: 'Stuck', error: 'why', usage, activeMs: 7 } as const
    await log.append('s1', owner, entry({ messages: [said], session: IDLE, run }))
    expect(await log.transcript('s1')).toEqual([user('go'), said])
    const twice = { totalSteps: 2, inputTokens: 20, outputTokens: 10, totalTokens: 30, cost: 1 }
    const ended = { ...run, usage: twice, finishedAt: 5_000 }
    expect(await runs.get('s1', 'r1')).toMatchObject(ended)
    expect(await sessions.get('s1')).toMatchObject({ ...IDLE, usage: twice, lastActive: 5_000 })
  })

  test('a plan that waits is part of the session', async () => {
    const { log, runs, sessions } = at()
    await runs.admit(newRun('r1', 's1'), REFUSE)
    const pendingPlan: PendingPlan = {
      planId: 'p',
      runId: 'r1',
      plan: '1. do',
      proposedAt: 1,
      expiresAt: 2,
      toolUseId: 'c',
      step: 3,
    }
    const session = { status: 'awaiting_plan', activeRunId: 'r1', pendingPlan } as const
    await log.append('s1', await runs.fence('s1'), entry({ session, run: { status: 'awaiting_plan' } }))
    expect(await sessions.get('s1')).toMatchObject(session)
    expect(await runs.unfinished()).toMatchObject([session])
    await expect(runs.admit(newRun('r2', 's1'), REFUSE)).rejects.toMatchObject({ code: 'session_busy' })
  })

  test('a new owner fences the one before, who changes nothing any more', async () => {
    const { log, runs } = at()
    const first = await runs.fence('s1')
    const second = await runs.fence('s1')
    expect(second).toBeGreaterThan(first)
    const late = log.append('s1', first, entry({ events: [DONE], messages: [user('late')] }))
    await expect(late).rejects.toMatchObject({ code: 'fenced' })
    expect(await log.read('s1', 0, 10)).toEqual([])
    expect(await log.transcript('s1')).toEqual([])
    expect(await log.append('s1', second, entry({ events: [DONE] }))).toBe(1)
  })
}

function entry(shape: Partial<LogEntry>): LogEntry {
  return { now: 5_000, runId: 'r1', events: [], messages: [], ...shape }
}

function partial(text: string): RunEvent {
  return { type: 'partial_message', text, step: 1 }
}

function receipt(bodyHash: string, now: number): Receipt {
  return { key: 'key', bodyHash, now }
}

function ids(list: { id: string }[]): string[] {
  return list.map(({ id }) => id)
}

function seqs(list: { seq: number }[]): number[] {
  return list.map(({ seq }) => seq)
}
