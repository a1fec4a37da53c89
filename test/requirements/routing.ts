import type { Requirements } from './requirement.ts'

/** Which client gets a message. */
export const routing = {
  'routing:mention:one-message': {
    source: 'design/relay-decisions.md: Routing, order 1',
    behaviour: '`@name text` sends this one text to that client.',
  },
  'routing:mention:keeps-route': {
    source: 'design/relay-decisions.md: Routing, order 1',
    behaviour: "A mention leaves the user's chosen client as it was.",
  },
  'routing:order:command': {
    source: 'design/relay-decisions.md: Routing, order 2',
    behaviour: 'A hub command is handled by the hub and goes to no client.',
  },
  'routing:order:quote': {
    source: 'design/relay-decisions.md: Routing, order 3',
    behaviour: 'A quote of an earlier answer goes to the client that wrote the answer.',
  },
  'routing:order:chosen': {
    source: 'design/relay-decisions.md: Routing, order 4',
    behaviour: "Without any of these the user's chosen client gets the message.",
  },
  'routing:order:default': {
    source: 'design/relay-decisions.md: Routing, order 5',
    behaviour: 'A user who chose nobody goes to the client an admin made the default.',
  },
  'routing:order:first-online': {
    source: 'design/relay-decisions.md: Routing, order 6',
    behaviour: 'Without a default the first registered client that is online gets the message.',
  },
  'routing:order:fallback-last': {
    source: 'design/relay-decisions.md: Routing, order 6',
    behaviour: 'Clients marked as fallback are taken only when no other is online.',
  },
  'routing:order:first-registered': {
    source: 'design/relay-decisions.md: Routing, order 7',
    behaviour: 'With nobody online the first registered client gets the message.',
  },
  'routing:order:nobody': {
    source: 'design/relay-decisions.md: Routing, order 8',
    behaviour: 'With no client at all the user gets a short help text.',
  },
  'routing:order:precedence': {
    source: 'design/relay-decisions.md: Routing, order',
    behaviour: 'Where several rules apply, the one that stands first in the order decides.',
  },
  'routing:reason:stored': {
    source: 'design/relay-decisions.md: Routing, order',
    behaviour: 'Why a message went where it went is stored with it.',
  },
  'routing:names:any-case': {
    source: 'design/relay-decisions.md: Routing, names',
    behaviour: 'Client names are matched in any case.',
  },
  'routing:names:longest': {
    source: 'design/relay-decisions.md: Routing, names',
    behaviour: 'Of several names that fit, the longest is meant.',
  },
  'routing:names:beats-number': {
    source: 'design/relay-decisions.md: Routing, names',
    behaviour: 'A name that looks like a number is taken before the number of a place.',
  },
  'routing:commands:list': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: '/list names the clients with their numbers and who is chosen.',
  },
  'routing:commands:use-name': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: "/use with a name makes that client the user's own from then on.",
  },
  'routing:commands:use-number': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: '/use with a number of the list does the same.',
  },
  'routing:commands:use-unknown': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: '/use with a name nobody has changes nothing and says so.',
  },
  'routing:commands:status': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: "/status tells the user's chosen client and whether it is online.",
  },
  'routing:commands:help': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: '/help explains the commands.',
  },
  'routing:commands:broadcast': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: '/broadcast sends its text to every client.',
  },
  'routing:commands:prefix': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: 'The prefix of the commands can be configured.',
  },
  'routing:commands:passthrough': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: 'A command that a client claimed goes to that client.',
  },
  'routing:commands:escape': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: 'A text that starts with `//` goes to the client with one slash.',
  },
  'routing:commands:unknown': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: 'A command the hub does not know goes to the client.',
  },
  'routing:commands:own-view': {
    source: 'design/relay-decisions.md: Routing, commands',
    behaviour: 'What a user is shown holds nothing of another user.',
  },
  'routing:offline:queued': {
    source: 'design/relay-decisions.md: Routing, offline',
    behaviour: 'A message for a client that is offline is queued for it.',
  },
  'routing:offline:told': {
    source: 'design/relay-decisions.md: Routing, offline',
    behaviour: 'The user is told that the client is offline, at most once in 10 minutes.',
  },
} as const satisfies Requirements
