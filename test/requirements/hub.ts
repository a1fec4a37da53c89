import type { Requirements } from './requirement.ts'

/** Administration. */
export const hub = {
  'hub:register:answer': {
    source: 'spec/relay-hub-api.md: Administration endpoints; design/relay-decisions.md: Administration',
    behaviour: 'A registration is a 201 with name, label, token and created_at.',
  },
  'hub:register:created-at': {
    source: 'spec/relay-hub-api.md: Client',
    behaviour: '`created_at` is the time of registration in ISO 8601, UTC.',
  },
  'hub:register:token-works': {
    source: 'spec/relay-hub-api.md: Authentication',
    behaviour: 'The token it returns opens the client endpoints.',
  },
  'hub:register:token-once': {
    source: 'spec/relay-hub-api.md: Administration endpoints, rule',
    behaviour: 'The plain token stands in this answer and in no later one.',
  },
  'hub:register:token-format': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'A token is `vhub_` and 32 random hex digits.',
  },
  'hub:register:token-hashed': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: "The store keeps a token's SHA-256 only.",
  },
  'hub:register:name-length': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'A name has 1 to 64 characters; anything else is a 400.',
  },
  'hub:register:name-trimmed': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'Space around a name is cut off before it is counted and kept.',
  },
  'hub:register:name-control': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'A name with a control character is a 400.',
  },
  'hub:register:name-unique': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'A name that is taken is a 409 and the first client stays as it is.',
  },
  'hub:register:label-default': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'Without a label the name is the label.',
  },
  'hub:register:label-length': {
    source: 'design/relay-decisions.md: Administration, register',
    behaviour: 'A label of more than 128 characters is a 400.',
  },
  'hub:register:changes-nothing': {
    source: 'issue 2: What must show, bad input',
    behaviour: 'A registration body wrong in any field is refused and registers nobody.',
  },
  'hub:clients:fields': {
    source: 'spec/relay-hub-api.md: Administration endpoints',
    behaviour:
      'Each client is listed with exactly name, label, status, last_seen and queue_size as the spec types them.',
  },
  'hub:clients:totals': {
    source: 'spec/relay-hub-api.md: Administration endpoints',
    behaviour: '`total` counts all clients and `online` those that are online.',
  },
  'hub:clients:no-token': {
    source: 'spec/relay-hub-api.md: Client',
    behaviour: 'No token stands in the list.',
  },
  'hub:clients:status': {
    source: 'spec/relay-hub-api.md: States',
    behaviour: '`status` is `online` or `offline`.',
  },
  'hub:clients:sorted': {
    source: 'design/relay-decisions.md: Administration, clients',
    behaviour: 'The list is sorted by name.',
  },
  'hub:clients:last-seen-start': {
    source: 'design/relay-decisions.md: Administration, clients',
    behaviour: "`last_seen` equals created_at until the client's first call, and is a timestamp always.",
  },
  'hub:clients:queue-size': {
    source: 'spec/relay-hub-api.md: Client; design/relay-decisions.md: Administration, clients',
    behaviour: '`queue_size` counts every message that is not acknowledged yet.',
  },
  'hub:client:get': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'GET /hub/clients/:name shows one client.',
  },
  'hub:client:patch': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'PATCH /hub/clients/:name changes what it names and nothing else.',
  },
  'hub:client:delete': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour:
      'DELETE /hub/clients/:name forgets a client: its token stops working and its queue goes to the dead letters.',
  },
  'hub:client:unknown': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'A client name nobody has is a 404.',
  },
  'hub:rotate:new-token': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'Rotating returns a new token once, and the old one is refused from then on.',
  },
  'hub:rotate:overlap': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'With an overlap the old token works until the overlap has passed.',
  },
  'hub:rotate:keeps-queue': {
    source: 'reference/pains.md B7',
    behaviour: 'Rotating leaves the queue as it is.',
  },
  'hub:rotate:cuts-polls': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'An open poll of a revoked token ends at once with 401.',
  },
  'hub:default:set': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'An admin can make one client the default; the mark leaves whoever had it.',
  },
  'hub:messages:reasons': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'GET /hub/messages lists messages with their state and the stored reason of their routing.',
  },
  'hub:dead-letters:list': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'Dead letters are listed with their reason.',
  },
  'hub:dead-letters:replay': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'Replaying a dead letter queues it again.',
  },
  'hub:dead-letters:discard': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'Discarding a dead letter removes it for good.',
  },
  'hub:dry-run:answers': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'POST /hub/route/dry-run says who would get a text and why.',
  },
  'hub:dry-run:changes-nothing': {
    source: 'design/relay-decisions.md: Administration, beyond the spec',
    behaviour: 'A dry run stores, routes and sends nothing.',
  },
  'hub:upstream:link-state': {
    source: 'design/relay-decisions.md: Administration, beyond the spec; Upstream',
    behaviour: "The link's state can be read under /hub/ with its reason, since, next retry and action.",
  },
  'hub:ui:page': {
    source: 'spec/relay-hub-api.md: Administration endpoints',
    behaviour: 'GET /hub/ui is an HTML page that shows clients and health.',
  },
  'hub:ui:register': {
    source: 'issue 2: Build 7',
    behaviour: 'On the page a client can be registered, and its token is shown once.',
  },
  'hub:ui:safe': {
    source: 'issue 2: Build 7',
    behaviour: 'Names and labels with markup appear on the page as text.',
  },
  'hub:errors:shape': {
    source: 'design/relay-decisions.md: Shapes, failures',
    behaviour: 'A failure on /hub/ is `{error:{code, message}}`, with details where there are some.',
  },
  'hub:errors:unknown-path': {
    source: 'issue 2: What must show, bad input',
    behaviour: "An unknown path or a wrong method below /hub/ is a 404 or a 405 in the hub's error shape.",
  },
  'hub:errors:bugs-hidden': {
    source: 'design/relay-decisions.md: Shapes, failures',
    behaviour: 'An unforeseen failure is a 500 that shows neither its text nor its stack.',
  },
} as const satisfies Requirements
