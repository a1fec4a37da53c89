import type { Requirements } from './requirement.ts'

/** The link, sends, context tokens and typing. */
export const upstream = {
  'upstream:link:states': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour: 'The link is connecting, connected, throttled, reconnecting, needs_login or misconfigured.',
  },
  'upstream:link:detail': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour: 'Each state comes with reason, since, next retry and the human action needed.',
  },
  'upstream:link:connected': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour:
      'The link is connected once notifystart was answered, or while a poll is open and none has failed since.',
  },
  'upstream:link:refused': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour: 'A refused or reset connection degrades the link at once.',
  },
  'upstream:link:watchdog': {
    source: 'design/relay-decisions.md: Upstream, link state',
    behaviour: 'When no poll has completed for two holds the link is degraded and its connection made anew.',
  },
  'upstream:link:recovers': {
    source: 'issue 2: What must show, outage',
    behaviour:
      "After an outage the link is connected again by itself, with nothing lost and clients' polls still open.",
  },
  'upstream:session:one-retry': {
    source: 'design/relay-decisions.md: Upstream, -14',
    behaviour: 'On -14 there is one notifystart and one more poll, and then the state needs_login.',
  },
  'upstream:session:polls-hang': {
    source: 'design/relay-decisions.md: Upstream, -14',
    behaviour: "Clients' polls wait on as ever while the login is expired.",
  },
  'upstream:session:http-up': {
    source: 'design/relay-decisions.md: Upstream, -14',
    behaviour: 'HTTP is served before the link is up and while a login is needed.',
  },
  'upstream:poll:backoff': {
    source: 'design/relay-decisions.md: Upstream, backoff',
    behaviour: 'After a failure the pause grows from 1 to 30 seconds, with jitter, and starts over after a success.',
  },
  'upstream:poll:quarantine': {
    source: 'design/relay-decisions.md: Upstream, backoff',
    behaviour: 'A malformed message is set aside where it can be seen, and the rest of its batch goes on.',
  },
  'upstream:poll:resumes': {
    source: 'design/relay-decisions.md: Delivery 1',
    behaviour: 'After a restart polling goes on at the stored cursor.',
  },
  'upstream:poll:notifystart': {
    source: 'issue 2: Build 5',
    behaviour: 'notifystart is called before the first poll.',
  },
  'sends:lane:paced': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'All sends of an account go through one lane with a pause in between.',
  },
  'sends:lane:sim-unpaced': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'Towards the sim the pause is 0.',
  },
  'sends:lane:fair': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: "A client with many waiting sends does not hold up another client's.",
  },
  'sends:lane:fifo': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'Sends of a conversation go out in the order they came.',
  },
  'sends:split:long-text': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'A text over 2,000 characters goes out in parts that together are the text.',
  },
  'sends:context:counter': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'Sends are counted per upstream context.',
  },
  'sends:retry:not-on-throttle': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'A send answered with -2 is not tried again by the hub.',
  },
  'sends:repeat:client-id': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'The same client_id and body again gets the first answer and sends nothing.',
  },
  'sends:repeat:header': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'An Idempotency-Key does the same for the flat body.',
  },
  'sends:repeat:per-client': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'Two clients with the same client_id do not touch one another.',
  },
  'sends:repeat:other-body': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'The same client_id with another body is a send of its own.',
  },
  'sends:repeat:window': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'After 10 minutes the same client_id sends again.',
  },
  'sends:repeat:durable': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'A repetition is known after a restart too.',
  },
  'sends:repeat:in-flight': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'A repetition of a send still under way waits for it and gets its answer.',
  },
  'sends:repeat:not-by-content': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'Equal texts without an id of their own are all sent.',
  },
  'sends:crash:unknown': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'A send cut off by a kill is `unknown` and is not sent again.',
  },
  'sends:answer:only-accepted': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'errcode 0 is answered only when the upstream has accepted.',
  },
  'sends:slow:none-accepted': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour: 'A send of which nothing is accepted in 10 seconds is a 503 and is never sent later.',
  },
  'sends:slow:some-accepted': {
    source: 'design/relay-decisions.md: Upstream, sends',
    behaviour:
      'A send of which a part is accepted in 10 seconds is answered 0, and the rest goes out even after a restart.',
  },
  'contexts:token:own': {
    source: 'design/relay-decisions.md: Upstream, context tokens',
    behaviour: "Clients see context tokens of the hub's own with 128 random bits, never the upstream's.",
  },
  'contexts:token:per-delivery': {
    source: 'design/relay-decisions.md: Upstream, context tokens',
    behaviour: 'Each client and message has a token of its own.',
  },
  'contexts:token:redelivery': {
    source: 'design/relay-decisions.md: Upstream, context tokens',
    behaviour: 'A message that comes again has the same token.',
  },
  'contexts:token:lifetime': {
    source: 'design/relay-decisions.md: Upstream, context tokens',
    behaviour: 'A token can be answered to for at least 24 hours.',
  },
  'contexts:token:restart': {
    source: 'design/relay-decisions.md: Upstream, context tokens',
    behaviour: 'A token can be answered to after a restart.',
  },
  'contexts:token:newest': {
    source: 'design/relay-decisions.md: Upstream, context tokens',
    behaviour: 'A reply uses the newest upstream token of the conversation.',
  },
  'typing:ticket:cached': {
    source: 'design/relay-decisions.md: Upstream, typing',
    behaviour: 'A ticket is asked for once and used for less than 10 minutes.',
  },
  'typing:ticket:renewed': {
    source: 'design/relay-decisions.md: Upstream, typing',
    behaviour: 'The indicator is renewed while the client asks for it.',
  },
  'typing:cancel:reply': {
    source: 'design/relay-decisions.md: Upstream, typing',
    behaviour: 'A reply ends the indicator.',
  },
  'typing:cancel:timeout': {
    source: 'design/relay-decisions.md: Upstream, typing',
    behaviour: 'The indicator ends 60 seconds after it was last asked for.',
  },
  'typing:cancel:disconnect': {
    source: 'design/relay-decisions.md: Upstream, typing',
    behaviour: 'The indicator ends when the client disconnects.',
  },
} as const satisfies Requirements
