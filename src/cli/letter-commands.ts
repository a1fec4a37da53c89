import pc from 'picocolors'
import type { DeadLetter, HubMessage } from '../client/hub-client.ts'
import { readChoice, readInteger, readSwitch, type Setting } from '../kit/settings.ts'
import { ASK_HUB, askHub } from './ask.ts'
import type { CommandSpec } from './command.ts'
import { table } from './terminal.ts'

const text = (flag: string, placeholder: string, help: string) =>
  ({ flag, placeholder, help, fallback: undefined, read: (given: string) => given }) satisfies Setting<
    string | undefined
  >

const choice = (flag: string, placeholder: string, choices: readonly string[]) => ({
  ...text(flag, placeholder, `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`),
  read: readChoice(choices),
})

const limit = {
  flag: '--limit',
  placeholder: '<n>',
  help: 'how many at most',
  fallback: 20,
  read: readInteger(1, 1_000),
}

const MESSAGES = {
  ...ASK_HUB,
  client: text('--client', '<name>', 'only what this client got'),
  user: text('--user', '<id>', 'only what this user wrote'),
  state: choice('--state', '<state>', ['routed', 'command', 'unrouted', 'suppressed', 'quarantined']),
  limit,
}

/** `switchboard messages` */
export const messagesCommand: CommandSpec = {
  name: 'messages',
  description: 'show what users wrote, where it went and why',
  group: 'Look after a hub:',
  settings: MESSAGES,
  examples: [
    ['switchboard messages', 'the newest ones'],
    ['switchboard messages --user ann@im.wechat --limit 5', ''],
  ],
  async run({ read }) {
    const { client, user, state, limit: most, ...values } = read(MESSAGES)
    const messages = await askHub(values, (hub) => hub.messages({ client, user, state, limit: most }))
    if (values.json) return console.log(JSON.stringify({ messages }))
    if (messages.length === 0) return console.log('There is no such message.')
    console.log(
      table([
        ['ID', 'WHEN', 'FROM', 'STATE', 'WHY', 'WENT TO', 'TEXT'],
        ...messages.map((message) => messageRow(message)),
      ]),
    )
  },
}

function messageRow({ id, received_at, from_user, state, reason, deliveries, content }: HubMessage): string[] {
  const went = deliveries.map((one) => `${one.client} (${one.state})`).join(', ')
  return [String(id), received_at, from_user, state, reason, went || '-', shorten(content)]
}

const DEAD_LETTERS = {
  ...ASK_HUB,
  client: text('--client', '<name>', 'list: only of this client; replay: to this client instead'),
  reason: choice('--reason', '<reason>', ['overflow', 'expired', 'undeliverable', 'client_removed', 'no_client']),
  all: { flag: '--all', help: 'replay or discard all of them', fallback: false, read: readSwitch },
  limit: { ...limit, fallback: 100 },
}
const MOST_AT_ONCE = 1_000
const NONE_REPLAYED = { replayed: [], failed: [] }
const NONE_DISCARDED = { discarded: [] }

/** `switchboard dead-letters` */
export const deadLettersCommand: CommandSpec = {
  name: 'dead-letters',
  description: 'list, replay or discard messages that could not be delivered',
  group: 'Look after a hub:',
  words: [
    { name: '[action]', help: 'list (when nothing is said), replay or discard' },
    { name: '[ids...]', help: 'which letters' },
  ],
  settings: DEAD_LETTERS,
  examples: [
    ['switchboard dead-letters', 'what there is, and why'],
    ['switchboard dead-letters replay 3 4', 'into the queue again'],
    ['switchboard dead-letters replay --all --client my-agent', 'all of them, to this client'],
    ['switchboard dead-letters discard 5', 'for good'],
  ],
  async run({ words: [action = 'list', ...given], read, complain }) {
    const { client, reason, all, limit: most, ...values } = read(DEAD_LETTERS)
    const ids = given.map(Number)
    complain(problemsOf(action, given, all))
    if (action === 'list') {
      const { dead_letters: letters, total } = await askHub(values, (hub) =>
        hub.deadLetters({ client, reason, limit: most }),
      )
      if (values.json) return console.log(JSON.stringify({ dead_letters: letters, total }))
      if (letters.length === 0) return console.log(total === 0 ? 'There are no dead letters.' : 'None of them is such.')
      console.log(table([['ID', 'WHEN', 'CLIENT', 'REASON', 'FROM', 'TEXT'], ...letters.map(letterRow)]))
      return console.log(pc.dim(`${letters.length} of ${total}`))
    }
    const answer = await askHub(values, async (hub) => {
      const query = { reason, limit: MOST_AT_ONCE, ...(action === 'discard' ? { client } : {}) }
      const which = all ? (await hub.deadLetters(query)).dead_letters.map(({ id }) => id) : ids
      if (action === 'replay') return which.length === 0 ? NONE_REPLAYED : hub.replayLetters(which, client)
      return which.length === 0 ? NONE_DISCARDED : hub.discardLetters(which)
    })
    const [done, failed] = 'discarded' in answer ? [answer.discarded, []] : [answer.replayed, answer.failed]
    const missing = ids.filter((id) => !done.includes(id) && !failed.some((one) => one.id === id))
    if (failed.length > 0 || missing.length > 0) process.exitCode = 1
    if (values.json) return console.log(JSON.stringify(answer))
    console.log(`${action === 'replay' ? 'Replayed' : 'Discarded'}: ${done.length}.`)
    for (const { id, message } of failed) console.error(pc.red(`${id}: ${message}`))
    for (const id of missing) console.error(pc.red(`${id}: There is no such dead letter.`))
  },
}

function problemsOf(action: string, ids: readonly string[], all: boolean): string[] {
  if (!['list', 'replay', 'discard'].includes(action)) return [`${action} is none of list, replay and discard`]
  if (action === 'list') return ids.length === 0 ? [] : ['list takes no ids']
  const wrong = ids.filter((id) => !/^[1-9]\d{0,14}$/.test(id)).map((id) => `${id} is not the id of a letter`)
  if (wrong.length > 0) return wrong
  if (ids.length === 0 && !all) return [`say which letters to ${action}: their ids, or --all`]
  return ids.length > 0 && all ? ['give ids or --all, not both'] : []
}

function letterRow({ id, created_at, client, reason, from_user, content }: DeadLetter): string[] {
  return [String(id), created_at, client ?? '-', reason, from_user, shorten(content)]
}

const SHORT = 60

/** One line of a text, and never a control character: it is somebody else's. */
function shorten(content: string | null): string {
  const line = [...(content ?? '').replace(/\p{C}+/gu, ' ').trim()]
  return line.length > SHORT ? `${line.slice(0, SHORT).join('')}…` : line.join('')
}
