/** An answer that is no success. */
export class ApiError extends Error {
  readonly status: number
  readonly details: Record<string, unknown>

  constructor(status: number, message: string, details: Record<string, unknown> = {}) {
    super(message)
    this.status = status
    this.details = details
  }
}

export interface CallOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** One call of the service that gave us this page. Fails with an error whose text can be shown. */
export async function request(path: string, { method = 'GET', body, headers, signal }: CallOptions = {}) {
  const response = await fetch(path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    cache: 'no-cache',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(0, 'There is no answer. Is it still running?')
  })
  if (response.ok) return response
  const answer = await response.json().catch(() => null)
  throw new ApiError(
    response.status,
    answer?.error?.message ?? `The answer was ${response.status}.`,
    answer?.error?.details ?? {},
  )
}

/** The answer as data; null where it has no body. The shape is what our own service promises. */
export async function call<T>(path: string, options?: CallOptions): Promise<T> {
  const response = await request(path, options)
  const text = await response.text()
  return JSON.parse(text === '' ? 'null' : text)
}

/** What to show of anything that was thrown. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
