import type { Requirements } from './requirement.ts'

/** Existing clients, unchanged: what the real bot protocol asks of the hub. */
export const wire = {
  'wire:clients:text': {
    source: 'issue 4: What must show, 1',
    behaviour: 'The published clients get texts and answer them through the hub.',
  },
  'wire:clients:typing': {
    source: 'issue 4: What must show, 1',
    behaviour: 'The published clients turn typing on and off and the user sees it.',
  },
  'wire:clients:image': {
    source: 'issue 4: What must show, 1',
    behaviour: 'An image comes to the published clients and goes back byte for byte.',
  },
  'wire:clients:restart': {
    source: 'issue 4: What must show, 1',
    behaviour:
      'When the client or the hub is killed in mid-conversation nothing is lost and nothing settled comes twice.',
  },
  'wire:clients:wrong-token': {
    source: 'issue 4: What must show, 1; reference/ilink-wire.md 2.3 rule 16',
    behaviour: 'With a wrong token the published clients live on, back off and keep their credentials.',
  },
  'wire:clients:idle': {
    source: 'issue 4: What must show, 1',
    behaviour: 'The published clients wait through empty answers and then still get what comes.',
  },
  'wire:clients:expired-login': {
    source: 'issue 4: What must show, 2; reference/ilink-wire.md 2.3 rule 15',
    behaviour:
      'When the upstream login expires the published clients poll on, /health names the action, and after a new login nothing is lost.',
  },
  'wire:media:pass-through': {
    source: 'issue 4: Build 3; reference/ilink-wire.md 2.3 rule 12',
    behaviour: 'Without the media relay, addresses and references of media pass through untouched.',
  },
  'wire:media:relay': {
    source: 'issue 4: Build 3',
    behaviour: 'With the media relay a client that reaches the hub alone uploads and downloads byte for byte.',
  },
  'wire:media:tickets': {
    source: 'issue 4: Build 3',
    behaviour: 'A media address of the hub cannot be guessed, changed, or used for another client or another place.',
  },
  'wire:media:limit': {
    source: 'issue 4: Build 3',
    behaviour: 'A file over 100 MiB is a 413, said or found out.',
  },
  'wire:media:fair': {
    source: 'issue 4: Build 3',
    behaviour: 'A client whose files do not move keeps at most 16 of the 64 places: others have room.',
  },
  'wire:media:checks': {
    source: 'issue 4: Build 3',
    behaviour:
      'An upload that cannot be the announced file, by length, padding or first bytes, is refused and never stored.',
  },
  'wire:media:memory': {
    source: 'issue 4: What must show, 4',
    behaviour: 'Media of 10 MB pass up and down with less than 32 MB more memory.',
  },
  'wire:budget:split': {
    source: 'issue 4: Build 5',
    behaviour: 'A long text is cut at a line or word end, never inside a character or the marker of a code fence.',
  },
  'wire:budget:states': {
    source: 'issue 4: Build 5',
    behaviour: 'Each send has a state: accepted, unconfirmed without an id, failed, or throttled; the admin sees it.',
  },
  'wire:budget:account-window': {
    source: 'issue 4: Build 5',
    behaviour: 'Sends are counted per account window, and a limit that was set is kept to with 429.',
  },
  'wire:budget:remaining': {
    source: 'issue 4: Build 5',
    behaviour:
      'What is left of the reply window and of the context is shown per conversation, by numbers that are settings.',
  },
  'wire:rule:mounted': {
    source: 'reference/ilink-wire.md 2.3 rule 1',
    behaviour: 'The same handlers stand at the root under both prefixes, without redirects.',
  },
  'wire:rule:hold': {
    source: 'reference/ilink-wire.md 2.3 rule 2',
    behaviour: 'An empty poll is held 30 seconds by default, and no answer carries a time for the next poll.',
  },
  'wire:rule:cursor-ack': {
    source: 'reference/ilink-wire.md 2.3 rule 3',
    behaviour:
      'A cursor acknowledges what came up to it; an empty, foreign or broken one acknowledges nothing and is no error.',
  },
  'wire:rule:one-poll': {
    source: 'reference/ilink-wire.md 2.3 rule 4',
    behaviour: 'Of two polls with one token the newest gets the messages and the older one gets none.',
  },
  'wire:rule:message-id': {
    source: 'reference/ilink-wire.md 2.3 rule 5',
    behaviour: 'A message id is a JSON number with all digits and above every id the client got before.',
  },
  'wire:rule:no-echoes': {
    source: 'reference/ilink-wire.md 2.3 rule 6',
    behaviour: 'What the bot itself wrote (message_type 2) is never delivered.',
  },
  'wire:rule:user-ids': {
    source: 'reference/ilink-wire.md 2.3 rule 7',
    behaviour: 'User ids reach clients as the service writes them and are compared in any case.',
  },
  'wire:rule:missing-token': {
    source: 'reference/ilink-wire.md 2.3 rule 8',
    behaviour: 'A send or typing without a context token reaches a user this client has seen, and nobody else.',
  },
  'wire:rule:several-items': {
    source: 'reference/ilink-wire.md 2.3 rule 9',
    behaviour: 'A message of several items goes out as one call each, in order.',
  },
  'wire:rule:tool-items': {
    source: 'reference/ilink-wire.md 2.3 rule 9',
    behaviour: 'Items of tool calls (11, 12) are passed on, and are no error even when the service refuses them.',
  },
  'wire:rule:same-client-id': {
    source: 'reference/ilink-wire.md 2.3 rule 9',
    behaviour: 'A retry with the same client_id sends nothing again and gets the first answer.',
  },
  'wire:rule:spec-typing': {
    source: 'reference/ilink-wire.md 2.3 rule 10',
    behaviour: 'Typing with only a context token is shown, and ends with the reply.',
  },
  'wire:rule:config-without-user': {
    source: 'reference/ilink-wire.md 2.3 rule 11',
    behaviour: 'getconfig without a user still answers a ticket.',
  },
  'wire:rule:upload-forms': {
    source: 'reference/ilink-wire.md 2.3 rule 12',
    behaviour: 'An upload address comes in both forms, and all else of the answer untouched.',
  },
  'wire:rule:notify': {
    source: 'reference/ilink-wire.md 2.3 rule 13',
    behaviour: 'notifystart and notifystop answer ret 0 and mean online and offline at once.',
  },
  'wire:rule:liveness': {
    source: 'reference/ilink-wire.md 2.3 rule 14',
    behaviour: 'Every call keeps a client online for 90 seconds, an open poll as long as it lasts.',
  },
  'wire:rule:no-minus-14': {
    source: 'reference/ilink-wire.md 2.3 rule 15',
    behaviour:
      'An expired upstream login never reaches a client: polls wait on and sends fail with a status of their own.',
  },
  'wire:rule:bad-token': {
    source: 'reference/ilink-wire.md 2.3 rule 16',
    behaviour: 'A bad token is HTTP 401 with ret and errcode 401 on every endpoint.',
  },
  'wire:rule:no-instant-errors': {
    source: 'reference/ilink-wire.md 2.3 rule 17',
    behaviour: 'No error is ever a 200, least of all on getupdates.',
  },
  'wire:rule:refusals': {
    source: 'reference/ilink-wire.md 2.3 rule 18',
    behaviour: 'What the service refuses is a 4xx that names its code.',
  },
  'wire:rule:body-token': {
    source: 'reference/ilink-wire.md 2.3 rule 19',
    behaviour: 'The header decides; a body token that differs is a 401, and alone it opens nothing.',
  },
  'wire:rule:tolerance': {
    source: 'reference/ilink-wire.md 2.3 rule 20',
    behaviour: 'Odd content types, unknown keys, hand-set lengths, reused connections and hang-ups are all taken.',
  },
  'wire:shape:superset': {
    source: 'reference/ilink-wire.md 2.2',
    behaviour:
      'Every answer holds the fields of both dialects, lists are never null, and failures have one number twice.',
  },
  'wire:fields:inbound': {
    source: 'issue 4: What must show, 3',
    behaviour: 'A message with unknown fields at every level comes out with all of them, digits included.',
  },
  'wire:fields:outbound': {
    source: 'issue 4: What must show, 3',
    behaviour: 'Unknown fields of a sent message and its items reach the service, ids over 2^53 digit for digit.',
  },
  'wire:fields:fuzz': {
    source: 'issue 4: What must show, 3',
    behaviour: 'Messages with extra, missing and wrong fields never hold up the batch they came in.',
  },
} as const satisfies Requirements
