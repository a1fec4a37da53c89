import SwaggerParser from '@apidevtools/swagger-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import createClient from 'openapi-fetch'
import { Compile } from 'typebox/compile'
import { expect, test } from 'vitest'
import * as wire from '../../src/wire/agent.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

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

/** `nullable` is OpenAPI's; the checker knows JSON Schema. */
function jsonSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(jsonSchema)
  if (typeof value !== 'object' || value === null) return value
  const { nullable, ...rest }: Record<string, unknown> = { ...value }
  const plain = Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, jsonSchema(one)]))
  return nullable === true ? { anyOf: [plain, { type: 'null' }] } : plain
}

function expectMatch(schema: object, value: unknown, what: string): void {
  const compiled = Compile({ ...Object(jsonSchema(JSON.parse(JSON.stringify(schema)))) })
  expect([...compiled.Errors(value)], what).toEqual([])
  expect(compiled.Check(value), what).toBe(true)
}

verifies('agent:openapi:complete', 'answers and events are as the schemas say', async () => {
  const agent = await startTestAgent()
  const made = await agent.call('POST', '/sessions', { body: { title: 't' } })
  expectMatch(wire.SessionCreated, made.body, 'created')
  const id = made.body.session_id
  const path = `/sessions/${id}`
  const receipt = await agent.run(id, 'plan: tidy up')
  expectMatch(wire.RunAccepted, receipt, 'accepted')
  const reader = await agent.events(receipt.events_url)
  const events = await reader.until('plan_proposed')
  expectMatch(wire.SessionDetails, (await agent.call('GET', path)).body, 'details while a plan waits')
  const runs = async () => (await agent.call('GET', `${path}/runs`)).body.runs
  expectMatch(wire.WireRun, (await runs())[0], 'a run that waits')
  await agent.call('POST', `${path}/plan/confirm`)
  events.push(...(await reader.until('done')), ...(await agent.finish(id, 'list files')))
  const schemas = new Map<string, object>(Object.entries(wire.EVENT_SCHEMAS))
  for (const { event, data } of events) expectMatch(schemas.get(event) ?? {}, data, event)
  expect(new Set(events.map(({ event }) => event)).size).toBe(6)
  expectMatch(wire.SessionDetails, (await agent.call('GET', path)).body, 'details')
  for (const run of await runs()) expectMatch(wire.WireRun, run, 'a run')
  for (const one of (await agent.call('GET', '/sessions')).body) expectMatch(wire.SessionSummary, one, 'summary')
  for (const tool of (await agent.call('GET', '/tools')).body) expectMatch(wire.WireTool, tool, tool.name)
  expectMatch(wire.SessionSummary, (await agent.call('PATCH', path, { body: { title: 'x' } })).body, 'patched')
  expectMatch(wire.RunResult, (await agent.call('POST', '/run', { body: { goal: 'list files' } })).body, 'result')
  expectMatch(wire.ErrorBody, (await agent.call('GET', '/nothing')).body, 'error')
})
