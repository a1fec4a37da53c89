import { expect } from 'vitest'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { namesOf, startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

/** Calls a tool again and again, each time another one, so that it is not stuck. */
const RESTLESS: Script = Array.from({ length: 60 }, (_, index) => [
  { tool_calls: [{ name: 'list_dir', input: { path: `missing-${index}` } }] },
])
const WRITING: Script = {
  turns: [{ match: 'write', steps: [{ tool_calls: [{ name: 'write_file', input: { path: 'a', content: 'b' } }] }] }],
  after: 'Fine.',
}

verifies('agent:alone:max-steps', async () => {
  const agent = await startTestAgent({ script: RESTLESS })
  const { body } = await agent.call('POST', '/run', { body: { goal: 'go', max_steps: 3 } })
  expect(body).toMatchObject({ status: 'finished', finish_reason: 'BudgetExceeded', usage: { total_steps: 3 } })
})

verifies(['agent:run:max-steps', 'agent:run:default-steps'], async () => {
  const agent = await startTestAgent({ script: RESTLESS })
  const id = await agent.session()
  for (const steps of [0, 1001, -1, 1.5, '5']) {
    for (const path of ['/run', '/sessions', `/sessions/${id}/run`]) {
      const { status, body } = await agent.call('POST', path, { body: { goal: 'go', max_steps: steps } })
      expect([status, body.error.details.field], `${path} ${steps}`).toEqual([422, 'max_steps'])
    }
  }
  const one = await agent.finish(id, 'go', { max_steps: 1 })
  expect(one.at(-1)?.data).toMatchObject({ finish_reason: 'BudgetExceeded', total_steps: 1 })
  const many = await agent.finish(await agent.session(), 'go')
  expect(many.at(-1)?.data).toMatchObject({ finish_reason: 'BudgetExceeded', total_steps: 50 })
  expect((await agent.finish(await agent.session(), 'go', { max_steps: 1000 })).at(-1)?.data.total_steps).toBe(61)
})

verifies(['agent:session:own-fields', 'agent:model:per-run'], async () => {
  const agent = await startTestAgent({ script: WRITING })
  const made = await agent.call('POST', '/sessions', {
    body: { model: 'demo', max_steps: 1, title: 'Mine', plan_mode: true },
  })
  const id = made.body.session_id
  expect(made.body.model).toBe('demo')
  const details = (await agent.call('GET', `/sessions/${id}`)).body
  expect(details).toMatchObject({ model: 'demo', title: 'Mine' })
  expect((await agent.finish(id, 'list files')).at(-1)?.data).toMatchObject({
    finish_reason: 'BudgetExceeded',
    total_steps: 1,
  })
  // In plan mode nothing is written; without it everything is.
  const refused = await agent.finish(id, 'write hello.txt: hi', { max_steps: 5 })
  expect(refused.find(({ event }) => event === 'tool_result')?.data.success).toBe(false)
  const other = await agent.session()
  const written = await agent.finish(other, 'write')
  expect(written.find(({ event }) => event === 'tool_result')?.data.success).toBe(true)
  // The run's own model answers in place of the session's.
  const demo = await agent.finish(other, 'hello', { model: 'demo' })
  expect(JSON.stringify(demo)).toContain('demo model')
  expect(JSON.stringify(await agent.finish(other, 'hello'))).toContain('Fine.')
})

verifies(['agent:session:more-details', 'agent:message:no-system', 'agent:workspace:root'], async () => {
  const agent = await startTestAgent()
  const id = await agent.session({ system_prompt: 'You are a pirate.', title: 'Ship' })
  await agent.finish(id, 'list files')
  const { body } = await agent.call('GET', `/sessions/${id}`)
  expect(body).toMatchObject({
    status: 'idle',
    active_run_id: null,
    pending_plan: null,
    usage: { total_steps: 2, total_tokens: expect.any(Number) },
    system_prompt: 'You are a pirate.',
    workspace: agent.workspace,
    title: 'Ship',
    model: 'demo',
  })
  expect(body.usage.total_tokens).toBeGreaterThan(0)
  expect(JSON.stringify(body.transcript)).not.toContain('pirate')
  const alone = await agent.call('POST', '/run', { body: { goal: 'hello', system_prompt: 'You are a pirate.' } })
  expect(JSON.stringify(alone.body.messages)).not.toContain('pirate')
})

verifies('agent:message:shape', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const runId = (await agent.finish(id, 'list files'))[0]?.data.run_id
  const { transcript } = (await agent.call('GET', `/sessions/${id}`)).body
  const call = { type: 'tool_use', id: expect.any(String), name: 'list_dir', input: { path: '.' } }
  expect(transcript).toMatchObject([
    { role: 'user', content: [{ type: 'text', text: 'list files' }], run_id: runId, step: 0 },
    { role: 'assistant', content: [call], run_id: runId, step: 1 },
    { role: 'tool', content: [{ type: 'tool_result', is_error: false, content: expect.any(String) }], step: 1 },
    { role: 'assistant', content: [{ type: 'text', text: expect.any(String) }], step: 2 },
  ])
  expect(transcript[2].content[0].tool_use_id).toBe(transcript[1].content[0].id)
  for (const { created_at: at } of transcript) expect(new Date(at).toISOString()).toBe(at)
})

verifies('agent:session:renamed', async () => {
  const agent = await startTestAgent()
  const id = await agent.session({ title: 'old' })
  const { status, body } = await agent.call('PATCH', `/sessions/${id}`, { body: { title: 'new' } })
  expect([status, body.session_id, body.title]).toEqual([200, id, 'new'])
  expect((await agent.call('PATCH', `/sessions/${id}`, { body: {} })).body.title).toBe('new')
  expect((await agent.call('GET', `/sessions/${id}`)).body.title).toBe('new')
})

verifies('agent:run:keeps-transcript', async () => {
  const agent = await startTestAgent({ script: [[{ text: 'first answer' }], [{ text: 'second answer' }]] })
  const id = await agent.session()
  const said = async (goal: string) =>
    (await agent.finish(id, goal)).find(({ event }) => event === 'message')?.data.content[0].text
  // The script's second turn answers only where the model sees that it has spoken once.
  expect([await said('one'), await said('two')]).toEqual(['first answer', 'second answer'])
  const other = await agent.session()
  expect((await agent.finish(other, 'one')).find(({ event }) => event === 'message')?.data.content[0].text).toBe(
    'first answer',
  )
})

verifies('agent:run:names', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const headers = { accept: 'application/json' }
  for (const name of ['goal', 'message', 'content']) {
    const { status, body } = await agent.call('POST', `/sessions/${id}/run`, {
      body: { [name]: `by ${name}` },
      headers,
    })
    expect(status, name).toBe(202)
    await (await agent.events(body.events_url)).until('done')
    expect((await agent.call('POST', '/run', { body: { [name]: 'hello' } })).status, name).toBe(200)
  }
  const { runs } = (await agent.call('GET', `/sessions/${id}/runs`)).body
  expect(runs.map(({ goal }: { goal: string }) => goal).sort()).toEqual(['by content', 'by goal', 'by message'])
})

verifies('agent:run:listed', async () => {
  const agent = await startTestAgent({
    script: { turns: [{ match: 'wait', steps: [{ stall: 'forever' }] }], after: 'Fine.' },
  })
  const id = await agent.session()
  await agent.finish(id, 'hello')
  const { run_id: runId } = await agent.run(id, 'wait')
  const { run_id: queued } = await agent.run(id, 'later', { on_busy: 'enqueue' })
  const { runs } = (await agent.call('GET', `/sessions/${id}/runs`)).body
  expect(runs).toMatchObject([
    { goal: 'hello', status: 'finished', finish_reason: 'NoMoreToolCalls', error: null },
    { run_id: runId, goal: 'wait', status: 'running', finish_reason: null, finished_at: null },
    { run_id: queued, goal: 'later', status: 'queued', started_at: null },
  ])
})

verifies('agent:once:a-day', async () => {
  let aheadMs = 0
  const agent = await startTestAgent({ now: () => Date.now() + aheadMs })
  const make = async () =>
    (await agent.call('POST', '/sessions', { body: {}, headers: { 'idempotency-key': 'k' } })).body.session_id
  const first = await make()
  aheadMs = 23 * 3_600_000
  expect(await make()).toBe(first)
  aheadMs = 25 * 3_600_000
  expect(await make()).not.toBe(first)
})

verifies('agent:errors:unknown-fields', async () => {
  const agent = await startTestAgent()
  const fine = await agent.call('POST', '/sessions', { body: { title: 'x', colour: 'red', nested: { a: [1] } } })
  expect(fine.status).toBe(201)
  expect(JSON.stringify((await agent.call('GET', fine.headers.get('location') ?? '')).body)).not.toContain('red')
  const wrong = await agent.call('POST', '/sessions', { body: { title: 5 } })
  expect([wrong.status, wrong.body.error.details.field]).toEqual([422, 'title'])
})

verifies('agent:metrics:text', async () => {
  const agent = await startTestAgent()
  await agent.finish(await agent.session(), 'hello')
  const { status, headers, text } = await agent.call('GET', '/metrics')
  expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')])
  expect(text).toMatch(/^switchboard_agent_runs_total\{[^}]*finish_reason="NoMoreToolCalls"\} 1$/m)
})

verifies(['agent:events:no-echo', 'agent:events:added-fields', 'agent:events:order'], async () => {
  const agent = await startTestAgent()
  const events = await agent.finish(await agent.session(), 'list files')
  expect(namesOf(events)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
  const messages = events.filter(({ event }) => event === 'message')
  expect(messages).toMatchObject([{ data: { role: 'assistant' } }])
  const of = (name: string) => events.find(({ event }) => event === name)?.data
  expect(of('tool_call')).toMatchObject({ call_id: expect.any(String), arguments: { path: '.' } })
  expect(of('tool_result')).toMatchObject({ call_id: of('tool_call').call_id, output: expect.any(String) })
  for (const { id, data } of events) expect(data).toMatchObject({ id, run_id: of('done').run_id })
})

verifies('agent:events:live', async () => {
  const agent = await startTestAgent({
    script: [[{ text: 'Let me look.' }, { tool_calls: [{ name: 'list_dir', input: {} }] }], [{ stall: 'forever' }]],
  })
  const id = await agent.session()
  const reader = await agent.events((await agent.run(id, 'go')).events_url)
  const told = (await reader.until('message')).at(-1)?.data
  expect(told.content[0].text).toBe('Let me look.')
  expect((await agent.call('GET', `/sessions/${id}`)).body.status).toBe('running')
})
