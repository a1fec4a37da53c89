import { execFileSync } from 'node:child_process'
import { expect } from 'vitest'
import { soon } from '../support/soon.ts'
import { namesOf, startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const STALLING = {
  turns: [{ match: 'wait', steps: [{ text: 'so far' }, { stall: 'forever' as const }] }],
  after: 'Fine.',
}

verifies(
  ['agent:once:same-receipt', 'agent:once:other-body'],
  'the same Idempotency-Key and body give the same receipt; another body is refused',
  async () => {
    const agent = await startTestAgent()
    const headers = { 'idempotency-key': 'abc' }
    const body = { title: 'one' }
    const first = await agent.call('POST', '/sessions', { body, headers })
    const second = await agent.call('POST', '/sessions', { body, headers })
    expect([second.status, second.body, second.headers.get('location')]).toEqual([
      201,
      first.body,
      first.headers.get('location'),
    ])
    const other = await agent.call('POST', '/sessions', { body: { title: 'two' }, headers })
    expect([other.status, other.body.error.code]).toEqual([409, 'key_reused'])
    expect((await agent.call('GET', '/sessions')).body).toHaveLength(1)

    const path = `/sessions/${first.body.session_id}/run`
    const run = await agent.call('POST', path, { body: { goal: 'list files' }, headers })
    const atOnce = await agent.call('POST', path, { body: { goal: 'list files' }, headers })
    await (await agent.events(run.body.events_url)).until('done')
    const later = await agent.call('POST', path, { body: { goal: 'list files' }, headers })
    for (const again of [atOnce, later]) expect([again.status, again.body]).toEqual([202, run.body])
    const reused = await agent.call('POST', path, { body: { goal: 'other' }, headers })
    expect([reused.status, reused.body.error.code]).toEqual([409, 'key_reused'])
    expect((await agent.call('GET', `/sessions/${first.body.session_id}`)).body.turn_count).toBe(1)
    const long = await agent.call('POST', path, {
      body: { goal: 'x' },
      headers: { 'idempotency-key': 'x'.repeat(300) },
    })
    expect(long.status).toBe(422)
  },
)

verifies(
  ['agent:once:per-caller', 'agent:once:successes'],
  'keys of one caller are not those of another, and a refused call keeps nothing',
  async () => {
    const agent = await startTestAgent({ authKeys: ['one', 'two'] })
    const make = (key: string, body: object) =>
      agent.call('POST', '/sessions', { body, headers: { 'x-api-key': key, 'idempotency-key': 'same' } })
    expect((await make('one', { workspace: '/etc' })).status).toBe(422)
    const first = await make('one', {})
    const second = await make('two', {})
    expect([first.status, second.status]).toEqual([201, 201])
    expect(first.body.session_id).not.toBe(second.body.session_id)
  },
)

verifies('agent:once:atomic', 'many calls at once under one key make one run', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const headers = { 'idempotency-key': 'k' }
  const calls = Array.from({ length: 20 }, () =>
    agent.call('POST', `/sessions/${id}/run`, { body: { goal: 'hello' }, headers }),
  )
  const answers = await Promise.all(calls)
  expect(new Set(answers.map(({ body }) => body.run_id)).size).toBe(1)
  expect((await agent.call('GET', `/sessions/${id}/runs`)).body.runs).toHaveLength(1)
})

verifies(
  ['agent:run:busy', 'agent:run:enqueue', 'agent:run:interrupt'],
  'a second run is refused with the id of the first, queued, or takes its place',
  async () => {
    const agent = await startTestAgent({ script: STALLING })
    const id = await agent.session()
    const path = `/sessions/${id}/run`
    const first = await agent.run(id, 'wait')
    for (const more of [{}, { on_busy: 'reject' }]) {
      const refused = await agent.call('POST', path, { body: { goal: 'x', ...more } })
      expect([refused.status, refused.body.error.code]).toEqual([409, 'session_busy'])
      expect(refused.body.error.details).toEqual({ active_run_id: first.run_id })
    }
    const queued = await agent.run(id, 'after that', { on_busy: 'enqueue' })
    expect(queued.status).toBe('queued')
    const reader = await agent.events(`/sessions/${id}/events?after=0`)
    await reader.until('partial_message')
    await agent.call('POST', `/sessions/${id}/cancel`)
    expect((await reader.until('done')).at(-1)?.data).toMatchObject({
      run_id: first.run_id,
      finish_reason: 'Cancelled',
    })
    expect((await reader.until('done')).at(-1)?.data).toMatchObject({
      run_id: queued.run_id,
      finish_reason: 'NoMoreToolCalls',
    })
    await agent.run(id, 'wait again')
    await reader.until('partial_message')
    const instead = await agent.run(id, 'this instead', { on_busy: 'interrupt' })
    expect((await reader.until('done')).at(-1)?.data.finish_reason).toBe('Cancelled')
    expect((await reader.until('done')).at(-1)?.data).toMatchObject({
      run_id: instead.run_id,
      finish_reason: 'NoMoreToolCalls',
    })
  },
)

verifies(['agent:run:enqueue', 'agent:errors:full'], 'a queue is bounded and says when it is full', async () => {
  const agent = await startTestAgent({ script: STALLING })
  const id = await agent.session()
  await agent.run(id, 'wait')
  for (let count = 0; count < 16; count++) await agent.run(id, 'next', { on_busy: 'enqueue' })
  const body = { goal: 'one too many', on_busy: 'enqueue' }
  const full = await agent.call('POST', `/sessions/${id}/run`, { body })
  expect([full.status, full.body.error.code]).toEqual([429, 'queue_full'])
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(0)
})

verifies('agent:errors:full', 'sessions and runs are bounded and say when there is no room', async () => {
  const agent = await startTestAgent({ script: STALLING, maxSessions: 2, maxRuns: 1 })
  const [one, two] = [await agent.session(), await agent.session()]
  const third = await agent.call('POST', '/sessions', { body: {} })
  expect([third.status, third.body.error.code]).toEqual([429, 'too_many_sessions'])
  await agent.run(one, 'wait')
  const busy = await agent.call('POST', `/sessions/${two}/run`, { body: { goal: 'x' } })
  expect([busy.status, busy.body.error.code]).toEqual([429, 'too_many_runs'])
})

verifies('agent:alone:hang-up', 'hanging up on a run without a session cancels it', async () => {
  const agent = await startTestAgent()
  expect(agent.agent.shellOff).toBeNull()
  const seconds = String(100_000 + Math.floor(Math.random() * 100_000))
  const alive = () => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(`sleep ${seconds}`)
  const gone = new AbortController()
  const call = agent.call('POST', '/run', { body: { goal: `run: sleep ${seconds}` }, signal: gone.signal })
  const refused = expect(call).rejects.toThrow()
  await soon(() => expect(alive()).toBe(true))
  gone.abort()
  await refused
  await soon(() => expect(alive()).toBe(false))
})

verifies(
  ['agent:plan:decided', 'agent:plan:none', 'agent:plan:reaches-agent'],
  'a plan is proposed, approved with changes, and decided once',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session({ plan_mode: true })
    const { events_url: path, run_id: runId } = await agent.run(id, 'plan: tidy up')
    const reader = await agent.events(path)
    const proposed = (await reader.until('plan_proposed')).at(-1)?.data
    expect(proposed).toMatchObject({ plan: 'tidy up', run_id: runId })
    const waiting = (await agent.call('GET', `/sessions/${id}`)).body
    expect(waiting).toMatchObject({ status: 'awaiting_plan', active_run_id: runId, pending_plan: { plan: 'tidy up' } })
    expect((await agent.call('POST', `/sessions/${id}/run`, { body: { goal: 'x' } })).status).toBe(409)

    const stale = { decision: 'approve', plan_id: 'another' }
    expect((await agent.call('POST', `/sessions/${id}/plan`, { body: stale })).status).toBe(409)
    const body = { decision: 'approve', plan: 'tidy up the attic', plan_id: proposed.plan_id }
    const decided = await agent.call('POST', `/sessions/${id}/plan`, { body })
    expect([decided.status, decided.body.decision, decided.body.run_id]).toEqual([200, 'approve', runId])
    const rest = await reader.until('done')
    expect(namesOf(rest).slice(-2)).toEqual(['message', 'done'])
    expect(JSON.stringify(rest)).toContain('attic')
    expect(rest.at(-1)?.data).toMatchObject({ finish_reason: 'NoMoreToolCalls', run_id: runId })
    const second = await agent.call('POST', `/sessions/${id}/plan`, { body: { ...body, decision: 'reject' } })
    expect([second.status, second.body.error.code]).toEqual([409, 'plan_decided'])
  },
)

verifies(
  ['agent:plan:aliases', 'agent:plan:reaches-agent'],
  'a plan is rejected with a reason that reaches the agent; the aliases do the same',
  async () => {
    const agent = await startTestAgent()
    for (const [path, body, says] of [
      ['plan', { decision: 'reject', feedback: 'too dear' }, 'too dear'],
      ['plan/reject', { reason: 'too late' }, 'too late'],
      ['plan/confirm', { edits: 'only the attic' }, 'only the attic'],
      ['plan/confirm', undefined, 'pprove'],
    ] as const) {
      const id = await agent.session()
      const reader = await agent.events((await agent.run(id, 'plan: tidy up')).events_url)
      await reader.until('plan_proposed')
      expect((await agent.call('POST', `/sessions/${id}/${path}`, { body })).status).toBe(200)
      expect(JSON.stringify(await reader.until('done')), path).toContain(says)
    }
  },
)

verifies('agent:plan:blank', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const reader = await agent.events((await agent.run(id, 'plan: tidy up')).events_url)
  await reader.until('plan_proposed')
  for (const [path, field, more] of [
    ['plan', 'plan', { decision: 'approve' }],
    ['plan/confirm', 'edits', {}],
  ] as const)
    for (const blank of ['', ' \n\t']) {
      const answer = await agent.call('POST', `/sessions/${id}/${path}`, { body: { ...more, [field]: blank } })
      expect([answer.status, answer.body.error.details]).toEqual([422, { field }])
    }
  expect((await agent.call('GET', `/sessions/${id}`)).body.status).toBe('awaiting_plan')
})

verifies(
  'agent:plan:once',
  'of many decisions at once one counts, and those that say the same are told so',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    const reader = await agent.events((await agent.run(id, 'plan: tidy up')).events_url)
    const planId = (await reader.until('plan_proposed')).at(-1)?.data.plan_id
    const decide = (decision: string) =>
      agent.call('POST', `/sessions/${id}/plan`, { body: { decision, plan_id: planId } })
    const answers = await Promise.all(['approve', 'reject', 'approve', 'reject'].map(decide))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409])
    expect(namesOf(await reader.until('done')).filter((name) => name === 'done')).toHaveLength(1)
    const { transcript } = (await agent.call('GET', `/sessions/${id}`)).body
    expect(transcript.filter((message: { role: string }) => message.role === 'tool')).toHaveLength(1)
  },
)

verifies('agent:events:one-done', 'a server that stops tells its readers done first', async () => {
  const agent = await startTestAgent({ script: STALLING })
  const id = await agent.session()
  const reader = await agent.events((await agent.run(id, 'wait')).events_url)
  await reader.until('partial_message')
  const stopped = agent.stop()
  const rest = await reader.until('never')
  expect(rest.map(({ event }) => event).at(-1)).toBe('done')
  expect(rest.at(-1)?.data.finish_reason).toBe('Interrupted')
  await stopped
})
