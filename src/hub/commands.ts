import type { Notice } from './model.ts'
import type { Clientele, RoutableClient, Routing } from './router.ts'

/** What a command can see and speak of. */
export interface CommandView {
  clients: Clientele
  prefix: string
  linkText: string
  /** Where the user's plain messages go now. */
  currentId: number | null
  currentReason: string
}

export interface Command {
  /** Lower case, without the prefix. */
  name: string
  argument: string
}

/** `/name argument`; null when the text is no such thing. */
export function parseCommand(text: string, prefix: string): Command | null {
  if (!text.startsWith(prefix)) return null
  const found = /^([a-z]+)(?:\s+([\s\S]*))?$/i.exec(text.slice(prefix.length).trimEnd())
  if (found === null) return null
  return { name: (found[1] ?? '').toLowerCase(), argument: (found[2] ?? '').trim() }
}

/** What a command does; null when it is none of the hub's, and so is for the client. */
export function runCommand({ name, argument }: Command, view: CommandView): Routing | null {
  switch (name) {
    case 'list':
      return say('list', listText(view))
    case 'use':
      return use(argument, view)
    case 'status':
      return say('status', statusText(view))
    case 'help':
      return say('help', helpText(view.prefix))
    case 'broadcast':
      return broadcast(argument, view)
    default:
      return null
  }
}

/** Clients in the order in which `/list` numbers them. */
function numbered({ all }: Clientele): RoutableClient[] {
  return [...all].sort((a, b) => a.name.localeCompare(b.name, 'en'))
}

function use(argument: string, view: CommandView): Routing {
  const { prefix } = view
  const wanted = argument.toLowerCase()
  if (wanted === '') return say('use', `Say which one: ${prefix}use <name or number>. ${prefix}list shows them.`)
  // A name beats a number: a client may be called "2".
  const client =
    view.clients.byName.get(wanted) ?? (/^\d+$/.test(wanted) ? numbered(view.clients)[Number(wanted) - 1] : undefined)
  if (client === undefined)
    return say('use', `There is no "${argument.slice(0, 64)}" here. ${prefix}list shows who is.`)
  const offline = client.online ? '' : ' It is offline now; what you write is kept until it is back.'
  return { ...say('use', `You now talk to ${client.name}.${offline}`), choose: client.id }
}

function broadcast(argument: string, { clients: { all }, prefix }: CommandView): Routing {
  if (argument === '') return say('broadcast', `Say what: ${prefix}broadcast <text> goes to everyone.`)
  if (all.length === 0) return say('broadcast', 'Nobody is here to hear it.')
  const offline = all.filter(({ online }) => !online).length
  const who = all.length === 1 ? '1 client' : `all ${all.length} clients`
  const later = offline === 0 ? '' : ` Offline now, and given it later: ${offline}.`
  const targets = all.map(({ id }) => id)
  return {
    state: 'routed',
    reason: 'broadcast',
    targets,
    text: argument,
    notices: [notice('broadcast', `Sent to ${who}.${later}`)],
  }
}

function listText({ clients, currentId, prefix }: CommandView): string {
  if (clients.all.length === 0) return 'Nobody is registered yet.'
  const line = ({ id, name, online }: RoutableClient, index: number) =>
    `${index + 1}. ${name} (${online ? 'online' : 'offline'})${id === currentId ? ' ← you talk to this one' : ''}`
  return [...numbered(clients).map(line), `${prefix}use <name or number> changes it.`].join('\n')
}

const REASONS: Record<string, string> = {
  chosen: 'you chose it',
  default: 'it is the default',
  first_online: 'it was the first one online',
  fallback_online: 'nobody else is online',
  first_registered: 'nobody is online, and it was registered first',
}

function statusText({ clients, currentId, currentReason, linkText }: CommandView): string {
  const current = currentId === null ? undefined : clients.byId.get(currentId)
  if (current === undefined) return `You talk to nobody yet. ${linkText}`
  return `You talk to ${current.name} (${current.online ? 'online' : 'offline'}): ${REASONS[currentReason] ?? currentReason}. ${linkText}`
}

function helpText(prefix: string): string {
  return [
    `${prefix}list  who is here`,
    `${prefix}use <name or number>  whom you talk to`,
    `${prefix}status  where your messages go`,
    `${prefix}broadcast <text>  to everyone`,
    '@name text  one message to one of them',
    'Quote an answer to reply to who wrote it.',
    `${prefix}${prefix}text  passes ${prefix}text on as it is`,
  ].join('\n')
}

function say(reason: string, text: string): Routing {
  return { state: 'command', reason: `command:${reason}`, targets: [], notices: [notice(reason, text)] }
}

function notice(kind: string, text: string): Notice {
  return { kind: `command:${kind}`, onceMs: 0, text }
}
