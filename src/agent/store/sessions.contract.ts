import { describe, expect, test } from 'vitest'
import { message, newRun, newSession, user } from '../core-fixture.contract.ts'
import { claimed, DAY_MS, DONE, entry, given, ids, REFUSE, receipt } from './fixtures.contract.ts'
import type { AgentStore, StoreLimits } from './port.ts'

/** What {@link SessionStore} promises. */
export function sessionsContract(at: () => AgentStore, limits: StoreLimits): void {
  describe('sessions', () => {
    test('one is kept, counted, listed newest first, changed and forgotten', async () => {
      const { sessions } = at()
      await sessions.create(
        newSession('s2', { title: 'two', systemPrompt: 'Grüße', maxSteps: 3, planMode: true }),
        null,
      )
      await sessions.create(newSession('s3'), null)
      const second = newSession('s2', { title: 'two', systemPrompt: 'Grüße', maxSteps: 3, planMode: true })
      expect(await sessions.get('s2')).toEqual(second)
      expect(await at().count()).toBe(3)
      expect(ids(await sessions.list({ limit: null, cursor: null }))).toEqual(['s3', 's2', 's1'])
      expect(ids(await sessions.list({ limit: 2, cursor: null }))).toEqual(['s3', 's2'])
      expect(ids(await sessions.list({ limit: 2, cursor: 's2' }))).toEqual(['s1'])
      expect(await sessions.update('s2', { title: null, takenSeq: 7 })).toMatchObject({ title: null, takenSeq: 7 })
      expect(await sessions.get('s2')).toMatchObject({ title: null, takenSeq: 7, systemPrompt: 'Grüße' })
      expect(await sessions.update('s2', { cancelRunId: 'r' })).toMatchObject({ takenSeq: 7, cancelRunId: 'r' })
      expect(await sessions.remove('s2')).toBe(true)
      expect(await sessions.remove('s2')).toBe(false)
      expect(await sessions.get('s2')).toBeNull()
      expect(await sessions.update('s2', { title: 'x' })).toBeNull()
      expect(await at().count()).toBe(2)
    })

    test('a page after a session that is not there is refused, not begun anew', async () => {
      const page = at().sessions.list({ limit: 2, cursor: 'unknown' })
      await expect(page).rejects.toMatchObject({ code: 'bad_request', details: { field: 'cursor' } })
    })

    test('what was given out is a copy', async () => {
      const { sessions } = at()
      const one = await sessions.get('s1')
      if (one) one.title = 'changed outside'
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

    test('there is room for so many; a repetition finds its own though there is none left', async () => {
      const { sessions } = at()
      await sessions.create(newSession('first'), receipt('a', 0))
      for (let index = 2; index < limits.maxSessions; index++) await sessions.create(newSession(`n${index}`), null)
      const full = { code: 'too_many_sessions' }
      await expect(sessions.create(newSession('more'), null)).rejects.toMatchObject(full)
      await expect(sessions.fork('s1', newSession('more'), WHOLE)).rejects.toMatchObject(full)
      expect((await sessions.create(newSession('more'), receipt('a', 1))).id).toBe('first')
      expect(await at().count()).toBe(limits.maxSessions)
      await sessions.remove('s1')
      await sessions.create(newSession('more'), null)
    })

    test('a removed one takes its log, transcript and runs along', async () => {
      const { sessions, runs, log } = at()
      const { claim } = await runs.admit(newRun('r1', 's1'), REFUSE)
      await log.append(given(claim), entry({ events: [DONE], messages: [user('go')] }))
      await sessions.remove('s1')
      expect(await log.bounds('s1')).toBeNull()
      expect(await log.read('s1', 0, 10)).toEqual([])
      expect(await log.transcript('s1')).toEqual([])
      expect(await runs.get('s1', 'r1')).toBeNull()
      expect(await runs.list('s1')).toEqual([])
      expect(await runs.next('s1', 0)).toBeNull()
      expect(await runs.unfinished()).toEqual([])
      const gone = { code: 'not_found' }
      await expect(runs.admit(newRun('r2', 's1'), REFUSE)).rejects.toMatchObject(gone)
      await expect(runs.settlePlan('s1', 'p', entry({}), null)).rejects.toMatchObject(gone)
      await expect(log.append(given(claim), entry({}))).rejects.toMatchObject(gone)
      await expect(sessions.fork('s1', newSession('s2'), WHOLE)).rejects.toMatchObject(gone)
    })
  })

  describe('a fork', () => {
    const talk = [user('one'), message('assistant', [{ type: 'text', text: 'two' }]), user('three'), user('four')]

    test('begins with a copy of the transcript, whole or up to a message, and goes its own way', async () => {
      const { sessions, runs, log } = at()
      const owner = await claimed(at())
      await log.append(owner, entry({ events: [DONE], messages: talk }))
      expect(await sessions.fork('s1', newSession('s2', { title: 'copy' }), WHOLE)).toMatchObject({ title: 'copy' })
      await sessions.fork('s1', newSession('s3'), { messages: 2, receipt: null })
      await sessions.fork('s1', newSession('s4'), { messages: 0, receipt: null })
      await log.append(owner, entry({ messages: [user('later')] }))
      const { claim } = await runs.admit(newRun('r2', 's2'), REFUSE)
      await log.append(given(claim), entry({ runId: 'r2', events: [DONE], messages: [user('own')] }))
      expect(await log.transcript('s1')).toEqual([...talk, user('later')])
      expect(await log.transcript('s2')).toEqual([...talk, user('own')])
      expect(await log.transcript('s3')).toEqual(talk.slice(0, 2))
      expect(await log.transcript('s4')).toEqual([])
      expect(await log.bounds('s2')).toEqual({ oldest: 1, newest: 1 })
      expect(await log.bounds('s3')).toEqual({ oldest: 1, newest: 0 })
      expect(await runs.list('s3')).toEqual([])
    })

    test('counts messages as people see them: a summary is no message of theirs', async () => {
      const { sessions, log } = at()
      const summary = { ...user('so far'), covers: 2 }
      const [one, two, three, four] = talk
      if (!one || !two || !three || !four) throw new Error('too short')
      await log.append(await claimed(at()), entry({ messages: [one, two, summary, three, four] }))
      await sessions.fork('s1', newSession('s2'), { messages: 3, receipt: null })
      await sessions.fork('s1', newSession('s3'), { messages: 1, receipt: null })
      expect(await log.transcript('s2')).toEqual([one, two, summary, three])
      expect(await log.transcript('s3')).toEqual([one])
    })

    test('is made once under a key', async () => {
      const { sessions } = at()
      const options = { messages: null, receipt: receipt('a', 0) }
      await sessions.fork('s1', newSession('s2'), options)
      expect((await sessions.fork('s1', newSession('s3'), options)).id).toBe('s2')
      expect(await at().count()).toBe(2)
    })
  })
}

const WHOLE = { messages: null, receipt: null }
