import { sseParser } from '../../../src/kit/sse-parser.ts'
import { ApiError, type CallOptions, call, request } from '../shared/api.ts'
import type { RunEvent } from './types.ts'

const KEY = 'switchboard-agent-key'
const RETRY_MS = 1_000
const GONE = 410
const NOT_FOUND = 404
const UNAUTHORIZED = 401

/** The key of this tab: kept until the tab is closed, and sent as a header only, so that no other site can use it. */
export function keyHeaders(): Record<string, string> {
  const key = sessionStorage.getItem(KEY)
  return key === null ? {} : { 'x-api-key': key }
}

export function keepKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, key)
}

/** One call with the key. */
export function ask<T>(path: string, options: CallOptions = {}): Promise<T> {
  return call<T>(path, { ...options, headers: { ...keyHeaders(), ...options.headers } })
}

/**
 * Every event of a session from its first on, until `signal` aborts; a line that breaks is taken up again after the last
 * event that came. `onEvents` gets what came together.
 */
export async function follow(
  sessionId: string,
  {
    onEvents,
    onLine,
    onGone,
    signal,
  }: { onEvents: (events: RunEvent[]) => void; onLine: (up: boolean) => void; onGone: () => void; signal: AbortSignal },
): Promise<void> {
  let after = 0
  while (!signal.aborted) {
    try {
      await read(await open(), (events) => {
        after = events.at(-1)?.id ?? after
        onEvents(events)
      })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && error.status === NOT_FOUND) return onGone()
      if (error instanceof ApiError && error.status === UNAUTHORIZED) return
      // The beginning is no longer kept: what is kept is shown.
      if (error instanceof ApiError && error.status === GONE) after = Math.max(0, Number(error.details.oldest ?? 1) - 1)
    }
    if (signal.aborted) return
    onLine(false)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }

  async function open(): Promise<Response> {
    const path = `/sessions/${sessionId}/events?after=${after}&extended=1`
    const response = await request(path, { headers: keyHeaders(), signal })
    onLine(true)
    return response
  }
}

async function read(response: Response, onEvents: (events: RunEvent[]) => void): Promise<void> {
  let events: RunEvent[] = []
  const parser = sseParser({
    onEvent: ({ id, event, data }) => void events.push({ id: Number(id), name: event, data: JSON.parse(data) }),
  })
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  for (let chunk = await chunks?.read(); chunk !== undefined && !chunk.done; chunk = await chunks?.read()) {
    parser.feed(chunk.value)
    if (events.length > 0) onEvents(events)
    events = []
  }
}
