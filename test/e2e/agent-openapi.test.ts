import SwaggerParser from '@apidevtools/swagger-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import createClient from 'openapi-fetch'
import { expect, test } from 'vitest'
import * as wire from '../../src/wire/agent.ts'
import { documentCheck, mismatch } from '../support/openapi-check.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

// biome-ignore lint/suspicious/noExplicitAny: the document is read as the plain JSON it is
type Json = any

/** The calls of the document that are tried, as a generator would write them. */
interface Paths {
  '/sessions': {
    get: { responses: { 200: { content: { 'application/json': { session_id: string }[] } } } }
    post: {
      requestBody?: { content: { 'application/json': { title?: string } } }
      responses: { 201: { content: { 'application/json': { session_id: string; created_at: string } } } }
    }
  }
  '/sessions/{id}': {
    get: {
      parameters: { path: { id: string } }
      responses: { 200: { content: { 'application/json': { turn_count: number; title: string | null } } } }
    }
    delete: { parameters: { path: { id: string } }; responses: { 204: { content?: never } } }
  }
  '/run': {
    post: {
      requestBody?: { content: { 'application/json': { goal: string } } }
      responses: { 200: { content: { 'application/json': { status: string; finish_reason: string } } } }
    }
  }
}

for (const [name, authKeys] of [
  ['open', null],
  ['with keys', ['k']],
] satisfies [string, string[] | null][])
  verifies(
    'agent:openapi:valid',
    `the description of a server that is ${name} is valid for two validators`,
    async () => {
      const agent = await startTestAgent({ authKeys })
      const headers: Record<string, string> = authKeys === null ? {} : { 'x-api-key': 'k' }
      const { status, text, body } = await agent.call('GET', '/openapi.json', { headers })
      expect(status).toBe(200)
      expect(body.openapi).toMatch(/^3\.0\.\d$/)
      await SwaggerParser.validate(JSON.parse(text))
      expect(await new Validator().validate(JSON.parse(text))).toMatchObject({ valid: true })
      for (const [path, methods] of [
        ['/health', ['get']],
        ['/tools', ['get']],
        ['/run', ['post']],
        ['/sessions', ['get', 'post']],
        ['/sessions/{id}', ['get', 'delete', 'patch']],
        ['/sessions/{id}/run', ['post']],
        ['/sessions/{id}/events', ['get']],
        ['/openapi.json', ['get']],
      ] as const)
        expect(Object.keys(body.paths[path]), path).toEqual(expect.arrayContaining([...methods]))
      const names = (path: string, method: string) =>
        body.paths[path][method].parameters.map((one: { name: string }) => one.name)
      expect(names('/sessions/{id}/events', 'get')).toEqual(expect.arrayContaining(['Last-Event-ID', 'after', 'until']))
      for (const path of ['/sessions', '/sessions/{id}/run']) expect(names(path, 'post')).toContain('Idempotency-Key')
      expect(Object.keys(body.paths['/run'].post.responses['200'].content)).toContain('text/event-stream')
      const isSecured = 'security' in body.paths['/sessions'].get
      expect([isSecured, 'security' in body.paths['/health'].get]).toEqual([authKeys !== null, false])
    },
  )

verifies('agent:openapi:complete', 'every path and method of the description is there', async () => {
  const agent = await startTestAgent()
  const { body } = await agent.call('GET', '/openapi.json')
  for (const [path, operations] of Object.entries<object>(body.paths)) {
    for (const method of Object.keys(operations)) {
      const id = await agent.session()
      const reader = await agent.events(path.replace('{id}', id), { method: method.toUpperCase() })
      reader.close()
      expect([404, 405], `${method} ${path}`).not.toContain(reader.status)
    }
  }
})

test('a client made from the description works', async () => {
  const agent = await startTestAgent()
  const client = createClient<Paths>({ baseUrl: agent.url })
  const made = await client.POST('/sessions', { body: { title: 'mine' } })
  expect(made.response.status).toBe(201)
  const id = made.data?.session_id ?? ''
  const path = { id }
  expect((await client.GET('/sessions')).data?.map(({ session_id }) => session_id)).toEqual([id])
  expect((await client.GET('/sessions/{id}', { params: { path } })).data).toMatchObject({
    turn_count: 0,
    title: 'mine',
  })
  expect((await client.POST('/run', { body: { goal: 'hello' } })).data).toMatchObject({ status: 'finished' })
  expect((await client.DELETE('/sessions/{id}', { params: { path } })).response.status).toBe(204)
  const gone = await client.GET('/sessions/{id}', { params: { path } })
  expect(gone.error).toMatchObject({ error: { code: 'not_found' } })
})

verifies('agenthttp:openapi:examples', async () => {
  const agent = await startTestAgent()
  const { body: document } = await agent.call('GET', '/openapi.json')
  let seen = 0
  for (const [path, operations] of Object.entries<Json>(document.paths)) {
    for (const [method, { requestBody, responses }] of Object.entries<Json>(operations)) {
      for (const { content } of [requestBody ?? {}, ...Object.values<Json>(responses)]) {
        for (const { schema, example } of Object.values<Json>(content ?? {})) {
          if (example === undefined) continue
          seen += 1
          expect(mismatch(document, schema, example), `${method} ${path}`).toBeNull()
        }
      }
    }
  }
  expect(seen).toBeGreaterThan(100)
})

verifies('agenthttp:openapi:complete', async () => {
  for (const authKeys of [null, ['k']]) {
    const agent = await startTestAgent({ authKeys })
    const { body: document } = await agent.call('GET', '/openapi.json', { headers: { 'x-api-key': 'k' } })
    const sessionRun = document.paths['/sessions/{id}/run'].post
    const own = authKeys === null ? '403' : '401'
    for (const status of ['200', '202', '400', own, '404', '409', '413', '415', '422', '429', '500', '503'])
      expect(Object.keys(sessionRun.responses), status).toContain(status)
    expect(Object.keys(sessionRun.responses['429'].headers)).toEqual(
      expect.arrayContaining(['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']),
    )
    expect(Object.keys(document.paths['/sessions'].post.responses['201'].headers)).toContain('Location')
    expect(Object.keys(document.paths['/sessions'].get.responses['200'].headers)).toContain('Link')
    expect(Object.keys(document.paths['/sessions/{id}/events'].get.responses)).toContain('410')
    expect(Object.keys(document.paths['/run'].post.responses)).toContain('502')
    for (const event of [...Object.keys(wire.EVENT_SCHEMAS), ...Object.keys(wire.EXTENDED_EVENT_SCHEMAS)])
      expect(document.components.schemas[`event_${event}`], event).toBeDefined()
    expect(sessionRun['x-sse-events'].always.done).toEqual({ $ref: '#/components/schemas/event_done' })
    const { security } = document.paths['/sessions/{id}/events'].get
    expect(security).toEqual(authKeys === null ? undefined : [{ key: [] }, { bearer: [] }, { ticket: [] }])
  }
})

verifies('agenthttp:openapi:checked', async () => {
  const check = documentCheck(false)
  const headers = new Headers({ 'content-type': 'application/json', location: '/x', 'x-request-id': 'x' })
  const seen = { method: 'GET', path: '/sessions', status: 200, headers: new Headers(headers), body: [] }
  seen.headers.delete('location')
  seen.headers.delete('x-request-id')
  check.answer(seen)
  for (const wrong of [
    { status: 418 },
    { body: {} },
    { body: [{ session_id: 5 }] },
    { headers },
    { path: '/nothing' },
    { headers: new Headers({ 'content-type': 'text/html' }) },
  ])
    expect(() => check.answer({ ...seen, ...wrong }), JSON.stringify(wrong)).toThrow()
  expect(() => check.event('done', { finish_reason: 5 })).toThrow()
})

verifies(
  'agent:openapi:complete',
  'answers and events of every kind come by, and each is held against the document on its way',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session({ title: 't' })
    const path = `/sessions/${id}`
    const { events_url: url } = await agent.run(id, 'plan: tidy up')
    const reader = await agent.events(`${url}&extended=1`)
    const events = await reader.until('plan_proposed')
    const waiting = await agent.call('GET', path)
    expect(waiting.body.pending_plan).not.toBeNull()
    expect((await agent.call('GET', `${path}/runs`)).body.runs).toHaveLength(1)
    await agent.call('POST', `${path}/plan/confirm`)
    events.push(...(await reader.until('done')), ...(await agent.finish(id, 'list files')))
    const kinds = new Set(events.map(({ event }) => event))
    for (const kind of ['run_started', 'usage', 'plan_proposed', 'plan_decided', 'tool_result', 'message', 'done'])
      expect(kinds, kind).toContain(kind)
    for (const one of [path, `${path}/runs`, '/sessions', '/tools', '/ready'])
      expect((await agent.call('GET', one)).status, one).toBe(200)
    expect((await agent.call('PATCH', path, { body: { title: 'x' } })).status).toBe(200)
    expect((await agent.call('POST', '/run', { body: { goal: 'list files' } })).status).toBe(200)
    expect((await agent.call('GET', '/nothing')).status).toBe(404)
  },
)
