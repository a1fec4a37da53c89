import type { Requirements } from './requirement.ts'

/** Health, readiness, metrics and presence. */
export const health = {
  'health:report:fields': {
    source: 'spec/relay-hub-api.md: Health report',
    behaviour: '/health has status, upstream, clients.online and clients.total as the spec types them.',
  },
  'health:report:ok': {
    source: 'spec/relay-hub-api.md: Rules for health 1',
    behaviour: 'With the upstream connected it says `ok` and `connected`.',
  },
  'health:report:degraded': {
    source: 'spec/relay-hub-api.md: Rules for health 2',
    behaviour: 'With the upstream lost it says `degraded` and `reconnecting`.',
  },
  'health:report:always-200': {
    source: 'spec/relay-hub-api.md: Rules for health 3; Errors',
    behaviour: 'The HTTP status is 200 in both cases.',
  },
  'health:report:counts': {
    source: 'spec/relay-hub-api.md: Health report',
    behaviour: 'clients.online counts who is online now and clients.total who is registered.',
  },
  'health:report:detail': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour: "The link's own state is shown in the added field upstream_detail.",
  },
  'health:report:throttled': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour: 'A throttled link counts as connected; every other state but connected is reconnecting.',
  },
  'health:ready:ready': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: '/ready is a 200 while the hub can serve.',
  },
  'health:ready:starting': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: '/ready is a 503 while the hub starts.',
  },
  'health:ready:draining': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: '/ready is a 503 while the hub drains.',
  },
  'health:ready:store': {
    source: 'design/relay-decisions.md: Administration, health',
    behaviour: '/ready is a 503 while the store does not answer.',
  },
  'metrics:text:format': {
    source: 'spec/relay-hub-api.md: Other endpoints',
    behaviour: '/metrics is text in the exposition format, accepted by a strict parser.',
  },
  'metrics:text:documented': {
    source: 'issue 2: What must show, metrics',
    behaviour: "Every metric's name, type and labels stand in the documentation, and nothing else does.",
  },
  'metrics:text:escaped': {
    source: 'reference/pains.md P14',
    behaviour: 'A client name with quotes, backslashes or line breaks is escaped in a label.',
  },
  'metrics:loop:delay': {
    source: 'issue 2: Build 4',
    behaviour: 'Event-loop delay is a metric.',
  },
  'presence:online:open-poll': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'A client with an open poll is online.',
  },
  'presence:online:recent-call': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'Any authenticated call makes a client online for the next 90 seconds.',
  },
  'presence:offline:silent': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'A client without an open poll and without a call for 90 seconds is offline.',
  },
  'presence:offline:stop': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'notifystop makes a client offline at once, until it calls again.',
  },
  'presence:offline:deleted': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'Deleting a client takes it out of the online count at once.',
  },
  'presence:offline:revoked': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: "Revoking a client's token makes it offline at once.",
  },
  'presence:last-seen:moves': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'last_seen moves with every authenticated call.',
  },
  'presence:last-seen:persisted': {
    source: 'design/relay-decisions.md: Presence',
    behaviour: 'last_seen survives a restart but is written at most every few seconds.',
  },
} as const satisfies Requirements
