import type { Requirements } from './requirement.ts'

/** Configuration, command line, store and sim. */
export const config = {
  'config:flags:environment': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: 'Each flag of the hub has an environment name that does the same.',
  },
  'config:flags:win': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: 'Where both are given the flag counts.',
  },
  'config:flags:defaults': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: 'Without flags the hub listens on 127.0.0.1:8765 and holds polls for 30,000 ms.',
  },
  'config:flags:addr': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: '--addr sets where the hub listens.',
  },
  'config:flags:data-dir': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: '--data-dir sets where the hub keeps its data.',
  },
  'config:flags:upstream': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: '--upstream-url and --upstream-token point the hub at a service one already has.',
  },
  'config:flags:poll-hold': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: '--poll-hold-ms sets how long a poll waits.',
  },
  'config:secrets:environment-only': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: 'The admin token and the metrics token come from the environment and from no flag.',
  },
  'config:errors:all-at-once': {
    source: 'issue 2: Build 8',
    behaviour: 'All mistakes of a configuration are reported at once, each with its flag.',
  },
  'config:upstream:sim-beside': {
    source: 'design/relay-decisions.md: Configuration',
    behaviour: 'Without an upstream the hub starts the sim beside itself and says so.',
  },
  'cli:help:teaches': {
    source: 'issue 2: Build 8',
    behaviour: '--help lists the commands and their flags with defaults and environment names.',
  },
  'cli:banner:addresses': {
    source: 'issue 2: Build 8',
    behaviour: 'At the start the hub prints the addresses of its endpoints and its page.',
  },
  'cli:register:token': {
    source: 'issue 2: Build 8',
    behaviour: '`switchboard register` registers a client at a running hub and prints its token.',
  },
  'cli:clients:list': {
    source: 'issue 2: Build 8',
    behaviour: '`switchboard clients` prints the clients of a running hub.',
  },
  'cli:sim:starts': {
    source: 'issue 2: Build 6',
    behaviour: '`switchboard sim` starts a sim of its own and says where.',
  },
  'store:files:private': {
    source: 'issue 2: Build 4',
    behaviour: 'The data directory has mode 0700 and its files have 0600.',
  },
  'store:files:default': {
    source: 'issue 2: Build 4',
    behaviour: 'Without --data-dir the data is in .switchboard/ under the working directory.',
  },
  'store:schema:versioned': {
    source: 'issue 2: Build 4',
    behaviour: 'The schema has a version, and an older file is migrated without losing anything.',
  },
  'store:schema:newer': {
    source: 'issue 2: Build 4',
    behaviour: 'A file of a newer version is refused with a text that says what to do.',
  },
  'store:writes:off-loop': {
    source: 'issue 2: Build 4',
    behaviour: 'Writes happen on a thread of their own, so the event loop goes on during a slow commit.',
  },
  'store:writes:grouped': {
    source: 'issue 2: Build 4',
    behaviour: 'Writes that come while a commit runs share the next one.',
  },
  'sim:protocol:getupdates': {
    source: 'issue 2: Build 6',
    behaviour: "The sim's getupdates holds, and gives what comes after the cursor it is sent.",
  },
  'sim:protocol:sendmessage': {
    source: 'issue 2: Build 6',
    behaviour: "A message sent to the sim stands in the user's conversation.",
  },
  'sim:protocol:typing': {
    source: 'issue 2: Build 6',
    behaviour: 'getconfig gives a ticket with which sendtyping shows and ends the indicator.',
  },
  'sim:protocol:notify': {
    source: 'issue 2: Build 6',
    behaviour: 'notifystart and notifystop are answered with ret 0.',
  },
  'sim:protocol:login': {
    source: 'issue 2: Build 6',
    behaviour: 'A QR login can be asked for, watched and confirmed, and gives a bot token that works.',
  },
  'sim:media:upload': {
    source: 'issue 2: Build 6',
    behaviour: 'What is uploaded encrypted under an address of getuploadurl can be downloaded and decrypted again.',
  },
  'sim:control:say': {
    source: 'issue 2: Build 6',
    behaviour: 'The control API says a text as any user.',
  },
  'sim:control:conversation': {
    source: 'issue 2: Build 6',
    behaviour: "The control API shows a user's conversation and whether the bot types.",
  },
  'sim:fault:down': {
    source: 'issue 2: Build 6',
    behaviour: 'The sim can go down for a while and come back.',
  },
  'sim:fault:expired': {
    source: 'issue 2: Build 6',
    behaviour: 'The sim can answer -14.',
  },
  'sim:fault:throttle': {
    source: 'issue 2: Build 6',
    behaviour: 'The sim can answer sends with -2.',
  },
  'sim:fault:duplicate': {
    source: 'issue 2: Build 6',
    behaviour: 'The sim can give a message twice, with the same id or with another.',
  },
  'sim:fault:malformed': {
    source: 'issue 2: Build 6',
    behaviour: 'The sim can put a malformed message among good ones.',
  },
  'sim:fault:slow': {
    source: 'issue 2: Build 6',
    behaviour: 'The sim can answer slowly.',
  },
} as const satisfies Requirements
