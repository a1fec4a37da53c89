import type { Requirements } from './requirement.ts'

/** Event streams, and our client of them. */
export const agentEvents = {
  'agent:events:fields': {
    source: 'spec/agent-server-api.md: Events',
    behaviour: 'The seven events carry the fields of the contract.',
  },
  'agent:events:order': {
    source: 'spec/agent-server-api.md: Events',
    behaviour: 'A run with one tool call tells tool_call, tool_result, message, done.',
  },
  'agent:events:failure': {
    source: 'spec/agent-server-api.md: Errors',
    behaviour: 'A failure during a run is an error event with a message.',
  },
  'agent:events:failure-ends': {
    source: 'spec/agent-server-api.md: Errors; design/agent-decisions.md: Events',
    behaviour:
      'An end that is a failure (ProviderStop, ContextOverflow, Interrupted) has an error before done; one by a limit or a person has none.',
  },
  'agent:events:every-result': {
    source: 'design/agent-decisions.md: The loop; spec/agent-server-api.md: Events',
    behaviour:
      'Every tool_call has exactly one tool_result before done: also a plan, and what a cancel or a crash cut off.',
  },
  'agent:events:numbered': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'Events are numbered from 1 without reuse, and the number is the SSE id.',
  },
  'agent:events:written-first': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'An event is in the log before anyone sees it.',
  },
  'agent:events:no-echo': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'There is no message event for the goal or for a tool result.',
  },
  'agent:events:added-fields': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'Events carry run_id and id as well; those of tools call_id, arguments and how the output begins.',
  },
  'agent:events:extended': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'Only the seven events are told; more kinds come with extended=1.',
  },
  'agent:events:one-done': {
    source: 'design/agent-decisions.md: Events',
    behaviour:
      'Every run ends with exactly one done: after an answer, an error, a cancel, a stop, its time, or deletion.',
  },
  'agent:events:gathered': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'Deltas are gathered for a moment, and the first is told at once.',
  },
  'agent:events:live': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A message is told when it is complete, not at the end of the run.',
  },
  'agent:events:last-event-id': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'Last-Event-ID starts the stream after that event and wins over after.',
  },
  'agent:events:bare-active': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A bare stream starts at the beginning of the active run.',
  },
  'agent:events:bare-late': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A bare stream opened after a fast run sees it, and so do others for five seconds; then it is taken.',
  },
  'agent:events:bare-early': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A bare stream that was open when a run was accepted takes it at once.',
  },
  'agent:events:preamble': {
    source: 'design/agent-decisions.md: Events',
    behaviour:
      'A stream begins with retry 1000 and a comment, repeats comments, and is neither buffered nor compressed.',
  },
  'agent:events:stays-open': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A stream stays open after done for the next run.',
  },
  'agent:events:until-done': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'until=done ends the stream with done, and a reconnect is answered 204.',
  },
  'agent:events:of-run': {
    source: 'design/agent-decisions.md: HTTP, session runs (events_url starts at this run)',
    behaviour:
      'run shows the events of one run alone, from its start on; until=done is then its own done, and an unknown run is 404.',
  },
  'agent:events:slow-reader': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A reader that leaves too much unread is closed, and resumes by id.',
  },
  'agent:events:expired': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A cursor older than the log or beyond its head is 410 with the oldest and newest id.',
  },
  'agent:events:disconnect': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A reader that goes does not cancel the run of a session.',
  },
  'agent:events:exactly-once': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'A reader that is cut anywhere and resumes by id sees every event exactly once, in order.',
  },
  'agent:events:error-collision': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'An EventSource hears the event error beside its own errors, and tells it by its data.',
  },
  'agent:events:error-renamed': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'error_event gives the event another name, so that an EventSource cannot mistake it.',
  },
  'agent:client:calls': {
    source: 'issue 3: Build, 7',
    behaviour: 'The typed client has every call, and tells refusals with the code and words of the server.',
  },
  'agent:client:resumes': {
    source: 'issue 3: Build, 7',
    behaviour: 'The client comes back by itself over a bad network and gives each event exactly once, in order.',
  },
  'agent:client:runs-once': {
    source: 'issue 3: Build, 7',
    behaviour: 'A run whose answer was lost is asked for again under the same key, and run once.',
  },
  'agent:client:pauses': {
    source: 'issue 3: Build, 7',
    behaviour: 'The client waits as long as retry says, longer with each failure, and starts anew after a success.',
  },
  'agent:client:silent': {
    source: 'issue 3: Build, 7',
    behaviour: 'A connection that has gone silent is made anew.',
  },
  'agent:client:abort': {
    source: 'issue 3: Build, 7',
    behaviour: 'An abort ends the iteration without an error.',
  },
  'agent:client:gives-up': {
    source: 'issue 3: Build, 7',
    behaviour: 'What coming back cannot mend is thrown with its status: 401, 404, 410, and a server that stays away.',
  },
} as const satisfies Requirements
