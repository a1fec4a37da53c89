import { callHub } from './hub-call.ts'

export { HubClientError } from './hub-call.ts'

/** A client of the hub's administration. Calls that fail throw a `HubClientError`. */
export interface HubAdmin {
  register(name: string, options?: NewClient): Promise<RegisteredClient>
  clients(): Promise<ClientList>
  client(name: string): Promise<ClientDetails>
  patch(name: string, change: ClientChange): Promise<ClientDetails>
  remove(name: string): Promise<void>
  /** A new token; the old ones stay good for `overlapSeconds`. */
  rotate(name: string, overlapSeconds?: number): Promise<{ name: string; token: string; overlap_seconds: number }>
  /** What came, where it went and why, newest first. */
  messages(query?: ListQuery): Promise<HubMessage[]>
  deadLetters(query?: ListQuery): Promise<{ dead_letters: DeadLetter[]; total: number }>
  /** Puts letters into their clients' queues again, or into that of `client`. */
  replayLetters(ids: readonly number[], client?: string): Promise<{ replayed: number[]; failed: FailedReplay[] }>
  discardLetters(ids: readonly number[]): Promise<{ discarded: number[] }>
  health(): Promise<HubHealth>
}

/** A client of the hub's relay: what an AI client does, in the spec's shape. */
export interface RelayClient {
  /** Waits for messages, up to half a minute; an empty list means: ask again. */
  getUpdates(signal?: AbortSignal): Promise<IncomingMessage[]>
  sendMessage(contextToken: string, content: string): Promise<void>
  sendTyping(contextToken: string): Promise<void>
}

export interface NewClient {
  label?: string
  fallback?: boolean
  /** The bot account whose messages it gets; absent or null: those of all. */
  account?: string | null
}

export interface RegisteredClient {
  name: string
  label: string
  token: string
  created_at: string
}

export interface ClientSummary {
  name: string
  label: string
  status: 'online' | 'offline'
  last_seen: string
  queue_size: number
}

export interface ClientDetails extends ClientSummary {
  created_at: string
  default: boolean
  fallback: boolean
  passthrough: string[]
  account: string | null
}

export interface ClientChange {
  label?: string
  default?: boolean
  fallback?: boolean
  passthrough?: string[]
  account?: string | null
}

export interface ClientList {
  clients: ClientSummary[]
  total: number
  online: number
}

/** Which messages or letters; `before` is the id of one, to page on. */
export interface ListQuery {
  client?: string | undefined
  user?: string | undefined
  state?: string | undefined
  reason?: string | undefined
  before?: number | undefined
  limit?: number | undefined
}

export interface HubMessage {
  id: number
  from_user: string
  received_at: string
  state: string
  reason: string
  content: string | null
  msg_type: string | null
  deliveries: { client: string; state: string; failures: number }[]
}

export interface DeadLetter {
  id: number
  client: string | null
  message_id: number
  reason: string
  from_user: string
  content: string | null
  created_at: string
}

export interface FailedReplay {
  id: number
  code: string
  message: string
}

export interface HubHealth {
  status: 'ok' | 'degraded'
  upstream: 'connected' | 'reconnecting'
  clients: { online: number; total: number }
  upstream_detail: { account: string; state: string; reason: string; since: string; action: string | null }
}

export interface IncomingMessage {
  context_token: string
  from_user: string
  content: string
  msg_type: string
  timestamp: number
}

/** Talks to the administration of the hub at `url`. */
export function hubAdmin({ url, adminToken }: { url: string; adminToken?: string | undefined }): HubAdmin {
  const refused =
    adminToken === undefined
      ? `The hub at ${url} wants its admin token; set RELAY_ADMIN_TOKEN to it.`
      : `The hub at ${url} does not take this admin token; check RELAY_ADMIN_TOKEN.`
  const get = <T>(path: string) => callHub<T>(url, path, { token: adminToken, refused })
  const send = <T>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
    callHub<T>(url, path, { method, token: adminToken, refused, ...(body === undefined ? {} : { body }) })
  return {
    register: (name, options = {}) => send('POST', '/hub/register', { name, ...options }),
    clients: () => get('/hub/clients'),
    client: (name) => get(clientPath(name)),
    patch: (name, change) => send('PATCH', clientPath(name), change),
    async remove(name) {
      await send('DELETE', clientPath(name))
    },
    rotate: (name, overlapSeconds = 0) =>
      send('POST', `${clientPath(name)}/rotate`, { overlap_seconds: overlapSeconds }),
    async messages(query = {}) {
      return (await get<{ messages: HubMessage[] }>(`/hub/messages${queryOf(query)}`)).messages
    },
    deadLetters: (query = {}) => get(`/hub/dead-letters${queryOf(query)}`),
    async replayLetters(ids, client) {
      const body = { ids, ...(client === undefined ? {} : { client }) }
      const answer = await send<{ replayed: number[]; failed?: FailedReplay[] }>(
        'POST',
        '/hub/dead-letters/replay',
        body,
      )
      return { replayed: answer.replayed, failed: answer.failed ?? [] }
    },
    discardLetters: (ids) => send('POST', '/hub/dead-letters/discard', { ids }),
    health: () => get('/health'),
  }
}

/** Talks to the hub at `url` as the client that `token` was issued to. */
export function relayClient({ url, token }: { url: string; token: string }): RelayClient {
  const post = <T>(path: string, body: object, signal?: AbortSignal) =>
    callHub<T>(url, `/relay/bot/${path}`, { token, body: { token, ...body }, signal })
  return {
    async getUpdates(signal) {
      return (await post<{ messages: IncomingMessage[] }>('getupdates', {}, signal)).messages
    },
    async sendMessage(contextToken, content) {
      await post('sendmessage', { context_token: contextToken, content, msg_type: 'text' })
    },
    async sendTyping(contextToken) {
      await post('sendtyping', { context_token: contextToken })
    },
  }
}

function clientPath(name: string): string {
  return `/hub/clients/${encodeURIComponent(name)}`
}

function queryOf(query: ListQuery): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
  return given.size === 0 ? '' : `?${given}`
}
