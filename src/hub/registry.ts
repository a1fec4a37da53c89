import { hash, randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import type { Client, ClientToken } from './model.ts'
import type { ClientPatch, ClientStore } from './store/port.ts'

/** The registered clients, in memory, as the store has them; and who of them is there. */
export interface Registry {
  /** In the order of registration. The same list until a client comes, goes or is changed. */
  all(): readonly Client[]
  get(id: number): Client | undefined
  byName(name: string): Client | undefined
  /** The client a virtual token belongs to. */
  authenticate(token: string): { client: Client; tokenHash: string } | undefined
  /** Whether a token that was let in is still good: an overlap may have ended since. */
  isGood(tokenHash: string): boolean
  register(
    name: string,
    options: { label: string; fallback: boolean; account?: string | null },
  ): Promise<{ client: Client; token: string }>
  update(id: number, patch: ClientPatch): Promise<Client>
  /** A new token; the old ones stay good for `overlapMs`. */
  rotate(id: number, overlapMs: number): Promise<string>
  remove(id: number): Promise<number>
  /** An authenticated call came. */
  seen(client: Client): void
  stopped(client: Client): void
  pollOpened(client: Client): void
  pollClosed(client: Client): void
  isOnline(client: Client): boolean
  onlineCount(): number
  /** Called with the tokens that stopped being good, so that their polls can be cut. */
  onRevoked(listener: (clientId: number, tokenHash: string) => void): void
}

/** Online without an open poll: an agent may work on an answer for a while between two calls. */
export const ONLINE_FOR_MS = 90_000
const TOKEN_BYTES = 16
/** `last_seen` moves with every call; the store hears of it this often. */
const TOUCH_EVERY_MS = 5_000

/** Loads the clients and keeps them in step with the store. */
export async function openRegistry(store: ClientStore, now: () => number): Promise<Registry> {
  const clients = new Map<number, Client>()
  const names = new Map<string, Client>()
  const tokens = new Map<string, ClientToken>()
  const openPolls = new Map<number, number>()
  const touchedAt = new Map<number, number>()
  const listeners: ((clientId: number, tokenHash: string) => void)[] = []
  const serially = serialiser()
  let list: readonly Client[] | null = null

  const loaded = await store.load()
  for (const client of loaded.clients) keep(client)
  for (const token of loaded.tokens) tokens.set(token.hash, token)

  const registry: Registry = {
    all() {
      list ??= [...clients.values()]
      return list
    },
    get: (id) => clients.get(id),
    byName: (name) => names.get(nameKey(name)),
    authenticate(token) {
      const tokenHash = hashToken(token)
      const known = tokens.get(tokenHash)
      if (known === undefined) return undefined
      if (known.expiresAt !== null && known.expiresAt <= now()) return void revoke(known)
      const client = clients.get(known.clientId)
      // The text that is kept anyway: thousands of polls would each keep one of their own.
      return client && { client, tokenHash: known.hash }
    },
    isGood(tokenHash) {
      const known = tokens.get(tokenHash)
      return known !== undefined && (known.expiresAt === null || known.expiresAt > now())
    },
    register: (name, { label, fallback, account = null }) =>
      serially(async () => {
        const token = newToken()
        const tokenHash = hashToken(token)
        const client = await store.create({ name, label, fallback, account, tokenHash, now: now() })
        keep(client)
        tokens.set(tokenHash, { hash: tokenHash, clientId: client.id, expiresAt: null })
        return { client, token }
      }),
    update: (id, patch) =>
      serially(async () => {
        const updated = await store.update(id, patch)
        if (patch.isDefault) for (const other of clients.values()) other.isDefault = false
        const present = clients.get(id)
        // What is only kept lazily is newer here than in the store.
        const merged = present
          ? Object.assign(present, {
              ...updated,
              lastSeen: present.lastSeen,
              stopped: present.stopped,
              echoesCursor: present.echoesCursor,
            })
          : updated
        keep(merged)
        return merged
      }),
    rotate: (id, overlapMs) =>
      serially(async () => {
        const token = newToken()
        const fresh: ClientToken = { hash: hashToken(token), clientId: id, expiresAt: null }
        const old = [...tokens.values()].filter(({ clientId }) => clientId === id)
        const until = now() + overlapMs
        const kept = old
          .filter(({ expiresAt }) => overlapMs > 0 && (expiresAt === null || expiresAt > now()))
          .map((one) => ({ ...one, expiresAt: Math.min(one.expiresAt ?? until, until) }))
        await store.setTokens(id, [fresh, ...kept])
        const client = clients.get(id)
        // Whoever held the old token is gone; the one with the new token has not come yet.
        if (overlapMs === 0 && client) leave(client)
        for (const one of old) if (!kept.some(({ hash }) => hash === one.hash)) revoke(one)
        for (const one of kept) tokens.set(one.hash, one)
        tokens.set(fresh.hash, fresh)
        return token
      }),
    remove: (id) =>
      serially(async () => {
        const died = await store.remove(id, now())
        for (const token of [...tokens.values()]) if (token.clientId === id) revoke(token)
        const client = clients.get(id)
        clients.delete(id)
        list = null
        if (client) names.delete(nameKey(client.name))
        return died
      }),
    seen(client) {
      const cameBack = client.stopped
      client.lastSeen = Math.max(now(), client.createdAt + 1)
      client.stopped = false
      if (cameBack || client.lastSeen - (touchedAt.get(client.id) ?? 0) >= TOUCH_EVERY_MS) touch(client)
    },
    stopped(client) {
      client.lastSeen = Math.max(now(), client.createdAt + 1)
      leave(client)
    },
    pollOpened(client) {
      openPolls.set(client.id, (openPolls.get(client.id) ?? 0) + 1)
    },
    pollClosed(client) {
      const left = (openPolls.get(client.id) ?? 1) - 1
      if (left === 0) openPolls.delete(client.id)
      else openPolls.set(client.id, left)
      if (clients.has(client.id) && !client.stopped) registry.seen(client)
    },
    isOnline(client) {
      // Who never called is told first: of thousands a message may ask.
      if (client.lastSeen <= client.createdAt || client.stopped || !clients.has(client.id)) return false
      return openPolls.has(client.id) || now() - client.lastSeen < ONLINE_FOR_MS
    },
    onlineCount: () => registry.all().filter(registry.isOnline).length,
    onRevoked: (listener) => void listeners.push(listener),
  }
  return registry

  function keep(client: Client): void {
    clients.set(client.id, client)
    list = null
    names.set(nameKey(client.name), client)
  }

  function leave(client: Client): void {
    client.stopped = true
    touch(client)
  }

  function touch({ id, lastSeen, stopped }: Client): void {
    touchedAt.set(id, lastSeen)
    store.touch([{ id, lastSeen, stopped }])
  }

  function revoke(token: ClientToken): void {
    if (!tokens.delete(token.hash)) return
    for (const listener of listeners) listener(token.clientId, token.hash)
  }
}

/** The client of that name, or an error that says so. */
export function clientNamed(registry: Registry, name: string): Client {
  const client = registry.byName(name)
  if (client === undefined)
    throw new AppError('not_found', `There is no client named "${name.slice(0, 64)}"; GET /hub/clients lists them.`)
  return client
}

/** Runs what it is given one after the other, so that two changes of one client cannot interleave. */
function serialiser(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work, work)
    last = result.catch(() => undefined)
    return result
  }
}

function nameKey(name: string): string {
  return name.trim().normalize('NFC').toLowerCase()
}

function newToken(): string {
  return `vhub_${randomBytes(TOKEN_BYTES).toString('hex')}`
}

function hashToken(token: string): string {
  return hash('sha256', token, 'hex')
}
