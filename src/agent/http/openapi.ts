import type { TSchema } from 'typebox'
import * as wire from '../../wire/agent.ts'

interface Operation {
  method: 'get' | 'post' | 'patch' | 'delete'
  path: string
  summary: string
  body?: TSchema
  query?: Record<string, { description: string; schema: object }>
  headers?: Record<string, { description: string; schema: object }>
  /** `also`: what it is for a caller whose Accept asks for another type. */
  answers: Record<string, { description: string; schema?: object; type?: string; also?: Record<string, object> }>
  open?: boolean
}

const list = (items: TSchema) => ({ type: 'array', items })
const object = (properties: Record<string, object>) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})
const EVENTS = {
  after: { description: 'Start after this event; Last-Event-ID wins.', schema: { type: 'integer', minimum: 0 } },
  until: { description: '`done` ends the stream with the run.', schema: { type: 'string', enum: ['done'] } },
  extended: { description: '1: more kinds of events.', schema: { type: 'string', enum: ['0', '1'] } },
  error_event: { description: 'Another name for the event `error`.', schema: { type: 'string' } },
}
const RECEIPT = {
  'Idempotency-Key': {
    description: 'Your own id for this call: repeated with the same body within 24 h it gives the same answer.',
    schema: { type: 'string', maxLength: 256 },
  },
}
const CURSOR = {
  'Last-Event-ID': { description: 'The last event you have: the stream starts after it.', schema: { type: 'integer' } },
}
const STREAM_TEXT = {
  type: 'string',
  description: 'Events by name; the JSON in `data` is described by the schemas event_*.',
}
const STREAM = { description: 'Server-sent events.', type: 'text/event-stream', schema: STREAM_TEXT }

/** Every call, once; the schemas are those that check the bodies. */
const OPERATIONS: Operation[] = [
  {
    method: 'get',
    path: '/health',
    summary: 'Whether the server is there',
    open: true,
    answers: {
      '200': {
        description: 'ok',
        type: 'text/plain',
        schema: { type: 'string' },
        also: { 'application/json': object({ status: { type: 'string' }, model: { type: 'string' } }) },
      },
    },
  },
  {
    method: 'get',
    path: '/ready',
    summary: 'Whether it takes work',
    open: true,
    answers: {
      '200': { description: 'It does.', schema: object({ ready: { type: 'boolean' } }) },
      '503': { description: 'It is shutting down.', schema: object({ ready: { type: 'boolean' } }) },
    },
  },
  {
    method: 'get',
    path: '/tools',
    summary: 'The tools agents can use',
    answers: { '200': { description: 'The tools.', schema: list(wire.WireTool) } },
  },
  {
    method: 'post',
    path: '/run',
    summary: 'A run without a session',
    body: wire.StatelessRunBody,
    answers: {
      '200': { description: 'The result.', schema: wire.RunResult, also: { 'text/event-stream': STREAM_TEXT } },
    },
  },
  {
    method: 'post',
    path: '/sessions',
    summary: 'Make a session',
    body: wire.CreateSessionBody,
    headers: RECEIPT,
    answers: { '201': { description: 'Made.', schema: wire.SessionCreated } },
  },
  {
    method: 'get',
    path: '/sessions',
    summary: 'All sessions, newest first',
    query: {
      limit: { description: 'How many at most.', schema: { type: 'integer', minimum: 1, maximum: 1000 } },
      cursor: { description: 'After this session.', schema: { type: 'string' } },
    },
    answers: { '200': { description: 'Sessions.', schema: list(wire.SessionSummary) } },
  },
  {
    method: 'get',
    path: '/sessions/{id}',
    summary: 'A session with its transcript',
    answers: { '200': { description: 'The session.', schema: wire.SessionDetails } },
  },
  {
    method: 'patch',
    path: '/sessions/{id}',
    summary: 'Change the title',
    body: wire.PatchSessionBody,
    answers: { '200': { description: 'The session.', schema: wire.SessionSummary } },
  },
  {
    method: 'delete',
    path: '/sessions/{id}',
    summary: 'Delete a session',
    answers: { '204': { description: 'Gone.' } },
  },
  {
    method: 'post',
    path: '/sessions/{id}/run',
    summary: 'Run a goal in a session',
    body: wire.SessionRunBody,
    headers: RECEIPT,
    answers: {
      '200': STREAM,
      '202': { description: 'Accepted; its events are at events_url.', schema: wire.RunAccepted },
    },
  },
  {
    method: 'get',
    path: '/sessions/{id}/events',
    summary: 'The events of a session',
    query: EVENTS,
    headers: CURSOR,
    answers: { '200': STREAM, '204': { description: 'With until=done: nothing is left to come.' } },
  },
  {
    method: 'get',
    path: '/sessions/{id}/runs',
    summary: 'The runs of a session',
    answers: { '200': { description: 'Runs.', schema: object({ runs: list(wire.WireRun) }) } },
  },
  ...['cancel', 'interrupt'].map(
    (name): Operation => ({
      method: 'post',
      path: `/sessions/{id}/${name}`,
      summary: 'End the active run now',
      answers: {
        '200': {
          description: 'Done.',
          schema: object({ session_id: { type: 'string' }, cancelled: { type: 'boolean' } }),
        },
      },
    }),
  ),
  ...(
    [
      ['plan', wire.PlanBody],
      ['plan/confirm', wire.ConfirmPlanBody],
      ['plan/reject', wire.RejectPlanBody],
    ] as const
  ).map(
    ([name, body]): Operation => ({
      method: 'post',
      path: `/sessions/{id}/${name}`,
      summary: 'Decide on a plan',
      body,
      answers: {
        '200': {
          description: 'Decided.',
          schema: object({
            session_id: { type: 'string' },
            plan_id: { type: 'string' },
            run_id: { type: 'string' },
            decision: { type: 'string' },
          }),
        },
      },
    }),
  ),
  {
    method: 'get',
    path: '/metrics',
    summary: 'Figures for a collector',
    answers: { '200': { description: 'Prometheus text.', type: 'text/plain', schema: { type: 'string' } } },
  },
  {
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    answers: { '200': { description: 'OpenAPI 3.0.', schema: { type: 'object' } } },
  },
]

/** The API as an OpenAPI 3.0 document, from the schemas that check the bodies. */
export function openApiDocument(version: string, withKeys: boolean): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation, withKeys) }
  }
  return plain({
    openapi: '3.0.3',
    info: {
      title: 'Switchboard agent',
      version,
      description: 'Sessions, stateless runs and their events.',
      license: { name: 'MIT' },
    },
    paths,
    components: {
      schemas: {
        Error: wire.ErrorBody,
        ...Object.fromEntries(Object.entries(wire.EVENT_SCHEMAS).map(([name, schema]) => [`event_${name}`, schema])),
      },
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
  })
}

function describe(
  { method, path, summary, body, query = {}, headers = {}, answers, open = false }: Operation,
  withKeys: boolean,
): object {
  const failure = {
    description: 'What went wrong, and what to do.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  }
  const answered = Object.entries(answers).map(([status, { description, schema, type = 'application/json', also }]) => {
    const types = Object.entries({ ...(schema === undefined ? {} : { [type]: schema }), ...also })
    const content = Object.fromEntries(types.map(([name, one]) => [name, { schema: one }]))
    return [status, { description, ...(types.length === 0 ? {} : { content }) }]
  })
  const inPath = path.includes('{id}') ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] : []
  const inQuery = Object.entries(query).map(([name, one]) => ({ name, in: 'query', required: false, ...one }))
  const inHeader = Object.entries(headers).map(([name, one]) => ({ name, in: 'header', required: false, ...one }))
  return {
    summary,
    operationId: `${method}_${path.replace(/[^a-z]+/gi, '_').replace(/^_|_$/g, '')}`,
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(body === undefined
      ? {}
      : { requestBody: { required: false, content: { 'application/json': { schema: body } } } }),
    responses: { ...Object.fromEntries(answered), default: failure },
    ...(withKeys && !open ? { security: [{ key: [] }, { bearer: [] }] } : {}),
  }
}

/** Schemas carry marks of the library that made them; the document has none. */
function plain(value: object): object {
  return JSON.parse(JSON.stringify(value))
}
