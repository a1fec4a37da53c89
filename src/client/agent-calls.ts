import { AppError, type AppErrorOptions } from '../kit/errors.ts'
import { watchedLine } from './watched-line.ts'

/**
 * Why a call did not succeed. `code` is the server's own (`not_found`, `session_busy`, `cursor_expired`, …), or
 * `agent_unreachable` and `not_an_agent`, which this client says by itself; `status` is null where no answer came.
 */
export class AgentClientError extends AppError {
  readonly status: number | null

  constructor(code: string, message: string, status: number | null, options: AppErrorOptions = {}) {
    super(code, message, options)
    this.name = 'AgentClientError'
    this.status = status
  }
}

/** The part of `fetch` that is used. */
export type Fetch = (url: string, init: FetchOptions) => Promise<FetchAnswer>

export interface FetchOptions {
  method: string
  headers: Record<string, string>
  body?: string
  signal?: AbortSignal
}

export interface FetchAnswer {
  readonly status: number
  readonly ok: boolean
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | null
  text(): Promise<string>
}

/** One call. */
export interface AgentCall {
  method: string
  path: string
  body?: object
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
}

/** Where the server is, and how it is reached. */
export interface Reach {
  url: string
  apiKey: string | undefined
  fetch: Fetch
}

/** The answer to a call, whatever its status; an abort of the caller's is thrown as it is. */
export async function reach({ url, apiKey, fetch }: Reach, call: AgentCall): Promise<FetchAnswer> {
  const { method, path, body, headers = {}, signal } = call
  try {
    return await fetch(`${url}${path}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    throw signal?.aborted ? error : unreachable(url, error)
  }
}

/** A call's JSON, and its headers. No answer within `waitMs` counts as none. */
export async function ask<T>(
  to: Reach,
  { signal, ...call }: AgentCall,
  waitMs: number | null,
): Promise<{ value: T; headers: { get(name: string): string | null } }> {
  const line = watchedLine(waitMs, signal)
  try {
    const answer = await reach(to, { ...call, signal: line.signal })
    const text = await answer.text()
    if (!answer.ok) throw refusal(answer, text)
    return { value: text === '' ? undefined : read(to.url, answer.status, text), headers: answer.headers }
  } catch (error) {
    if (signal?.aborted || error instanceof AgentClientError) throw error
    throw unreachable(to.url, error)
  } finally {
    line.close()
  }
}

function read(url: string, status: number, text: string) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw notAnAgent(url, status, error)
  }
}

/** What the server said, as an error. */
export function refusal({ status, headers }: FetchAnswer, text: string): AgentClientError {
  const { code, message, details } = errorOf(text)
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return new AgentClientError(code ?? `http_${status}`, message ?? `The agent server answered ${status}.`, status, {
    ...(details === undefined ? {} : { details }),
    ...(seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {}),
  })
}

/** Whether the same call may succeed later, without anybody doing something about it. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof AgentClientError) || error.code === 'not_an_agent') return false
  return error.status === null || [408, 429, 502, 503, 504].includes(error.status)
}

/** Nobody answers, or the answer broke off. */
export function unreachable(url: string, cause: unknown): AgentClientError {
  return new AgentClientError(
    'agent_unreachable',
    `No agent server answers at ${url}; start one with "switchboard agent", or check the address.`,
    null,
    { cause },
  )
}

/** Somebody answers, but not in the words of an agent server. */
export function notAnAgent(url: string, status: number, cause?: unknown): AgentClientError {
  return new AgentClientError('not_an_agent', `What answers at ${url} is not an agent server.`, status, { cause })
}

function errorOf(text: string): { code?: string; message?: string; details?: Record<string, unknown> } {
  try {
    const body: { error?: { code?: string; message?: string; details?: Record<string, unknown> } } | null =
      JSON.parse(text)
    return body?.error ?? {}
  } catch {
    return {}
  }
}
