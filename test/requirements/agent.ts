import type { Requirements } from './requirement.ts'

/** The agent server: sessions, runs, errors, access. */
export const agent = {
  'agent:start:address': {
    source: 'spec/agent-server-api.md: Start-up options',
    behaviour: '--addr names the address to listen on; 127.0.0.1:3000 is the default.',
  },
  'agent:start:workspace': {
    source: 'spec/agent-server-api.md: Start-up options',
    behaviour:
      '--workspace names the root of all sessions, made where it is not there; the current folder is the default.',
  },
  'agent:start:keys': {
    source: 'spec/agent-server-api.md: Start-up options',
    behaviour: '--auth-keys takes a comma-separated list of keys; without it the API is open.',
  },
  'agent:health:text': {
    source: 'spec/agent-server-api.md: Endpoints',
    behaviour: 'GET /health answers with a short text that means ok.',
  },
  'agent:health:json': {
    source: 'design/agent-decisions.md: HTTP, health',
    behaviour: 'GET /health answers with JSON and the model when Accept names JSON and not any type.',
  },
  'agent:health:open': {
    source: 'design/agent-decisions.md: HTTP, health',
    behaviour: '/health and /ready need no key; every other path does.',
  },
  'agent:tools:listed': {
    source: 'design/agent-decisions.md: HTTP, tools',
    behaviour: 'GET /tools is an array of name, description, parameters, read_only and source.',
  },
  'agent:alone:result': {
    source: 'spec/agent-server-api.md: Run result',
    behaviour: 'POST /run answers with status, finish_reason, messages, usage.total_steps and usage.total_tokens.',
  },
  'agent:alone:max-steps': {
    source: 'spec/agent-server-api.md: Limits',
    behaviour: 'max_steps bounds the steps of POST /run.',
  },
  'agent:alone:stateless': {
    source: 'spec/agent-server-api.md: What the service does',
    behaviour: 'A run without a session leaves nothing behind.',
  },
  'agent:alone:stream': {
    source: 'design/agent-decisions.md: HTTP, run',
    behaviour: 'POST /run with Accept text/event-stream answers with the events of the run.',
  },
  'agent:alone:provider-fails': {
    source: 'design/agent-decisions.md: HTTP, run',
    behaviour: 'POST /run answers 502 when the provider fails.',
  },
  'agent:alone:hang-up': {
    source: 'design/agent-decisions.md: HTTP, run',
    behaviour: 'A caller that hangs up on POST /run cancels the run and what it started.',
  },
  'agent:session:created': {
    source: 'spec/agent-server-api.md: Endpoints',
    behaviour: 'POST /sessions gives session_id, a UUID, and created_at, in UTC.',
  },
  'agent:session:location': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'POST /sessions answers 201 with a Location.',
  },
  'agent:session:body': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'The body of POST /sessions may be left out, and every field of it.',
  },
  'agent:session:own-fields': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'A session takes model, max_steps, title and plan_mode, and its runs keep to them.',
  },
  'agent:session:listed': {
    source: 'spec/agent-server-api.md: Endpoints',
    behaviour: 'GET /sessions is an array of session_id, created_at and last_active.',
  },
  'agent:session:paged': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour:
      'Sessions are listed newest first, all of them, or by limit and cursor with the next page in a Link header.',
  },
  'agent:session:details': {
    source: 'spec/agent-server-api.md: Endpoints',
    behaviour: 'GET /sessions/:id gives session_id, created_at, last_active, turn_count and transcript.',
  },
  'agent:session:more-details': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour:
      'The details have status, active_run_id, pending_plan, usage, system_prompt, workspace, title and model as well.',
  },
  'agent:session:during-run': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'The details of a session are true while a run goes on.',
  },
  'agent:session:deleted': {
    source: 'spec/agent-server-api.md: Endpoints',
    behaviour: 'DELETE /sessions/:id answers 204 without a body, and the session is gone.',
  },
  'agent:session:deleted-running': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'Deleting a session cancels its run and ends its streams after their done.',
  },
  'agent:session:deleted-twice': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'Every call for a session that was deleted is 404, another delete included.',
  },
  'agent:session:renamed': {
    source: 'design/agent-decisions.md: HTTP, others',
    behaviour: 'PATCH /sessions/:id changes the title.',
  },
  'agent:run:keeps-transcript': {
    source: 'spec/agent-server-api.md: What the service does',
    behaviour: 'A session keeps its transcript: the next run knows what was said before.',
  },
  'agent:run:counted': {
    source: 'spec/agent-server-api.md: States and transitions',
    behaviour: 'A run moves last_active on and counts in turn_count, from the moment it is accepted.',
  },
  'agent:run:names': {
    source: 'design/agent-decisions.md: HTTP, session runs',
    behaviour: 'The text of a run goes by goal, message or content.',
  },
  'agent:run:receipt': {
    source: 'design/agent-decisions.md: HTTP, session runs',
    behaviour: 'A run by goal is answered 202 with run_id, session_id, status and events_url.',
  },
  'agent:run:events-url': {
    source: 'design/agent-decisions.md: HTTP, session runs',
    behaviour:
      'events_url gives the events of its run, however late it is read, also of one that waits for others or interrupts them.',
  },
  'agent:run:start-up-form': {
    source: 'design/agent-decisions.md: HTTP, session runs',
    behaviour: 'A body that says message gets the event stream of the run itself.',
  },
  'agent:run:accept': {
    source: 'design/agent-decisions.md: HTTP, session runs',
    behaviour: 'An Accept of one type decides between receipt and stream, whatever the body says.',
  },
  'agent:run:listed': {
    source: 'design/agent-decisions.md: HTTP, others',
    behaviour: 'GET /sessions/:id/runs lists the runs with their state and end.',
  },
  'agent:run:busy': {
    source: 'design/agent-decisions.md: HTTP, busy',
    behaviour: 'A second run while one is active is 409 with active_run_id.',
  },
  'agent:run:enqueue': {
    source: 'design/agent-decisions.md: HTTP, busy',
    behaviour: 'on_busy enqueue lets a run wait its turn, sixteen at most.',
  },
  'agent:run:interrupt': {
    source: 'design/agent-decisions.md: HTTP, busy',
    behaviour: 'on_busy interrupt cancels the active run and goes next, before all that wait.',
  },
  'agent:run:max-steps': {
    source: 'design/agent-decisions.md: HTTP, limits',
    behaviour: 'max_steps is from 1 to 1000, on session runs too.',
  },
  'agent:run:default-steps': {
    source: 'design/agent-decisions.md: HTTP, limits',
    behaviour: 'Without max_steps a run has fifty steps.',
  },
  'agent:cancel:now': {
    source: 'design/agent-decisions.md: HTTP, cancel',
    behaviour: 'A cancel ends the call of the model and kills what its tools run, at once.',
  },
  'agent:cancel:again': {
    source: 'design/agent-decisions.md: HTTP, cancel',
    behaviour: 'A cancel of nothing is fine, and goes by the name interrupt as well.',
  },
  'agent:plan:decided': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: 'A plan is approved or rejected by POST /sessions/:id/plan, and the same run goes on.',
  },
  'agent:plan:aliases': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: '/plan/confirm with edits and /plan/reject with a reason do the same.',
  },
  'agent:plan:none': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: 'A decision is 409 where no plan waits, or another one.',
  },
  'agent:plan:reaches-agent': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: 'Edits and feedback reach the agent.',
  },
  'agent:plan:blank': {
    source: 'design/agent-decisions.md: HTTP, plan; errors (422 wrong field)',
    behaviour: 'A changed plan that is empty or blank is 422, and the plan goes on waiting.',
  },
  'agent:plan:once': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: 'Of many decisions at once exactly one counts.',
  },
  'agent:plan:repeated': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: 'The same decision again is answered 200, another one 409.',
  },
  'agent:plan:expires': {
    source: 'design/agent-decisions.md: HTTP, plan',
    behaviour: 'A plan that nobody answers in time counts as rejected.',
  },
  'agent:plan:mode': {
    source: 'design/agent-decisions.md: HTTP, sessions',
    behaviour: 'In plan mode what changes something is refused until a plan is approved.',
  },
  'agent:plan:released': {
    source: 'design/agent-decisions.md: Plans and leases',
    behaviour: 'A plan that waits holds no run: the clock stops, and the session stays busy.',
  },
  'agent:plan:survives': {
    source: 'design/agent-decisions.md: Plans and leases',
    behaviour: 'After a restart a plan goes on waiting, and its decision carries the same run on.',
  },
  'agent:boot:ends-running': {
    source: 'design/agent-decisions.md: Plans and leases',
    behaviour:
      'At the start runs that were under way end with error and done Interrupted; those that waited in the queue start.',
  },
  'agent:once:same-receipt': {
    source: 'design/agent-decisions.md: HTTP, Idempotency-Key',
    behaviour: 'The same key and body give the same answer, while the run goes on and after it.',
  },
  'agent:once:other-body': {
    source: 'design/agent-decisions.md: HTTP, Idempotency-Key',
    behaviour: 'The same key with another body is 409.',
  },
  'agent:once:per-caller': {
    source: 'design/agent-decisions.md: HTTP, Idempotency-Key',
    behaviour: 'Keys are those of one caller and one path.',
  },
  'agent:once:successes': {
    source: 'design/agent-decisions.md: HTTP, Idempotency-Key',
    behaviour: 'A call that was refused keeps no key.',
  },
  'agent:once:atomic': {
    source: 'design/agent-decisions.md: HTTP, Idempotency-Key',
    behaviour: 'Of many calls at once under one key exactly one run comes.',
  },
  'agent:once:a-day': {
    source: 'design/agent-decisions.md: HTTP, Idempotency-Key',
    behaviour: 'A key is forgotten after a day.',
  },
  'agent:message:shape': {
    source: 'design/agent-decisions.md: HTTP, transcript',
    behaviour: 'Messages have role, content, run_id, step and created_at, with blocks text, tool_use and tool_result.',
  },
  'agent:message:no-system': {
    source: 'design/agent-decisions.md: HTTP, transcript',
    behaviour: 'The system prompt is never among the messages.',
  },
  'agent:errors:shape': {
    source: 'design/agent-decisions.md: HTTP, errors',
    behaviour: 'Every error is JSON with a code, a message and a request_id, unknown routes and bad JSON included.',
  },
  'agent:errors:malformed': {
    source: 'design/agent-decisions.md: HTTP, errors',
    behaviour: 'What cannot be parsed is 400, a wrong field 422 with its name, and nothing has changed.',
  },
  'agent:errors:too-large': {
    source: 'design/agent-decisions.md: HTTP, limits',
    behaviour: 'A body over 1 MiB is 413.',
  },
  'agent:errors:method': {
    source: 'design/agent-decisions.md: HTTP, errors',
    behaviour: 'A wrong method is 405 with the methods that are right.',
  },
  'agent:errors:unforeseen': {
    source: 'design/agent-decisions.md: HTTP, errors',
    behaviour: 'What nobody foresaw is 500 with a reference that is also in the log, and nothing else of it.',
  },
  'agent:errors:draining': {
    source: 'design/agent-decisions.md: HTTP, errors',
    behaviour: 'A server that stops takes no new runs: 503.',
  },
  'agent:errors:unknown-fields': {
    source: 'design/agent-decisions.md: opening',
    behaviour: 'Unknown request fields are ignored; wrong types are refused.',
  },
  'agent:errors:full': {
    source: 'design/agent-decisions.md: HTTP, limits',
    behaviour: 'Sessions, concurrent runs and queues are bounded and say so when they are full.',
  },
  'agent:auth:header': {
    source: 'spec/agent-server-api.md: Authentication',
    behaviour: 'With --auth-keys each request carries one of the listed keys in X-API-Key.',
  },
  'agent:auth:refused': {
    source: 'design/agent-decisions.md: HTTP, errors',
    behaviour: 'A missing or wrong key is 401 with WWW-Authenticate, and the body names the header.',
  },
  'agent:auth:bearer': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'A key is taken from Authorization Bearer as well.',
  },
  'agent:auth:constant-time': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'Every key is compared, in constant time.',
  },
  'agent:auth:local': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'Without keys only callers on this machine are let in: a loopback peer and no forwarding header.',
  },
  'agent:auth:elsewhere': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'A caller from elsewhere gets 403 that says to set keys; --insecure lets it in.',
  },
  'agent:auth:host': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'Without keys Host must be localhost, an IP literal or an allowed one, and a foreign Origin is refused.',
  },
  'agent:auth:empty-list': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: '--auth-keys without a key in it is a mistake, not an open server.',
  },
  'agent:auth:banner': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'The server starts on any address and its banner says who may call.',
  },
  'agent:auth:no-cors': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'No answer allows pages of other sites to read it unless asked for.',
  },
  'agent:body:empty': {
    source: 'design/agent-decisions.md: HTTP, keys',
    behaviour: 'An empty body is fine where fields are optional, also with a JSON type and on DELETE.',
  },
  'agent:openapi:valid': {
    source: 'spec/agent-server-api.md: Versioning',
    behaviour: 'GET /openapi.json is OpenAPI 3.0 and valid for two independent validators.',
  },
  'agent:openapi:complete': {
    source: 'design/agent-decisions.md: HTTP, OpenAPI',
    behaviour: 'The description has every call, and answers and events are as its schemas say.',
  },
  'agent:openapi:generated': {
    source: 'design/agent-decisions.md: HTTP, OpenAPI',
    behaviour: 'A client generated from the description type-checks and works.',
  },
  'agent:metrics:text': {
    source: 'design/agent-decisions.md: HTTP, others',
    behaviour: 'GET /metrics tells the figures of the server.',
  },
} as const satisfies Requirements
