import pc from 'picocolors'
import { PASTE_TARGETS, type PasteTarget, pastesFor } from '../client/paste.ts'
import { readChoice, readInteger, readSwitch, type Setting } from '../kit/settings.ts'
import { ASK_HUB, askHub } from './ask.ts'
import type { CommandSpec } from './command.ts'
import { table } from './terminal.ts'

const REGISTER = {
  ...ASK_HUB,
  label: {
    flag: '--label',
    placeholder: '<text>',
    help: 'a description for people',
    fallback: null,
    fallbackText: 'the name',
    read: (text: string) => text,
  } satisfies Setting<string | null>,
  account: {
    flag: '--account',
    placeholder: '<account>',
    help: 'the bot account whose messages it gets',
    fallback: null,
    fallbackText: 'all of them',
    read: (text: string) => text,
  } satisfies Setting<string | null>,
  for: {
    flag: '--for',
    placeholder: '<client>',
    help: `print what to paste into a known client: ${PASTE_TARGETS.join(', ')}`,
    fallback: null,
    read: readChoice(PASTE_TARGETS),
  } satisfies Setting<PasteTarget | null>,
  fallback: {
    flag: '--fallback',
    help: 'taken only when no other client is online',
    fallback: false,
    read: readSwitch,
  },
}

/** `switchboard register` */
export const registerCommand: CommandSpec = {
  name: 'register',
  description: 'register an AI client and print its token',
  group: 'Look after a hub:',
  words: [{ name: '<name>', help: 'what the client is called' }],
  settings: REGISTER,
  examples: [
    ['switchboard register my-agent --label "My first agent"', 'the token is shown this once'],
    ['switchboard register helper --for weixin-clawbot', 'and the lines to paste for that client'],
    ['switchboard register shop-bot --account shop', 'for one bot account only'],
  ],
  async run({ words: [name = ''], read }) {
    const values = read(REGISTER)
    const { label, account, fallback, for: target } = values
    const order = {
      ...(label === null ? {} : { label }),
      ...(account === null ? {} : { account }),
      ...(fallback ? { fallback } : {}),
    }
    const client = await askHub(values, (hub) => hub.register(name, order))
    const pastes =
      target === null
        ? []
        : pastesFor(target, { name: client.name, token: client.token, url: values.hub, now: Date.now() })
    if (values.json) return console.log(JSON.stringify(target === null ? client : { ...client, for: target, pastes }))
    console.log(`${pc.bold(client.name)} is registered. Its token, shown this once:\n\n  ${pc.green(client.token)}\n`)
    if (target === null)
      return console.log(`Point the client at ${values.hub} (paths /relay/bot/… or /ilink/bot/…) with this token.`)
    for (const { file, text } of pastes)
      console.log(`${pc.dim(file === null ? `For ${target}:` : `Into ${file}:`)}\n\n${text}\n`)
  },
}

/** `switchboard clients` */
export const clientsCommand: CommandSpec = {
  name: 'clients',
  description: 'list the registered clients',
  group: 'Look after a hub:',
  settings: ASK_HUB,
  examples: [['switchboard clients --json', 'for a script']],
  async run({ read }) {
    const values = read(ASK_HUB)
    const list = await askHub(values, (hub) => hub.clients())
    if (values.json) return console.log(JSON.stringify(list))
    if (list.total === 0)
      return console.log('No client is registered yet. "switchboard register <name>" registers one.')
    const rows = list.clients.map((one) => [one.name, one.status, String(one.queue_size), one.last_seen, one.label])
    console.log(table([['NAME', 'STATUS', 'WAITING', 'LAST SEEN', 'LABEL'], ...rows]))
    console.log(pc.dim(`${list.online} of ${list.total} online`))
  },
}

const ROTATE = {
  ...ASK_HUB,
  overlap: {
    flag: '--overlap',
    placeholder: '<seconds>',
    help: 'how long the old token stays good',
    fallback: 0,
    read: readInteger(0, 86_400),
  },
}

/** `switchboard rotate` */
export const rotateCommand: CommandSpec = {
  name: 'rotate',
  description: 'give a client a new token',
  group: 'Look after a hub:',
  words: [{ name: '<name>', help: 'the client' }],
  settings: ROTATE,
  examples: [['switchboard rotate my-agent --overlap 60', 'the old token works for another minute']],
  async run({ words: [name = ''], read }) {
    const values = read(ROTATE)
    const rotated = await askHub(values, (hub) => hub.rotate(name, values.overlap))
    if (values.json) return console.log(JSON.stringify(rotated))
    console.log(`The new token of ${pc.bold(rotated.name)}, shown this once:\n\n  ${pc.green(rotated.token)}\n`)
    console.log(
      values.overlap === 0 ? 'The old one is no longer good.' : `The old one is good for another ${values.overlap} s.`,
    )
  },
}

/** `switchboard remove` */
export const removeCommand: CommandSpec = {
  name: 'remove',
  description: 'delete a client; what waits for it becomes dead letters',
  group: 'Look after a hub:',
  words: [{ name: '<name>', help: 'the client' }],
  settings: ASK_HUB,
  examples: [['switchboard remove my-agent', 'its token stops working at once']],
  async run({ words: [name = ''], read }) {
    const values = read(ASK_HUB)
    await askHub(values, (hub) => hub.remove(name))
    console.log(values.json ? JSON.stringify({ removed: name }) : `${pc.bold(name)} is deleted.`)
  },
}
