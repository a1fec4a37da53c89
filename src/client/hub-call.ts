import { AppError, type AppErrorOptions } from '../kit/errors.ts'

/**
 * Why a call of the hub did not succeed. `code` is `hub_unreachable`, `hub_refused` or `not_a_hub`; `status` is null
 * where no answer came.
 */
export class HubClientError extends AppError {
  readonly status: number | null

  constructor(code: string, message: string, status: number | null, options: AppErrorOptions = {}) {
    super(code, message, options)
    this.name = 'HubClientError'
    this.status = status
  }
}

/** One call. */
export interface HubCall {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  token?: string | undefined
  body?: object
  signal?: AbortSignal | undefined
  /** What to say when the token is refused, where the hub's own words would not help. */
  refused?: string
}

/** What the hub answers, read by `read`; as plain JSON when it is absent. */
export async function callHub<T>(
  url: string,
  path: string,
  call: HubCall,
  read: (text: string) => T = JSON.parse,
): Promise<T> {
  const { status, ok, retryAfterMs, text } = await reach(url, path, call)
  if (status === 401 && call.refused !== undefined) throw new HubClientError('hub_refused', call.refused, status)
  if (!ok) {
    const { message, details } = refusal(text)
    throw new HubClientError('hub_refused', message ?? `The hub answered ${status}.`, status, {
      details,
      ...(retryAfterMs === null ? {} : { retryAfterMs }),
    })
  }
  try {
    return read(text === '' ? '{}' : text)
  } catch (cause) {
    throw new HubClientError('not_a_hub', `What answers at ${url} is not a hub; name one with --hub.`, status, {
      cause,
    })
  }
}

async function reach(
  url: string,
  path: string,
  { token, body, signal, method = body === undefined ? 'GET' : 'POST' }: HubCall,
): Promise<{ status: number; ok: boolean; retryAfterMs: number | null; text: string }> {
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    const retryAfterMs = seconds >= 0 ? seconds * 1000 : null
    return { status: response.status, ok: response.ok, retryAfterMs, text: await response.text() }
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new HubClientError(
      'hub_unreachable',
      `No hub answers at ${url}; start one with "switchboard hub", or name another with --hub.`,
      null,
      { cause },
    )
  }
}

function refusal(text: string): { message: string | null; details: Record<string, unknown> } {
  try {
    const body: { error?: { message?: string; details?: object }; errmsg?: string } = JSON.parse(text)
    const details = body.error === undefined ? body : body.error.details
    return { message: body.error?.message ?? body.errmsg ?? null, details: { ...details } }
  } catch {
    return { message: null, details: {} }
  }
}
