import * as wire from '../../wire/agent.ts'
import { failure } from './examples.ts'
import { type Answer, OPERATIONS, type Operation } from './operations.ts'

/** Errors, by status: what they mean, and one of their codes. */
const ERRORS: Record<number, { description: string; code: string; headers?: readonly string[] }> = {
  400: { description: 'The request cannot be read.', code: 'bad_request' },
  401: { description: 'No key, or none that is accepted.', code: 'unauthorized', headers: ['WWW-Authenticate'] },
  403: { description: 'Not from here: an open server takes callers on its own machine.', code: 'forbidden' },
  404: { description: 'There is no such session.', code: 'not_found' },
  409: { description: 'Not now: `session_busy`, `no_plan`, `plan_decided` or `key_reused`.', code: 'session_busy' },
  410: {
    description: 'Events after this id are not there; `details` has the oldest and newest.',
    code: 'cursor_expired',
  },
  413: { description: 'The body is larger than 1 MiB.', code: 'too_large' },
  415: { description: 'The body is not JSON.', code: 'unsupported_media_type' },
  422: { description: 'A field is wrong; `details.field` names it.', code: 'bad_request' },
  429: {
    description: 'Too much: `too_many_requests`, `too_many_sessions`, `too_many_runs` or `queue_full`.',
    code: 'too_many_requests',
    headers: ['Retry-After'],
  },
  500: { description: 'A bug; `details.reference` is in the log.', code: 'internal' },
  502: { description: 'The model could not be asked.', code: 'provider_failed' },
  503: {
    description: 'The server ends, or its store fails; try again.',
    code: 'shutting_down',
    headers: ['Retry-After'],
  },
}

const RATE = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy'] as const
const HEADERS: Record<string, string> = {
  Location: 'Where it is.',
  Link: 'The next page, as rel="next"; absent on the last one.',
  'Cache-Control': 'no-store.',
  'Retry-After': 'Seconds until another try makes sense; absent where nobody knows.',
  'WWW-Authenticate': 'How to send a key.',
  'X-Request-Id': 'The request_id of the body.',
  'RateLimit-Limit': 'Calls that may be made at once; absent, like the others, where there is no limit.',
  'RateLimit-Remaining': 'How many of them are left.',
  'RateLimit-Reset': 'Seconds until all of them are there again.',
  'RateLimit-Policy': 'The limit and the seconds it is for.',
}
/** Schemas that have a name of their own in the document. */
const NAMED: Record<string, object> = {
  Error: wire.ErrorBody,
  RunResult: wire.RunResult,
  SessionCreated: wire.SessionCreated,
  SessionForked: wire.SessionForked,
  SessionSummary: wire.SessionSummary,
  SessionDetails: wire.SessionDetails,
  RunAccepted: wire.RunAccepted,
  Run: wire.WireRun,
  Tool: wire.WireTool,
  StreamTicket: wire.StreamTicket,
  StatelessRunBody: wire.StatelessRunBody,
  CreateSessionBody: wire.CreateSessionBody,
  ForkSessionBody: wire.ForkSessionBody,
  PatchSessionBody: wire.PatchSessionBody,
  SessionRunBody: wire.SessionRunBody,
  PlanBody: wire.PlanBody,
  ConfirmPlanBody: wire.ConfirmPlanBody,
  RejectPlanBody: wire.RejectPlanBody,
}

/** The API as an OpenAPI 3.0 document, from the schemas that check the bodies. */
export function openApiDocument(version: string, withKeys: boolean): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation, withKeys) }
  }
  const events = { ...wire.EVENT_SCHEMAS, ...wire.EXTENDED_EVENT_SCHEMAS }
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
        ...NAMED,
        ...Object.fromEntries(Object.entries(events).map(([name, schema]) => [`event_${name}`, schema])),
      },
      headers: Object.fromEntries(
        Object.entries(HEADERS).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
      ),
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        bearer: { type: 'http', scheme: 'bearer' },
        ticket: { type: 'apiKey', in: 'query', name: 'ticket', description: 'For the stream of one session only.' },
      },
    },
  })
}

function describe(operation: Operation, withKeys: boolean): object {
  const { method, path, summary, body, query = {}, headers = {}, answers, open = false, ticket = false } = operation
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' }, description: 'The session_id.' }]
    : []
  const inQuery = Object.entries(query).map(([name, one]) => ({ name, in: 'query', required: false, ...one }))
  const inHeader = Object.entries(headers).map(([name, one]) => ({ name, in: 'header', required: false, ...one }))
  const answered = Object.entries(answers).map(([status, answer]) => [status, answerOf(answer, open)])
  const failed = errorsOf(operation, withKeys).map((status) => [String(status), errorOf(status, open)])
  const requestBody = body && {
    required: body.required ?? false,
    content: { 'application/json': { schema: named(body.schema), example: body.example } },
  }
  const ways = [{ key: [] }, { bearer: [] }, ...(ticket ? [{ ticket: [] }] : [])]
  return {
    summary,
    operationId: `${method}_${path.replace(/[^a-z]+/gi, '_').replace(/^_|_$/g, '')}`,
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(requestBody ? { requestBody } : {}),
    responses: {
      ...Object.fromEntries([...answered, ...failed]),
      default: { description: 'What went wrong, and what to do.', content: json(named(wire.ErrorBody)) },
    },
    ...(withKeys && !open ? { security: ways } : {}),
    ...(streams(operation) ? { 'x-sse-events': eventRefs() } : {}),
  }
}

/** What can go wrong with a call: with every one, with a session's, with a body's, and with this one alone. */
function errorsOf({ path, body, errors = [], open = false, query }: Operation, withKeys: boolean): number[] {
  if (open) return []
  const statuses = [400, withKeys ? 401 : 403, 429, 500, ...errors]
  if (path.startsWith('/sessions')) statuses.push(503)
  if (path.includes('{id}')) statuses.push(404)
  if (body !== undefined) statuses.push(413, 415, 422)
  if (query !== undefined) statuses.push(422)
  // An empty body is fine where none is asked for, one that is no JSON is not.
  if (body === undefined) statuses.push(413, 415)
  return [...new Set(statuses)].sort((a, b) => a - b)
}

function errorOf(status: number, open: boolean): object {
  const { description, code, headers = [] } = ERRORS[status] ?? { description: 'An error.', code: 'internal' }
  const example = failure(code, description)
  return {
    description,
    headers: headerRefs(['X-Request-Id', ...headers, ...(open ? [] : RATE)]),
    content: json(named(wire.ErrorBody), example),
  }
}

function answerOf(
  { description, schema, example, type = 'application/json', also, headers = [] }: Answer,
  open: boolean,
) {
  const own =
    schema === undefined ? {} : { [type]: { schema: named(schema), ...(example === undefined ? {} : { example }) } }
  const others = Object.fromEntries(Object.entries(also ?? {}).map(([name, one]) => [name, { schema: named(one) }]))
  const content = { ...own, ...others }
  return {
    description,
    headers: headerRefs([...headers, ...(open ? [] : RATE)]),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  }
}

function json(schema: object, example?: unknown): object {
  return { 'application/json': { schema, ...(example === undefined ? {} : { example }) } }
}

/** The schema by its name, where it has one; also as the items of a list, and one level into an object. */
function named(schema: object): object {
  const name = Object.keys(NAMED).find((one) => NAMED[one] === schema)
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` }
  if ('items' in schema && isObject(schema.items)) return { ...schema, items: named(schema.items) }
  if (!('properties' in schema) || !isObject(schema.properties)) return schema
  const fields = Object.entries(schema.properties).map(([key, one]) => [key, isObject(one) ? named(one) : one])
  return { ...schema, properties: Object.fromEntries(fields) }
}

function headerRefs(names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function streams({ answers }: Operation): boolean {
  return Object.values(answers).some(
    ({ type, also = {} }) => type === 'text/event-stream' || 'text/event-stream' in also,
  )
}

/** Which schema the data of each event has; those of `extended` come only to who asks for them. */
function eventRefs(): object {
  const refs = (schemas: object) =>
    Object.fromEntries(Object.keys(schemas).map((name) => [name, { $ref: `#/components/schemas/event_${name}` }]))
  return { always: refs(wire.EVENT_SCHEMAS), extended: refs(wire.EXTENDED_EVENT_SCHEMAS) }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Schemas carry marks of the library that made them; the document has none. */
function plain(value: object): object {
  return JSON.parse(JSON.stringify(value))
}
