import { describe, expect, test } from 'vitest'
import { message, newRun, user } from '../core-fixture.contract.ts'
import { claimed, DONE, entry, given, IDLE, partial, REFUSE, seqs } from './fixtures.contract.ts'
import type { AgentStore, StoreLimits } from './port.ts'

/** What {@link SessionLog} promises. */
export function logContract(at: () => AgentStore, limits: StoreLimits, keepsAll: boolean): void {
  describe('the log', () => {
    test('numbers events from 1, gives those after a number, and tells run, time and payload', async () => {
      const { log } = at()
      expect(await log.bounds('s1')).toEqual({ oldest: 1, newest: 0 })
      const owner = await claimed(at())
      expect(await log.append(owner, entry({ events: [partial('a'), partial('b')] }))).toBe(2)
      expect(await log.append(owner, entry({}))).toBe(2)
      expect(await log.append(owner, entry({ events: [DONE] }))).toBe(3)
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

    test('keeps so many events; their numbers are not used again, and the transcript stays', async () => {
      const { log } = at()
      const owner = await claimed(at())
      const count = limits.maxLogEvents + 15
      for (let index = 0; index < count; index += 5) {
        const events = Array.from({ length: 5 }, () => partial('x'))
        await log.append(owner, entry({ events, messages: [user(`m${index}`)] }))
      }
      const oldest = keepsAll ? 1 : count - limits.maxLogEvents + 1
      expect(await log.bounds('s1')).toEqual({ oldest, newest: count })
      expect(seqs(await log.read('s1', 0, 2))).toEqual([oldest, oldest + 1])
      expect(seqs(await log.read('s1', oldest + 2, 2))).toEqual([oldest + 3, oldest + 4])
      expect(await log.append(owner, entry({ events: [DONE] }))).toBe(count + 1)
      expect(await log.transcript('s1')).toHaveLength(count / 5)
    })

    test('keeps so many bytes, and the newest event however large', async () => {
      const { log } = at()
      const owner = await claimed(at())
      const kilobyte = 'ä'.repeat(500)
      for (let index = 0; index < 6; index++) await log.append(owner, entry({ events: [partial(kilobyte)] }))
      expect(await log.bounds('s1')).toEqual({ oldest: keepsAll ? 1 : 4, newest: 6 })
      await log.append(owner, entry({ events: [partial('small'), partial(kilobyte.repeat(9))] }))
      expect(await log.bounds('s1')).toEqual({ oldest: 8, newest: 8 })
      await log.append(owner, entry({ events: [partial('small')] }))
      expect(await log.bounds('s1')).toEqual({ oldest: keepsAll ? 8 : 9, newest: 9 })
    })

    test('changes transcript, session and run in one step, and usage is added to both', async () => {
      const { log, runs, sessions } = at()
      const owner = given((await runs.admit(newRun('r1', 's1'), REFUSE)).claim)
      const usage = { totalSteps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15, cost: 0.5 }
      const said = message('assistant', [{ type: 'text', text: 'Hi.' }])
      await log.append(owner, entry({ messages: [user('go')], run: { status: 'running', usage } }))
      const run = { status: 'finished', finishReason: 'Stuck', error: 'why', usage, activeMs: 7 } as const
      await log.append(owner, entry({ messages: [said], session: IDLE, run }))
      expect(await log.transcript('s1')).toEqual([user('go'), said])
      const twice = { totalSteps: 2, inputTokens: 20, outputTokens: 10, totalTokens: 30, cost: 1 }
      expect(await runs.get('s1', 'r1')).toMatchObject({ ...run, usage: twice, finishedAt: 5_000 })
      expect(await sessions.get('s1')).toMatchObject({ ...IDLE, usage: twice, lastActive: 5_000 })
    })

    test('tells the messages of one run apart', async () => {
      const { log, runs } = at()
      const owner = given((await runs.admit(newRun('r1', 's1'), REFUSE)).claim)
      const first = { ...user('go'), runId: 'r1' }
      await log.append(owner, entry({ messages: [first], session: IDLE, run: { status: 'finished' } }))
      const next = given((await runs.admit(newRun('r2', 's1'), REFUSE)).claim)
      const second = { ...user('again'), runId: 'r2' }
      await log.append(next, { ...entry({ messages: [second] }), runId: 'r2' })
      expect(await log.transcript('s1')).toEqual([first, second])
      expect(await log.transcript('s1', 'r1')).toEqual([first])
      expect(await log.transcript('s1', 'r2')).toEqual([second])
      expect(await log.transcript('s1', 'r3')).toEqual([])
    })

    test('takes nothing from who has given back or lost the session', async () => {
      const { log, leases } = at()
      const first = await claimed(at())
      await leases.release(first)
      const second = await claimed(at())
      expect(second.generation).toBeGreaterThan(first.generation)
      const late = log.append(first, entry({ events: [DONE], messages: [user('late')] }))
      await expect(late).rejects.toMatchObject({ code: 'fenced' })
      expect(await log.read('s1', 0, 10)).toEqual([])
      expect(await log.transcript('s1')).toEqual([])
      expect(await log.append(second, entry({ events: [DONE], session: IDLE }))).toBe(1)
      await expect(log.append(second, entry({ events: [DONE] }))).rejects.toMatchObject({ code: 'fenced' })
      expect(await leases.claim('s1')).not.toBeNull()
    })
  })
}
