import type { Requirements } from './requirement.ts'

const SOURCE = 'issue 4: Build 4, pairing; reference/ilink-wire.md: 2.4'

/** Clients that log in by QR code. */
export const pairing = {
  'pairing:wire:begin': {
    source: SOURCE,
    behaviour: 'Without a token a client gets a code and the address of a page of the hub, under both prefixes.',
  },
  'pairing:wire:post': {
    source: SOURCE,
    behaviour: 'It may ask by POST too; the tokens it sends along are neither read nor logged.',
  },
  'pairing:wire:confirmed': {
    source: SOURCE,
    behaviour:
      "Once approved the code's holder gets a virtual token, a bot id of its own, a user and the hub's address.",
  },
  'pairing:wire:once': {
    source: SOURCE,
    behaviour: "The token is told once, to who holds the code; the page's id alone gets nothing.",
  },
  'pairing:admin:never-automatic': {
    source: SOURCE,
    behaviour: 'Nothing but an admin lets a client in.',
  },
  'pairing:admin:door': {
    source: SOURCE,
    behaviour: 'The page and the calls that approve need the admin token where there is one.',
  },
  'pairing:admin:page': {
    source: SOURCE,
    behaviour: 'On the page an admin approves by name; the client hears `scaned` when it is opened.',
  },
  'pairing:admin:replace': {
    source: SOURCE,
    behaviour: 'A client that is registered already keeps its queue and gets a new token, only when that is asked for.',
  },
  'pairing:admin:reject': {
    source: SOURCE,
    behaviour: 'A rejected code is over for the client, and cannot be approved later.',
  },
  'pairing:limits:expiry': {
    source: SOURCE,
    behaviour: 'A code lasts five minutes; a token that is not fetched within two minutes of the approval is gone.',
  },
  'pairing:limits:rate': {
    source: SOURCE,
    behaviour: 'Codes that wait are bounded per address and in all; more are a 429.',
  },
  'pairing:clients:weixin-bot-sdk': {
    source: SOURCE,
    behaviour: 'weixin-bot-sdk logs in at the hub by its own QR login and answers messages.',
  },
  'pairing:clients:weixin-clawbot': {
    source: SOURCE,
    behaviour: 'The command of weixin-clawbot logs in at the hub and prints a token that works.',
  },
} as const satisfies Requirements
