import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { namesOf, startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const ORDER = ['tool_call', 'tool_result', 'message', 'done']

verifies(
  ['agent:health:text', 'agent:health:json', 'agent:model:told'],
  'health is a short text, and JSON for who asks for it',
  async () => {
    const agent = await startTestAgent()
    const plain = await agent.call('GET', '/health')
    expect([plain.status, plain.text]).toEqual([200, 'ok'])
    const json = await agent.call('GET', '/health', { headers: { accept: 'application/json' } })
    expect(json.body).toEqual({ status: 'ok', model: 'demo' })
    expect((await agent.call('GET', '/health', { headers: { accept: 'application/json, */*' } })).text).toBe('ok')
    expect((await agent.call('GET', '/ready')).body).toEqual({ ready: true })
  },
)

verifies(['agent:tools:listed', 'agent:tools:set'], 'the tools are listed with the schema of their input', async () => {
  const agent = await startTestAgent()
  const { status, body } = await agent.call('GET', '/tools')
  expect(status).toBe(200)
  const names = body.map((tool: { name: string }) => tool.name)
  for (const name of ['read_file', 'write_file', 'edit_file', 'apply_patch', 'list_dir', 'glob', 'grep', 'todo_write'])
    expect(names).toContain(name)
  for (const tool of body) {
    expect(Object.keys(tool).sort()).toEqual(['description', 'name', 'parameters', 'read_only', 'source'])
    expect(tool.parameters.type).toBe('object')
  }
})

verifies(
  ['agent:alone:result', 'agent:alone:stateless', 'agent:message:shape'],
  'a run without a session answers with its result and leaves no session',
  async () => {
    const agent = await startTestAgent()
    writeFileSync(join(agent.workspace, 'notes.txt'), 'hello\n')
    const body = { goal: 'list files', system_prompt: 'Be short.', max_steps: 10 }
    const answer = await agent.call('POST', '/run', { body })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      status: 'finished',
      finish_reason: 'NoMoreToolCalls',
      usage: { total_steps: 2 },
    })
    expect(answer.body.usage.total_tokens).toBeGreaterThan(0)
    expect(answer.body.messages.map((message: { role: string }) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
    expect(answer.body.messages.at(-1).content[0]).toMatchObject({ type: 'text' })
    expect(JSON.stringify(answer.body.messages)).toContain('notes.txt')
    expect((await agent.call('GET', '/sessions')).body).toEqual([])
  },
)

verifies('agent:alone:stream', 'a run without a session can be streamed', async () => {
  const agent = await startTestAgent()
  const headers = { accept: 'text/event-stream' }
  const reader = await agent.events('/run', { method: 'POST', body: { goal: 'list files' }, headers })
  const events = await reader.until('done')
  expect(namesOf(events)).toEqual(ORDER)
  expect(events.at(-1)?.data).toMatchObject({ finish_reason: 'NoMoreToolCalls', total_steps: 2 })
  expect(await reader.next()).toBeNull()
})

verifies(
  [
    'agent:session:created',
    'agent:session:location',
    'agent:session:listed',
    'agent:session:details',
    'agent:session:deleted',
    'agent:session:deleted-twice',
    'agent:run:counted',
    'agent:workspace:inside',
  ],
  'a session is made, listed, told, run, and deleted',
  async () => {
    const agent = await startTestAgent()
    const made = await agent.call('POST', '/sessions', { body: { system_prompt: 'Be kind.', workspace: 'sub/dir' } })
    expect(made.status).toBe(201)
    const { session_id: id, created_at: createdAt } = made.body
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(made.headers.get('location')).toBe(`/sessions/${id}`)
    expect(new Date(createdAt).toISOString()).toBe(createdAt)
    const list = await agent.call('GET', '/sessions')
    expect(list.body).toMatchObject([{ session_id: id, created_at: createdAt, last_active: createdAt }])

    const events = await agent.finish(id, 'write hello.txt: hi')
    expect(namesOf(events)).toEqual(ORDER)
    expect(readFileSync(join(agent.workspace, 'sub/dir/hello.txt'), 'utf8')).toBe('hi')
    const details = (await agent.call('GET', `/sessions/${id}`)).body
    expect(details).toMatchObject({
      session_id: id,
      created_at: createdAt,
      turn_count: 1,
      status: 'idle',
      active_run_id: null,
      system_prompt: 'Be kind.',
      workspace: join(agent.workspace, 'sub/dir'),
    })
    expect(details.last_active >= createdAt).toBe(true)
    expect(details.transcript.map((message: { role: string }) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ])

    const gone = await agent.call('DELETE', `/sessions/${id}`)
    expect([gone.status, gone.text]).toEqual([204, ''])
    for (const [method, path] of [
      ['DELETE', ''],
      ['GET', ''],
      ['GET', '/events'],
      ['POST', '/cancel'],
      ['GET', '/runs'],
    ] as const)
      expect((await agent.call(method, `/sessions/${id}${path}`)).status, path).toBe(404)
    expect((await agent.call('GET', '/sessions')).body).toEqual([])
  },
)

verifies(
  ['agent:run:receipt', 'agent:run:events-url'],
  'the receipt of a run says where its events are, also after it has ended',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    await agent.finish(id, 'first')
    const receipt = await agent.run(id, 'list files')
    expect(receipt).toMatchObject({ session_id: id, status: 'running' })
    const first = await agent.events(receipt.events_url)
    const told = await first.until('done')
    expect(namesOf(told)).toEqual(ORDER)
    expect(new Set(told.map(({ data }) => data.run_id))).toEqual(new Set([receipt.run_id]))
    // The run is over now.
    const again = await agent.events(receipt.events_url)
    expect(await again.until('done')).toEqual(told)
  },
)

verifies('agent:events:fields', 'events carry the fields of the contract', async () => {
  const agent = await startTestAgent()
  const events = await agent.finish(await agent.session(), 'list files')
  const one = (name: string) => events.find(({ event }) => event === name)?.data
  expect(one('tool_call')).toMatchObject({ name: 'list_dir', step: 1 })
  expect(one('tool_result')).toMatchObject({ name: 'list_dir', success: true })
  expect(one('partial_message')).toMatchObject({ text: expect.any(String), step: 2 })
  expect(one('message')).toMatchObject({ role: 'assistant', content: [{ type: 'text', text: expect.any(String) }] })
  expect(one('done')).toMatchObject({ finish_reason: 'NoMoreToolCalls', total_steps: 2 })
  const deltas = events.filter(({ event }) => event === 'partial_message').map(({ data }) => data.text)
  expect(deltas.length).toBeGreaterThan(1)
  expect(deltas.join('')).toBe(one('message').content[0].text)
})

verifies(
  ['agent:session:during-run', 'agent:cancel:again', 'agent:cancel:now'],
  'details are true during a run',
  async () => {
    const agent = await startTestAgent({ script: [[{ text: 'so far' }, { stall: 'forever' }]] })
    const id = await agent.session()
    const { run_id: runId, events_url: path } = await agent.run(id, 'go on')
    const reader = await agent.events(path)
    await reader.until('partial_message')
    const details = (await agent.call('GET', `/sessions/${id}`)).body
    expect(details).toMatchObject({ status: 'running', active_run_id: runId, turn_count: 1 })
    expect(details.transcript).toMatchObject([{ role: 'user', content: [{ type: 'text', text: 'go on' }] }])
    const cancelled = await agent.call('POST', `/sessions/${id}/cancel`)
    expect(cancelled.body).toEqual({ session_id: id, cancelled: true })
    expect((await reader.until('done')).at(-1)?.data.finish_reason).toBe('Cancelled')
    expect((await agent.call('POST', `/sessions/${id}/interrupt`)).body.cancelled).toBe(false)
  },
)

verifies(
  'agent:session:deleted-running',
  'deleting a session ends its run with done and its streams with it',
  async () => {
    const agent = await startTestAgent({ script: [[{ text: 'so far' }, { stall: 'forever' }]] })
    const id = await agent.session()
    const { events_url: path } = await agent.run(id, 'go on')
    const readers = await Promise.all([1, 2, 3].map(() => agent.events(path)))
    await Promise.all(readers.map((reader) => reader.until('partial_message')))
    expect((await agent.call('DELETE', `/sessions/${id}`)).status).toBe(204)
    for (const reader of readers) {
      const rest = await reader.until('never')
      expect(rest.map(({ event, data }) => [event, data.finish_reason])).toEqual([['done', 'Cancelled']])
    }
  },
)

verifies(
  ['agent:run:start-up-form', 'agent:run:accept'],
  'the start-up form with message streams the run on the POST, and Accept overrides either way',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session({ system_prompt: 'x' })
    const path = `/sessions/${id}/run`
    const reader = await agent.events(path, { method: 'POST', body: { message: 'list files' } })
    expect([reader.status, reader.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(namesOf(await reader.until('done'))).toEqual(ORDER)
    expect(await reader.next()).toBeNull()

    const accept = 'application/json'
    const receipt = await agent.call('POST', path, { body: { message: 'hello' }, headers: { accept } })
    expect(receipt.status).toBe(202)
    await (await agent.events(receipt.body.events_url)).until('done')
    const streamed = await agent.events(path, {
      method: 'POST',
      body: { goal: 'list files' },
      headers: { accept: 'text/event-stream' },
    })
    expect(namesOf(await streamed.until('done'))).toEqual(ORDER)
    expect((await agent.call('GET', `/sessions/${id}`)).body.turn_count).toBe(3)
  },
)

verifies(
  ['agent:events:failure', 'agent:alone:provider-fails'],
  'a failing model is an error event and a done, and 502 for a run without a session',
  async () => {
    const script = [[{ error: { kind: 'auth' as const, message: 'no such key' } }]]
    const agent = await startTestAgent({ script })
    const events = await agent.finish(await agent.session(), 'anything')
    expect(events.map(({ event }) => event)).toEqual(['error', 'done'])
    expect(events[0]?.data.message).toContain('no such key')
    const alone = await agent.call('POST', '/run', { body: { goal: 'anything' } })
    expect([alone.status, alone.body.error.code]).toEqual([502, 'provider_failed'])
  },
)

verifies('agent:session:paged', 'sessions are paged, newest first', async () => {
  const agent = await startTestAgent()
  const ids = [await agent.session(), await agent.session(), await agent.session()].reverse()
  const seen: string[] = []
  let path: string | undefined = '/sessions?limit=2'
  while (path !== undefined) {
    const { body, headers } = await agent.call('GET', path)
    seen.push(...body.map((one: { session_id: string }) => one.session_id))
    path = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
  }
  expect(seen).toEqual(ids)
  expect((await agent.call('GET', '/sessions?limit=0')).status).toBe(422)
})

verifies('agent:workspace:escape', 'a workspace outside the root is refused and not made', async () => {
  const agent = await startTestAgent()
  for (const workspace of ['../elsewhere', '/etc', `${agent.workspace}/../x`]) {
    const { status, body } = await agent.call('POST', '/sessions', { body: { workspace } })
    expect([status, body.error.code], workspace).toEqual([422, 'workspace_outside'])
    expect(body.error.details).toEqual({ field: 'workspace' })
  }
  expect(existsSync(join(agent.workspace, '../elsewhere'))).toBe(false)
})

verifies('agent:workspace:file', 'a workspace that is a file is refused, by its name', async () => {
  const agent = await startTestAgent()
  writeFileSync(join(agent.workspace, 'notes.txt'), 'a file')
  const { status, body } = await agent.call('POST', '/sessions', { body: { workspace: 'notes.txt' } })
  expect([status, body.error.code]).toEqual([422, 'workspace_not_a_folder'])
  expect(body.error).toMatchObject({ message: expect.stringContaining('notes.txt'), details: { field: 'workspace' } })
})
