import { type CommandView, parseCommand, runCommand } from './commands.ts'
import type { Notice } from './model.ts'

/** A client as routing sees it, in the order of registration. */
export interface RoutableClient {
  id: number
  name: string
  online: boolean
  isDefault: boolean
  fallback: boolean
  passthrough: readonly string[]
}

/** All clients, and how to find one without looking at each: there may be thousands, and every message asks. */
export interface Clientele {
  all: readonly RoutableClient[]
  byId: ReadonlyMap<number, RoutableClient>
  /** By their names in lower case. */
  byName: ReadonlyMap<string, RoutableClient>
  longestName: number
  /** The one that an operator has set. */
  standard: RoutableClient | undefined
}

export function clienteleOf(all: readonly RoutableClient[]): Clientele {
  const byId = new Map(all.map((client) => [client.id, client]))
  const byName = new Map(all.map((client) => [client.name.toLowerCase(), client]))
  const longestName = [...byName.keys()].reduce((most, { length }) => Math.max(most, length), 0)
  return { all, byId, byName, longestName, standard: all.find(({ isDefault }) => isDefault) }
}

/** All that a routing depends on. */
export interface RoutingView {
  clients: Clientele
  /** The client this user chose with `/use`. */
  chosenId: number | null
  /** The client that wrote what the user quotes. */
  quotedId: number | null
  /** What hub commands start with. */
  prefix: string
  /** One sentence about the link to the messaging service. */
  linkText: string
}

/** Where a message goes, and why. */
export interface Routing {
  state: 'routed' | 'command' | 'unrouted'
  reason: string
  targets: number[]
  /** The user's new choice; absent leaves it. */
  choose?: number | null
  /** The text the clients see, where it is not the one that came. */
  text?: string
  notices: Notice[]
}

const TELL_AGAIN_MS = 10 * 60_000
/** What may stand behind a name. */
const AFTER_NAME = /^$|^[\s,:;.!?\u2005，：；。．！？]/

/** Decides by the first rule that fits: mention, command, quote, choice, default, first online, first registered. */
export function route(text: string | null, view: RoutingView): Routing {
  const { clients, prefix } = view
  const mentioned = text === null ? null : findMention(text, clients)
  if (mentioned !== null) return to(mentioned, 'mention')

  const unescaped = text?.startsWith(prefix + prefix) ? text.slice(prefix.length) : null
  if (unescaped !== null) return { ...implicitRoute(view), text: unescaped }

  const command = text === null ? null : parseCommand(text, prefix)
  if (command === null) return implicitRoute(view)
  const current = implicitRoute(view)
  // A command that quotes an answer still asks about the user's own messages.
  const usual = view.quotedId === null ? current : implicitRoute({ ...view, quotedId: null })
  const claimed = current.targets.some((id) => clients.byId.get(id)?.passthrough.includes(command.name))
  if (claimed) return { ...current, reason: `passthrough:${command.name}` }
  const commandView: CommandView = {
    clients,
    prefix,
    linkText: view.linkText,
    currentId: usual.targets[0] ?? null,
    currentReason: usual.reason,
  }
  return runCommand(command, commandView) ?? current
}

/** Where a plain message goes: quote, choice, default, first online, first registered, nobody. */
function implicitRoute({ clients, quotedId, chosenId, prefix }: RoutingView): Routing {
  const byId = (id: number | null) => (id === null ? undefined : clients.byId.get(id))
  const quoted = byId(quotedId)
  if (quoted) return to(quoted, 'quote')
  const chosen = byId(chosenId)
  if (chosen) return to(chosen, 'chosen')
  if (clients.standard) return to(clients.standard, 'default')
  const online = first(clients.all, (client) => client.online)
  if (online) return to(online, online.fallback ? 'fallback_online' : 'first_online')
  const registered = first(clients.all, () => true)
  if (registered) return to(registered, 'first_registered')
  return { state: 'unrouted', reason: 'nobody', targets: [], notices: [nobody(prefix)] }
}

/** The first that fits; one that is only a fallback where no other does. */
function first(
  clients: readonly RoutableClient[],
  fits: (client: RoutableClient) => boolean,
): RoutableClient | undefined {
  let fallback: RoutableClient | undefined
  for (const client of clients) {
    if (!fits(client)) continue
    if (!client.fallback) return client
    fallback ??= client
  }
  return fallback
}

function to(client: RoutableClient, reason: string): Routing {
  return { state: 'routed', reason, targets: [client.id], notices: client.online ? [] : [offline(client)] }
}

function offline({ id, name }: RoutableClient): Notice {
  const text = `${name} is offline. Your message is kept and goes to it as soon as it is back.`
  return { kind: `offline:${id}`, onceMs: TELL_AGAIN_MS, text }
}

function nobody(prefix: string): Notice {
  const text = `Nobody is here to answer yet. Your message is kept for the operator. ${prefix}help shows what you can do.`
  return { kind: 'nobody', onceMs: TELL_AGAIN_MS, text }
}

/** `@name …`, in any case; the longest name that fits. */
function findMention(text: string, { byName, longestName }: Clientele): RoutableClient | null {
  if (!text.startsWith('@')) return null
  const rest = text.slice(1).toLowerCase()
  for (let length = Math.min(longestName, rest.length); length > 0; length -= 1) {
    const client = byName.get(rest.slice(0, length))
    if (client && AFTER_NAME.test(rest.slice(length, length + 1))) return client
  }
  return null
}
