import type { Static, TSchema } from 'typebox'
import { type Backoff, backoff } from '../kit/retry.ts'
import { type SseMessage, sseParser } from '../kit/sse-parser.ts'
import type { EVENT_SCHEMAS, EXTENDED_EVENT_SCHEMAS } from '../wire/agent.ts'
import {
  AgentClientError,
  type FetchAnswer,
  mayPass,
  notAnAgent,
  type Reach,
  reach,
  refusal,
  unreachable,
} from './agent-calls.ts'
import { type Line, watchedLine } from './watched-line.ts'

type Payloads<T extends Record<string, TSchema>> = { [K in keyof T]: Static<T[K]> }

/** The payloads of events, by name. */
export type EventData = Payloads<typeof EVENT_SCHEMAS> & Payloads<typeof EXTENDED_EVENT_SCHEMAS>

/** An event of a session: its number in the session's log, its name, its payload. */
export type AgentEvent = { [K in keyof EventData]: { id: number; event: K; data: EventData[K] } }[keyof EventData]

export interface EventsOptions {
  /** Start after this event; with the session's first one when absent. */
  after?: number
  /** End with the first `done`. */
  untilDone?: boolean
  /** More kinds of events: `run_started`, `usage`, … */
  extended?: boolean
  /** Ends the iteration, without an error. */
  signal?: AbortSignal
}

/** How a reader holds on. */
export interface Patience {
  /** A connection on which nothing comes for so long is made anew; the server says something every 15 s. */
  idleMs: number
  /** How long the server may be away before it is given up. */
  patienceMs: number
  now: () => number
  pause: (ms: number, signal?: AbortSignal) => Promise<void>
  random: () => number
}

const FIRST_RETRY_MS = 1_000
const MOST_RETRY_MS = 30_000
const NAMES: Record<keyof EventData, true> = {
  message: true,
  partial_message: true,
  tool_call: true,
  tool_result: true,
  plan_proposed: true,
  error: true,
  done: true,
  run_started: true,
  plan_decided: true,
  usage: true,
  compaction: true,
  tool_progress: true,
}

/** Where a reader is; outlives its connections. */
interface Place {
  path: string
  last: number
  retryMs: number
  heardAt: number
}

/**
 * A session's events, each exactly once and in order, however often the connection breaks: it is made again after a
 * pause, with the number of the last event that was read. Throws an `AgentClientError` where coming back cannot help
 * (401, 404, 410, …) and when the server has been away for too long.
 */
export async function* followEvents(
  to: Reach,
  sessionId: string,
  { after = 0, untilDone = false, extended = false, signal }: EventsOptions,
  patience: Patience,
): AsyncGenerator<AgentEvent, void, undefined> {
  const query = `after=${after}${untilDone ? '&until=done' : ''}${extended ? '&extended=1' : ''}`
  const path = `/sessions/${encodeURIComponent(sessionId)}/events?${query}`
  const place: Place = { path, last: after, retryMs: FIRST_RETRY_MS, heardAt: patience.now() }
  const pauses = pausesOf(patience, signal)
  while (!signal?.aborted) {
    const line = watchedLine(patience.idleMs, signal)
    let failure: unknown
    try {
      const answer = await open(to, place, line)
      if (answer === null) return
      pauses.reset()
      for await (const event of readEvents(to, answer, place, line, patience.now)) {
        yield event
        if (untilDone && event.event === 'done') return
      }
    } catch (error) {
      if (signal?.aborted) return
      failure = line.isIdle() ? unreachable(to.url, error) : error
      if (!mayPass(failure) || patience.now() - place.heardAt > patience.patienceMs) throw failure
    } finally {
      line.close()
    }
    await pauses.wait(place.retryMs, failure)
  }
}

/** Pauses between tries, growing until something succeeds; never shorter than the server asked for. */
export function pausesOf({ pause, random }: Pick<Patience, 'pause' | 'random'>, signal: AbortSignal | undefined) {
  let steps: Backoff | null = null
  return {
    reset() {
      steps = null
    },
    async wait(firstMs: number, failure: unknown): Promise<void> {
      steps ??= backoff({ firstMs, mostMs: Math.max(firstMs, MOST_RETRY_MS), random })
      const askedMs = failure instanceof AgentClientError ? (failure.retryAfterMs ?? 0) : 0
      await pause(Math.max(askedMs, steps.next()), signal)
    },
  }
}

/** The stream, or null when nothing is left to come. */
async function open(to: Reach, { path, last }: Place, { signal }: Line): Promise<FetchAnswer | null> {
  const headers = { accept: 'text/event-stream', 'last-event-id': String(last) }
  const answer = await reach(to, { method: 'GET', path, headers, signal })
  if (answer.status === 204) return null
  if (!answer.ok) throw refusal(answer, await answer.text().catch(() => ''))
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) throw notAnAgent(to.url, answer.status)
  return answer
}

async function* readEvents(to: Reach, answer: FetchAnswer, place: Place, line: Line, now: () => number) {
  const ready: SseMessage[] = []
  const parser = sseParser({
    onEvent: (message) => void ready.push(message),
    onRetry(ms) {
      place.retryMs = ms
    },
  })
  const decoder = new TextDecoder()
  const chunks = answer.body?.[Symbol.asyncIterator]()
  for (;;) {
    line.watch()
    const chunk = await chunks?.next().catch((error: unknown) => {
      throw unreachable(to.url, error)
    })
    // Not while the events are being worked on: that may take its time.
    line.rest()
    if (chunk === undefined || chunk.done) return
    place.heardAt = now()
    parser.feed(decoder.decode(chunk.value, { stream: true }))
    for (const message of ready.splice(0)) {
      const event = eventOf(to, message)
      if (event.id <= place.last) continue
      place.last = event.id
      // A kind that is newer than this client says nothing to its user.
      if (isKnown(event)) yield event
    }
    place.heardAt = now()
  }
}

function eventOf(to: Reach, { id, event, data }: SseMessage): { id: number; event: string; data: unknown } {
  try {
    if (!/^\d{1,15}$/.test(id)) throw new Error('an event has no number')
    return { id: Number(id), event, data: JSON.parse(data) }
  } catch (error) {
    throw notAnAgent(to.url, 200, error)
  }
}

function isKnown(event: { id: number; event: string; data: unknown }): event is AgentEvent {
  return Object.hasOwn(NAMES, event.event) && typeof event.data === 'object' && event.data !== null
}
