import type { TSchema } from 'typebox'
import * as wire from '../../wire/agent.ts'
import * as examples from './examples.ts'

/** One call of the API, as its description tells it. */
export interface Operation {
  method: 'get' | 'post' | 'patch' | 'delete'
  path: string
  summary: string
  body?: { schema: TSchema; example: object; required?: boolean }
  query?: Record<string, Parameter>
  headers?: Record<string, Parameter>
  answers: Record<string, Answer>
  /** Errors of its own, beside those that every call can have. */
  errors?: readonly number[]
  /** Needs no key, and is not counted. */
  open?: boolean
  /** A stream ticket opens it too. */
  ticket?: boolean
}

export interface Parameter {
  description: string
  schema: object
}

export interface Answer {
  description: string
  schema?: object
  example?: unknown
  type?: string
  /** What it is for a caller whose Accept asks for another type. */
  also?: Record<string, object>
  headers?: readonly string[]
}

const list = (items: TSchema) => ({ type: 'array', items })
const object = (properties: Record<string, object>) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})
const TEXT = { type: 'string' }
const EVENTS = {
  after: {
    description: 'Start after this event; Last-Event-ID wins.',
    schema: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 },
  },
  until: { description: '`done` ends the stream with the run.', schema: { type: 'string', enum: ['done'] } },
  extended: {
    description: '1: more kinds of events.',
    schema: { type: 'string', enum: ['0', '1', 'true', 'false'] },
  },
  error_event: {
    description: 'Another name for the event `error`, which an EventSource has one of its own of.',
    schema: { type: 'string', pattern: '^[a-z_]{1,40}$' },
  },
}
const OF_RUN = {
  run: {
    description:
      'Only the events of this run, from its start when `after` is absent or earlier; 404 when there is none.',
    schema: { type: 'string', format: 'uuid' },
  },
}
const RECEIPT = {
  'Idempotency-Key': {
    description: 'Your own id for this call: repeated with the same body within 24 h it gives the same answer.',
    schema: { type: 'string', maxLength: 256 },
  },
}
const CURSOR = {
  'Last-Event-ID': {
    description: 'The last event you have: the stream starts after it.',
    schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
  },
}
const STREAM_TEXT = {
  type: 'string',
  description: 'Server-sent events by name; the JSON in `data` is described by the schemas event_*.',
}
const STREAM: Answer = {
  description: 'Server-sent events.',
  type: 'text/event-stream',
  schema: STREAM_TEXT,
  example: examples.STREAM,
}
const READY = { ...object({ ready: { type: 'boolean' } }), properties: { ready: { type: 'boolean' }, limited: TEXT } }
const NOT_READY = object({ ready: { type: 'boolean' }, reason: TEXT })
const DECIDED = object({ session_id: TEXT, plan_id: TEXT, run_id: TEXT, decision: TEXT })

/** Every call, once; the schemas are those that check the bodies. */
export const OPERATIONS: Operation[] = [
  {
    method: 'get',
    path: '/health',
    summary: 'Whether the server is there',
    open: true,
    answers: {
      '200': {
        description: 'ok',
        type: 'text/plain',
        schema: TEXT,
        example: 'ok',
        also: { 'application/json': object({ status: TEXT, model: TEXT }) },
      },
    },
  },
  {
    method: 'get',
    path: '/ready',
    summary: 'Whether it takes work',
    open: true,
    answers: {
      '200': { description: 'It does.', schema: READY, example: { ready: true } },
      '503': {
        description: 'It is shutting down, or what it stands on cannot be reached.',
        schema: NOT_READY,
        example: { ready: false, reason: 'Redis cannot be reached.' },
      },
    },
  },
  {
    method: 'get',
    path: '/tools',
    summary: 'The tools agents can use',
    answers: { '200': { description: 'The tools.', schema: list(wire.WireTool), example: examples.TOOLS } },
  },
  {
    method: 'post',
    path: '/run',
    summary: 'A run without a session',
    body: { schema: wire.StatelessRunBody, example: examples.STATELESS_RUN, required: true },
    query: { extended: EVENTS.extended, error_event: EVENTS.error_event },
    errors: [502, 503],
    answers: {
      '200': {
        description: 'The result.',
        schema: wire.RunResult,
        example: examples.RUN_RESULT,
        also: { 'text/event-stream': STREAM_TEXT },
      },
    },
  },
  {
    method: 'post',
    path: '/sessions',
    summary: 'Make a session',
    body: { schema: wire.CreateSessionBody, example: examples.CREATE_SESSION },
    headers: RECEIPT,
    errors: [409],
    answers: {
      '201': {
        description: 'Made.',
        schema: wire.SessionCreated,
        example: examples.SESSION_CREATED,
        headers: ['Location'],
      },
    },
  },
  {
    method: 'get',
    path: '/sessions',
    summary: 'All sessions, newest first',
    query: {
      limit: { description: 'How many at most.', schema: { type: 'integer', minimum: 1, maximum: 1000 } },
      cursor: { description: 'After this session.', schema: { type: 'string' } },
    },
    errors: [422],
    answers: {
      '200': {
        description: 'Sessions.',
        schema: list(wire.SessionSummary),
        example: [examples.SESSION_SUMMARY],
        headers: ['Link'],
      },
    },
  },
  {
    method: 'get',
    path: '/sessions/{id}',
    summary: 'A session with its transcript',
    answers: {
      '200': { description: 'The session.', schema: wire.SessionDetails, example: examples.SESSION_DETAILS },
    },
  },
  {
    method: 'patch',
    path: '/sessions/{id}',
    summary: 'Change the title',
    body: { schema: wire.PatchSessionBody, example: { title: 'Tidy up' } },
    answers: {
      '200': { description: 'The session.', schema: wire.SessionSummary, example: examples.SESSION_SUMMARY },
    },
  },
  {
    method: 'delete',
    path: '/sessions/{id}',
    summary: 'Delete a session; its run is cancelled and its streams end',
    answers: { '204': { description: 'Gone.' } },
  },
  {
    method: 'post',
    path: '/sessions/{id}/fork',
    summary: 'A new session with the transcript of this one, or its beginning',
    body: { schema: wire.ForkSessionBody, example: { title: 'Another way', messages: 2 } },
    headers: RECEIPT,
    errors: [409],
    answers: {
      '201': {
        description: 'Made.',
        schema: wire.SessionForked,
        example: { ...examples.SESSION_CREATED, forked_from: examples.ID },
        headers: ['Location'],
      },
    },
  },
  {
    method: 'post',
    path: '/sessions/{id}/run',
    summary: 'Run a goal in a session',
    body: { schema: wire.SessionRunBody, example: { goal: 'list files' }, required: true },
    query: EVENTS,
    headers: RECEIPT,
    errors: [409],
    answers: {
      '200': STREAM,
      '202': {
        description: 'Accepted; its events are at events_url.',
        schema: wire.RunAccepted,
        example: examples.RUN_ACCEPTED,
      },
    },
  },
  {
    method: 'get',
    path: '/sessions/{id}/events',
    summary: 'The events of a session',
    query: { ...EVENTS, ...OF_RUN },
    headers: CURSOR,
    errors: [410, 422],
    ticket: true,
    answers: { '200': STREAM, '204': { description: 'With until=done: nothing is left to come.' } },
  },
  {
    method: 'post',
    path: '/sessions/{id}/events/ticket',
    summary: 'A ticket with which an EventSource reads the events of this session',
    answers: {
      '201': {
        description: 'Add what you like to the query of url. The first connection must come before expires_at.',
        schema: wire.StreamTicket,
        example: examples.TICKET,
        headers: ['Cache-Control'],
      },
    },
  },
  {
    method: 'get',
    path: '/sessions/{id}/runs',
    summary: 'The runs of a session',
    answers: {
      '200': {
        description: 'Runs.',
        schema: object({ runs: list(wire.WireRun) }),
        example: { runs: [examples.RUN] },
      },
    },
  },
  ...['cancel', 'interrupt'].map(
    (name): Operation => ({
      method: 'post',
      path: `/sessions/{id}/${name}`,
      summary: 'End the active run now',
      answers: {
        '200': {
          description: 'Whether there was one.',
          schema: object({ session_id: TEXT, cancelled: { type: 'boolean' } }),
          example: { session_id: examples.ID, cancelled: true },
        },
      },
    }),
  ),
  ...(
    [
      ['plan', wire.PlanBody, { decision: 'approve', plan: 'Tidy up the attic only.' }],
      ['plan/confirm', wire.ConfirmPlanBody, { edits: 'Tidy up the attic only.' }],
      ['plan/reject', wire.RejectPlanBody, { reason: 'Too much at once.' }],
    ] as const
  ).map(
    ([name, schema, example]): Operation => ({
      method: 'post',
      path: `/sessions/{id}/${name}`,
      summary: 'Decide on a plan',
      body: { schema, example, required: name === 'plan' },
      errors: [409],
      answers: { '200': { description: 'Decided.', schema: DECIDED, example: examples.DECIDED } },
    }),
  ),
  {
    method: 'get',
    path: '/metrics',
    summary: 'Figures for a collector',
    answers: {
      '200': {
        description: 'Prometheus text.',
        type: 'text/plain',
        schema: TEXT,
        example: 'switchboard_agent_sessions 2\n',
      },
    },
  },
  {
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    answers: { '200': { description: 'OpenAPI 3.0.', schema: { type: 'object' } } },
  },
]
