import { AppError } from '../kit/errors.ts'

/** A client of the hub's administration. */
export interface HubAdmin {
  register(name: string, options?: { label?: string; fallback?: boolean }): Promise<RegisteredClient>
  clients(): Promise<ClientList>
}

/** A client of the hub's relay: what an AI client does, in the spec's shape. */
export interface RelayClient {
  /** Waits for messages, up to half a minute; an empty list means: ask again. */
  getUpdates(signal?: AbortSignal): Promise<IncomingMessage[]>
  sendMessage(contextToken: string, content: string): Promise<void>
  sendTyping(contextToken: string): Promise<void>
}

export interface RegisteredClient {
  name: string
  label: string
  token: string
  created_at: string
}

export interface ClientList {
  clients: { name: string; label: string; status: 'online' | 'offline'; last_seen: string; queue_size: number }[]
  total: number
  online: number
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
  const ask = <T>(path: string, body?: object) =>
    call<T>(url, path, { token: adminToken, refused, ...(body === undefined ? {} : { body }) })
  return {
    register: (name, options = {}) => ask('/hub/register', { name, ...options }),
    clients: () => ask('/hub/clients'),
  }
}

/** Talks to the hub at `url` as the client that `token` was issued to. */
export function relayClient({ url, token }: { url: string; token: string }): RelayClient {
  const post = <T>(path: string, body: object, signal?: AbortSignal) =>
    call<T>(url, `/relay/bot/${path}`, { token, body: { token, ...body }, signal })
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

interface Call {
  token?: string | undefined
  body?: object
  signal?: AbortSignal | undefined
  /** What to say when the token is refused, where the hub's own words would not help. */
  refused?: string
}

async function call<T>(url: string, path: string, { token, body, signal, refused }: Call): Promise<T> {
  let response: Response
  try {
    response = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new AppError(
      'hub_unreachable',
      `No hub answers at ${url}; start one with "switchboard hub", or name another with --hub.`,
      { cause: error },
    )
  }
  const text = await response.text()
  if (response.status === 401 && refused !== undefined) throw new AppError('hub_refused', refused)
  if (!response.ok) throw new AppError('hub_refused', refusal(text) ?? `The hub answered ${response.status}.`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new AppError('not_a_hub', `What answers at ${url} is not a hub; name one with --hub.`, { cause: error })
  }
}

function refusal(text: string): string | null {
  try {
    const body: { error?: { message?: string }; errmsg?: string } = JSON.parse(text)
    return body.error?.message ?? body.errmsg ?? null
  } catch {
    return null
  }
}
