import type { Requirements } from './requirement.ts'

/** The client endpoints: shapes and errors. */
export const relay = {
  'relay:protocol:post-json': {
    source: 'spec/relay-hub-api.md: Client endpoints',
    behaviour: 'Every client endpoint takes a POST with a JSON body and answers JSON.',
  },
  'relay:protocol:unchanged-client': {
    source: 'spec/relay-hub-api.md: What the service does',
    behaviour: 'A client of the upstream bot protocol works after only its address and its token were changed.',
  },
  'relay:protocol:poll-only': {
    source: 'spec/relay-hub-api.md: Events',
    behaviour: 'Messages reach a client through getupdates alone; no path streams and the hub calls no client.',
  },
  'relay:protocol:both-prefixes': {
    source: 'design/relay-decisions.md: Shapes',
    behaviour: 'The same handlers answer under /relay/bot/ and under /ilink/bot/, at the root.',
  },
  'relay:protocol:no-redirects': {
    source: 'design/relay-decisions.md: Shapes',
    behaviour: 'No relay path is ever answered with a redirect.',
  },
  'relay:protocol:body-token-optional': {
    source: 'design/relay-decisions.md: Shapes, auth',
    behaviour: 'The header alone is enough; the body may leave `token` out.',
  },
  'relay:protocol:told-by-body-keys': {
    source: 'design/relay-decisions.md: Shapes, requests told apart',
    behaviour: "Which dialect is spoken follows from the body's keys and never from the User-Agent.",
  },
  'relay:protocol:no-base-info': {
    source: 'design/relay-decisions.md: Shapes, requests told apart',
    behaviour: 'A body without `base_info` is as good as one with it.',
  },
  'relay:protocol:unknown-keys': {
    source: 'design/relay-decisions.md: Shapes, requests told apart',
    behaviour: 'Keys the hub does not know are ignored on every relay body.',
  },
  'relay:protocol:any-content-type': {
    source: 'design/relay-decisions.md: Shapes, requests told apart',
    behaviour: 'A JSON body is read under an odd, wrong or missing Content-Type.',
  },
  'relay:getupdates:waits': {
    source: 'spec/relay-hub-api.md: Rules for getupdates 1',
    behaviour: 'It is a long poll: with nothing queued it stays open until a message comes.',
  },
  'relay:getupdates:delivers': {
    source: 'spec/relay-hub-api.md: Rules for getupdates 2',
    behaviour: 'With messages there, the answer has errcode 0 and holds them in `messages`.',
  },
  'relay:getupdates:empty-after-hold': {
    source: 'spec/relay-hub-api.md: Rules for getupdates 3; Limits',
    behaviour: 'After 30 seconds without a message the call comes back empty.',
  },
  'relay:getupdates:success-shape': {
    source: 'design/relay-decisions.md: Shapes, getupdates',
    behaviour:
      'A success is HTTP 200 with exactly ret 0, errcode 0, an empty errmsg, messages, msgs and get_updates_buf.',
  },
  'relay:getupdates:empty-shape': {
    source: 'design/relay-decisions.md: Shapes, getupdates',
    behaviour: 'The empty answer is the success object with both lists `[]`, neither null nor left out.',
  },
  'relay:getupdates:no-timeout-hint': {
    source: 'design/relay-decisions.md: Shapes, getupdates',
    behaviour: 'No answer carries longpolling_timeout_ms.',
  },
  'relay:message:five-fields': {
    source: 'design/relay-decisions.md: Shapes, messages',
    behaviour: 'An entry of `messages` has the five fields of the spec and no other.',
  },
  'relay:message:context-token': {
    source: 'spec/relay-hub-api.md: Incoming message',
    behaviour: '`context_token` is an opaque string that a reply and a typing indicator accept.',
  },
  'relay:message:from-user': {
    source: 'spec/relay-hub-api.md: Incoming message',
    behaviour: '`from_user` names the messaging user who wrote, as the upstream spells it.',
  },
  'relay:message:content': {
    source: 'spec/relay-hub-api.md: Incoming message; design/relay-decisions.md: Shapes, messages',
    behaviour: '`content` is the text of the first text item.',
  },
  'relay:message:msg-type': {
    source: 'spec/relay-hub-api.md: Incoming message',
    behaviour: '`msg_type` of a message with text is `text`.',
  },
  'relay:message:timestamp': {
    source: 'spec/relay-hub-api.md: Incoming message',
    behaviour: '`timestamp` is the time of writing as whole Unix seconds.',
  },
  'relay:message:voice-transcript': {
    source: 'design/relay-decisions.md: Shapes, messages',
    behaviour: 'A voice message without a text item has its transcript as `content`.',
  },
  'relay:message:media-label': {
    source: 'design/relay-decisions.md: Shapes, messages',
    behaviour: 'A message without any text has a label such as `[image]` as `content`.',
  },
  'relay:message:media-type': {
    source: 'design/relay-decisions.md: Shapes, messages',
    behaviour: 'A message without any text has image, voice, file or video as `msg_type`.',
  },
  'relay:real-message:keeps-fields': {
    source: 'design/relay-decisions.md: Shapes, msgs',
    behaviour: 'An entry of `msgs` keeps every field the upstream sent, also those unknown to the hub, at every level.',
  },
  'relay:real-message:own-context-token': {
    source: 'design/relay-decisions.md: Shapes, msgs',
    behaviour: "In `msgs` the upstream's context token is replaced by the hub's own.",
  },
  'relay:real-message:id-digits': {
    source: 'design/relay-decisions.md: Shapes, msgs',
    behaviour: '`message_id` is a JSON number with all its digits, also above 2^53.',
  },
  'relay:real-message:spliced': {
    source: 'design/relay-decisions.md: Shapes, msgs',
    behaviour:
      "The upstream's text is cut and joined but never written anew: spelling of numbers, escapes and order stay.",
  },
  'relay:real-message:id-missing': {
    source: 'design/relay-decisions.md: Shapes, msgs',
    behaviour: 'A message that came without an id gets the last id sent to that client plus one.',
  },
  'relay:sendmessage:reaches-user': {
    source: 'spec/relay-hub-api.md: Rules for sendmessage',
    behaviour: 'The reply goes to the user whom the context token stands for.',
  },
  'relay:sendmessage:answer': {
    source: 'spec/relay-hub-api.md: Client endpoints',
    behaviour: 'An accepted send is answered with errcode 0.',
  },
  'relay:sendmessage:flat-body': {
    source: 'spec/relay-hub-api.md: Outgoing message; design/relay-decisions.md: Shapes, sendmessage',
    behaviour: 'The flat body of the spec sends its `content` as one text.',
  },
  'relay:sendmessage:msg-body': {
    source: 'design/relay-decisions.md: Shapes, sendmessage',
    behaviour: 'The body `{msg:{…}}` of the real protocol is sent the same way.',
  },
  'relay:sendmessage:msg-type-default': {
    source: 'design/relay-decisions.md: Shapes, auth',
    behaviour: 'A send without `msg_type` is a text.',
  },
  'relay:sendtyping:shows': {
    source: 'spec/relay-hub-api.md: Client endpoints',
    behaviour: 'With a context token the user sees a typing indicator; the hub finds the ticket itself.',
  },
  'relay:sendtyping:real-body': {
    source: 'design/relay-decisions.md: Shapes, sendtyping',
    behaviour: 'The body of user, ticket and status starts the indicator with 1 and ends it with 2.',
  },
  'relay:sendtyping:ignores-ticket': {
    source: 'design/relay-decisions.md: Shapes, sendtyping',
    behaviour: 'The ticket a client sends is not looked at; the upstream gets the one that is alive.',
  },
  'relay:sendtyping:answer': {
    source: 'design/relay-decisions.md: Shapes; reference/ilink-wire.md 2.2',
    behaviour: 'Typing is answered with ret 0, errcode 0 and an empty errmsg.',
  },
  'relay:getconfig:own-ticket': {
    source: 'spec/relay-hub-api.md: Client endpoints; design/relay-decisions.md: Shapes, getconfig',
    behaviour: "It answers success with a typing_ticket of the hub's own.",
  },
  'relay:getconfig:token-only': {
    source: 'design/relay-decisions.md: Shapes, getconfig',
    behaviour: 'A body with nothing but the token gets a ticket too.',
  },
  'relay:getuploadurl:forwards': {
    source: 'spec/relay-hub-api.md: Client endpoints; design/relay-decisions.md: Shapes, getuploadurl',
    behaviour: 'Whatever body came is passed to the upstream, and its answer comes back.',
  },
  'relay:getuploadurl:both-forms': {
    source: 'design/relay-decisions.md: Shapes, getuploadurl',
    behaviour: 'The answer holds both upload_param and upload_full_url.',
  },
  'relay:notifystart:answer': {
    source: 'design/relay-decisions.md: Shapes, notify',
    behaviour: 'msg/notifystart answers ret 0 and the client is online at once.',
  },
  'relay:notifystop:answer': {
    source: 'design/relay-decisions.md: Shapes, notify',
    behaviour: 'msg/notifystop answers ret 0 and the client is offline at once.',
  },
  'relay:errors:shape': {
    source: 'design/relay-decisions.md: Shapes, failures',
    behaviour:
      'A failure on a relay path has ret and errcode with one non-zero number, and an errmsg that says what to do.',
  },
  'relay:errors:code-is-status': {
    source: 'design/relay-decisions.md: Shapes, failures',
    behaviour:
      'A failure on a relay path has a real HTTP status, and what the hub itself refuses carries it as its number.',
  },
  'relay:errors:no-session-codes': {
    source: 'design/relay-decisions.md: error table, rows 1 and 7',
    behaviour: "The upstream's -14 and -13 never reach a client.",
  },
  'relay:errors:bad-json': {
    source: 'design/relay-decisions.md: error table, row 2',
    behaviour: 'A body that is not JSON is a 400.',
  },
  'relay:errors:missing-field': {
    source: 'design/relay-decisions.md: error table, row 2',
    behaviour: 'A missing field is a 400 that names it.',
  },
  'relay:errors:wrong-field': {
    source: 'design/relay-decisions.md: error table, row 2',
    behaviour: 'A field of the wrong type is a 400 that names it.',
  },
  'relay:errors:empty-content': {
    source: 'design/relay-decisions.md: error table, row 2',
    behaviour: 'An empty content is a 400 that names it.',
  },
  'relay:errors:unsupported-type': {
    source: 'design/relay-decisions.md: error table, row 2',
    behaviour: 'A msg_type that cannot be sent is a 400 that names it.',
  },
  'relay:errors:unknown-context': {
    source: 'design/relay-decisions.md: error table, row 3',
    behaviour: 'A context token that was never issued is a 404.',
  },
  'relay:errors:expired-context': {
    source: 'design/relay-decisions.md: error table, row 3',
    behaviour: 'A context token that is too old is a 404.',
  },
  'relay:errors:foreign-context': {
    source: 'design/relay-decisions.md: error table, row 3',
    behaviour: 'A context token issued to another client is a 404 and nothing is sent.',
  },
  'relay:errors:one-context-text': {
    source: 'design/relay-decisions.md: error table, row 3',
    behaviour: 'Unknown, expired and foreign context tokens are answered with the same text.',
  },
  'relay:errors:displaced': {
    source: 'design/relay-decisions.md: error table, row 4',
    behaviour: 'A poll displaced by a newer one of its token gets 409.',
  },
  'relay:errors:displaced-damped': {
    source: 'design/relay-decisions.md: error table, row 4',
    behaviour: 'When displacing repeats, the 409 is held back for up to 3 seconds.',
  },
  'relay:errors:too-large-poll': {
    source: 'design/relay-decisions.md: error table, row 5',
    behaviour: 'A body over 64 KiB on a poll is a 413.',
  },
  'relay:errors:too-large-send': {
    source: 'design/relay-decisions.md: error table, row 5',
    behaviour: 'A body over 1 MiB on a send is a 413.',
  },
  'relay:errors:too-many-requests': {
    source: 'design/relay-decisions.md: error table, row 6',
    behaviour: 'Too many requests of one client are a 429.',
  },
  'relay:errors:too-many-polls': {
    source: 'design/relay-decisions.md: error table, row 6',
    behaviour: 'Too many open polls are a 429.',
  },
  'relay:errors:too-many-queued-sends': {
    source: 'design/relay-decisions.md: error table, row 6',
    behaviour: 'Too many waiting sends are a 429.',
  },
  'relay:errors:retry-after': {
    source: 'design/relay-decisions.md: error table, row 6',
    behaviour: 'Every 429 of the hub says in Retry-After when to come back.',
  },
  'relay:errors:upstream-down': {
    source: 'design/relay-decisions.md: error table, row 7',
    behaviour: 'A call that needs the upstream while it is down is a 503 with retry_after_ms.',
  },
  'relay:errors:needs-login': {
    source: 'design/relay-decisions.md: error table, row 7',
    behaviour: 'A call that needs the upstream while its login has expired is a 503 with retry_after_ms.',
  },
  'relay:errors:upstream-throttles': {
    source: 'design/relay-decisions.md: error table, row 8',
    behaviour: "A send the upstream throttles is a 429 with the upstream's number in upstream_code.",
  },
  'relay:errors:upstream-refuses': {
    source: 'design/relay-decisions.md: error table, row 8',
    behaviour: 'A send the upstream refuses otherwise is a 422 with its number in upstream_code, never a 5xx.',
  },
  'relay:errors:wrong-method': {
    source: 'issue 2: What must show, bad input',
    behaviour: "Another method than POST on a relay path is a 405 in the relay's error shape.",
  },
  'relay:errors:unknown-path': {
    source: 'issue 2: What must show, bad input',
    behaviour: "An unknown path below the relay prefixes is a 404 in the relay's error shape.",
  },
  'relay:errors:broken-items': {
    source: 'issue 2: What must show, bad input',
    behaviour: "A message with a broken item is a 400 that names the field, and holds up nobody else's sends.",
  },
  'relay:errors:changes-nothing': {
    source: 'issue 2: What must show, bad input',
    behaviour: 'Any one field wrong in any way gives the documented error and leaves all state as it was.',
  },
} as const satisfies Requirements
