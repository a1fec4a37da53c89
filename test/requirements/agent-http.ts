import type { Requirements } from './requirement.ts'

/** The agent server's HTTP: who gets in, how much of it, and what a mistake is told. */
export const agentHttp = {
  'agenthttp:rate:limited': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A caller with more calls a second than it may make gets 429 with Retry-After; another is not touched.',
  },
  'agenthttp:rate:headers': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Every answer behind the door has RateLimit headers, streams included, unless the limit is off.',
  },
  'agenthttp:rate:guesses': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Calls with a wrong key are limited by address, so that keys cannot be guessed fast.',
  },
  'agenthttp:bounds:told': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Sessions, runs under way and waiting runs are bounded by settings, and say so when they are full.',
  },
  'agenthttp:ticket:opens': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A stream ticket lets an EventSource read the events of its session without a key in the address.',
  },
  'agenthttp:ticket:only': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A stream ticket opens nothing but the stream of the session it was made for.',
  },
  'agenthttp:ticket:ages': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A stream ticket must be used within a minute; who comes back with its last event has an hour.',
  },
  'agenthttp:ticket:secret': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Neither a ticket nor a key reaches the log.',
  },
  'agenthttp:type:json': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A body that is there and whose type is not JSON is 415; an empty one is fine under any type.',
  },
  'agenthttp:type:curl': {
    source: 'spec/agent-server-api.md: Endpoints',
    behaviour: 'JSON without a content type, or under the one that curl or fetch gives it by itself, is taken.',
  },
  'agenthttp:errors:expect': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'An Expect header that nobody knows is 417 with a JSON body; 100-continue works.',
  },
  'agenthttp:errors:parameters': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour:
      'A parameter of a query or a header that its schema does not take is a 422 that names it and changes nothing.',
  },
  'agenthttp:metrics:documented': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'The metrics of the agent server are valid Prometheus text and stand in docs/metrics.md, each of them.',
  },
  'agenthttp:origin:asked': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Pages of other sites can read answers only where --allow-origin lists them, the preflight included.',
  },
  'agenthttp:fork:copies': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour:
      'A fork is a session of its own with the transcript of the first, or its first messages; 201 and Location.',
  },
  'agenthttp:fork:repeated': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A fork repeated under its Idempotency-Key gives the same session.',
  },
  'agenthttp:alone:plan': {
    source: 'design/agent-decisions.md: Plans and leases',
    behaviour:
      'A run without a session refuses plan_mode, and a plan that its model proposes is refused, not waited for.',
  },
  'agenthttp:openapi:complete': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'The description has security, every error, headers and the schemas of all events.',
  },
  'agenthttp:openapi:examples': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Bodies of the description have examples, and each is as its schema says.',
  },
  'agenthttp:openapi:checked': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'Every answer and event of the tests is held against the description, which fails where they differ.',
  },
  'agenthttp:events:readers': {
    source: 'design/agent-decisions.md: Events',
    behaviour: 'Two hundred readers of one run, each cut at points of its own, all see every event once and in order.',
  },
  'agenthttp:cancel:stream': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A cancel while the model speaks ends the run at once; what was said stays in the transcript.',
  },
  'agenthttp:cancel:shell': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A cancel while a command runs kills it and everything it started, in sessions of their own too.',
  },
  'agenthttp:cancel:plan': {
    source: 'design/agent-decisions.md: HTTP',
    behaviour: 'A cancel while a plan waits ends the run; a later decision is refused.',
  },
  'agenthttp:budget:steps': {
    source: 'design/agent-decisions.md: The loop',
    behaviour:
      'A run that still wants a call on its last step ends with BudgetExceeded, and the call is not carried out.',
  },
  'agenthttp:budget:tokens': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A run ends with BudgetExceeded when it has used the tokens it may use, by flag or by field.',
  },
  'agenthttp:budget:clock': {
    source: 'design/agent-decisions.md: The loop',
    behaviour: 'A run ends with WallClockExceeded when its time is over, in a session and without one.',
  },
} as const satisfies Requirements
