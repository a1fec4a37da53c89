import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  ConfirmPlanBody,
  CreateSessionBody,
  ForkSessionBody,
  PatchSessionBody,
  PlanBody,
  RejectPlanBody,
  SessionRunBody,
  StatelessRunBody,
} from '../../src/wire/agent.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startTestAgent, type TestAgent } from '../support/test-agent.ts'
import type { Answer } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'
import { type Json, type WrongBody, wrongBodies, wrongMethods } from '../support/wrong-bodies.ts'

const BODY_BYTES = 1024 * 1024

const ENDPOINTS = {
  'run without a session': {
    method: 'POST',
    path: '/run',
    schema: StatelessRunBody,
    good: {
      goal: 'hello',
      system_prompt: 'x',
      model: 'demo',
      plan_mode: false,
      max_steps: 3,
      max_tokens: 10_000,
      max_cost: 1,
      wall_clock_ms: 60_000,
    },
  },
  'make a session': {
    method: 'POST',
    path: '/sessions',
    schema: CreateSessionBody,
    good: { system_prompt: 'x', workspace: 'sub', model: 'demo', max_steps: 3, title: 't', plan_mode: false },
  },
  'run in a session': {
    method: 'POST',
    path: '/sessions/:id/run',
    schema: SessionRunBody,
    good: { goal: 'hello', model: 'demo', max_steps: 3, max_tokens: 9_999, max_cost: 1, on_busy: 'enqueue' },
  },
  'fork a session': {
    method: 'POST',
    path: '/sessions/:id/fork',
    schema: ForkSessionBody,
    good: { title: 't', messages: 1 },
  },
  'change a session': {
    method: 'PATCH',
    path: '/sessions/:id',
    schema: PatchSessionBody,
    good: { title: 'Other' },
  },
  'decide on a plan': {
    method: 'POST',
    path: '/sessions/:id/plan',
    schema: PlanBody,
    good: { decision: 'reject', feedback: 'x', plan: 'y' },
  },
  'confirm a plan': {
    method: 'POST',
    path: '/sessions/:id/plan/confirm',
    schema: ConfirmPlanBody,
    good: { edits: 'x' },
  },
  'reject a plan': {
    method: 'POST',
    path: '/sessions/:id/plan/reject',
    schema: RejectPlanBody,
    good: { reason: 'x' },
  },
} satisfies Record<string, { method: string; path: string; schema: object; good: Record<string, Json> }>

for (const [name, { method, path, schema, good }] of Object.entries(ENDPOINTS))
  verifies(
    ['agent:errors:malformed', 'agent:errors:too-large', 'agent:errors:shape'],
    `${name}: every field wrong in turn is told by name and changes nothing`,
    async () => {
      const agent = await startTestAgent()
      const id = await agent.session({ title: 'First', plan_mode: true })
      const plan = await agent.events((await agent.run(id, 'plan: tidy up')).events_url)
      await plan.until('plan_proposed')
      plan.close()
      const before = await stateOf(agent, id)
      const target = path.replace(':id', id)
      let tried = 0
      for (const wrong of wrongBodies({ schema, good, bodyLimitBytes: BODY_BYTES })) {
        if (wrong.kind === 'control characters') continue
        tried += 1
        const answer = await agent.call(method, target, { body: wrong.text })
        expectRefused(answer, statusFor(wrong), wrong.what)
        const [field = ''] = wrong.field.split('.')
        if (answer.status === 422) {
          expect(answer.body.error.message, wrong.what).toContain(field)
          expect(answer.body.error.details.field, wrong.what).toBe(field === '' ? 'body' : field)
        }
      }
      expect(tried).toBeGreaterThan(20)
      expect(await stateOf(agent, id)).toEqual(before)
      const fine = await agent.call(method, target, { body: good, headers: { accept: 'application/json' } })
      expect(fine.status, fine.text).toBeLessThan(300)
    },
    60_000,
  )

function statusFor({ kind }: WrongBody): number {
  if (kind === 'huge') return 413
  return kind === 'not JSON' ? 400 : 422
}

function expectRefused({ status, headers, body, text }: Answer, expected: number, what: string): void {
  expect([status, headers.get('content-type')], `${what}: ${text}`).toEqual([
    expected,
    'application/json; charset=utf-8',
  ])
  expect(Object.keys(body), what).toEqual(['error', 'request_id'])
  expect(body.error.message, what).toMatch(/^.{10,300}\.$/s)
  expect(headers.get('x-request-id'), what).toBe(body.request_id)
  expect(text, what).not.toMatch(/\\n +at |node_modules|\.ts:\d/)
}

async function stateOf(agent: TestAgent, id: string) {
  const answers = ['/sessions', `/sessions/${id}`, `/sessions/${id}/runs`].map((path) => agent.call('GET', path))
  return (await Promise.all(answers)).map(({ body }) => body)
}

verifies(
  ['agent:body:empty', 'agent:session:body'],
  'a run without a goal is told what is missing, and an empty body is fine where all is optional',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    for (const path of ['/run', `/sessions/${id}/run`]) {
      for (const body of [undefined, '', {}, { goal: '  ' }, { system_prompt: 'x' }]) {
        const answer = await agent.call('POST', path, { body })
        expectRefused(answer, 422, path)
        expect(answer.body.error.details.field).toBe('goal')
      }
    }
    const headers = { 'content-type': 'application/json' }
    for (const body of [undefined, '', {}])
      expect((await agent.call('POST', '/sessions', { body, headers })).status).toBe(201)
    expect((await agent.call('POST', `/sessions/${id}/cancel`, { headers })).status).toBe(200)
    expect((await agent.call('DELETE', `/sessions/${id}`, { headers })).status).toBe(204)
  },
)

test('a mistake in the query of a run starts nothing', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const answer = await agent.call('POST', `/sessions/${id}/run?after=x`, { body: { message: 'hello' } })
  expectRefused(answer, 422, 'after')
  expect((await agent.call('GET', `/sessions/${id}`)).body.turn_count).toBe(0)
})

verifies('agent:errors:shape', 'unknown paths, ids and models are told', async () => {
  const agent = await startTestAgent()
  for (const path of ['/', '/nothing', '/sessions/x', '/sessions/../health/x', `/sessions/${crypto.randomUUID()}/run`])
    expectRefused(await agent.call('POST', path, { body: { goal: 'x' } }), path === '/sessions/x' ? 405 : 404, path)
  expectRefused(await agent.call('GET', '/sessions/not-a-uuid'), 404, 'id')
  const id = await agent.session()
  const goal = 'hello'
  for (const model of ['nobody:knows', 'scripted:/etc/passwd', ':', 'openai:gpt-5', 'demo:x']) {
    expectRefused(await agent.call('POST', '/sessions', { body: { model, workspace: 'never' } }), 422, model)
    expectRefused(await agent.call('POST', `/sessions/${id}/run`, { body: { model, goal } }), 422, model)
    expectRefused(await agent.call('POST', '/run', { body: { model, goal } }), 422, model)
  }
  expect(existsSync(join(agent.workspace, 'never'))).toBe(false)
  await agent.call('DELETE', `/sessions/${id}`)
  expect((await agent.call('GET', '/sessions')).body).toEqual([])
})

verifies('agent:errors:method', 'a wrong method is told with those that are right', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  for (const [path, ...right] of [
    ['/health', 'GET', 'HEAD'],
    ['/tools', 'GET', 'HEAD'],
    ['/run', 'POST'],
    ['/sessions', 'GET', 'HEAD', 'POST'],
    [`/sessions/${id}`, 'GET', 'HEAD', 'PATCH', 'DELETE'],
    [`/sessions/${id}/run`, 'POST'],
    [`/sessions/${id}/events`, 'GET', 'HEAD'],
  ] as const) {
    for (const method of wrongMethods(right)) {
      const { status, headers } = await agent.call(method, path, method === 'POST' ? { body: {} } : {})
      expect(status, `${method} ${path}`).toBe(405)
      expect(headers.get('allow')?.split(', ').sort(), path).toEqual([...right].sort())
    }
  }
})

verifies('agent:errors:shape', 'what is no HTTP at all, and no UTF-8, gets a reason', async () => {
  const agent = await startTestAgent()
  const garbage = await rawRequest(agent.agent.port, 'GET\r\n\r\n')
  expect([garbage.status, JSON.parse(garbage.body).error.code]).toEqual([400, 'bad_request'])
  const head = 'POST /run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 12\r\n\r\n'
  const latin = Buffer.concat([Buffer.from(head), Buffer.from('{"goal":"\xe9"}', 'latin1')])
  expect((await rawRequest(agent.agent.port, latin)).status).toBe(400)
})
