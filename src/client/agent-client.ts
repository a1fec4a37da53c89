import type { Static } from 'typebox'
import { sleep } from '../kit/retry.ts'
import type * as wire from '../wire/agent.ts'
import { type AgentCall, AgentClientError, ask, type Fetch, mayPass, type Reach } from './agent-calls.ts'
import { type AgentEvent, type EventsOptions, followEvents, type Patience, pausesOf } from './agent-events.ts'
import { patientFetch } from './patient-fetch.ts'

export type { AgentEvent, EventData, EventsOptions } from './agent-events.ts'
export { AgentClientError }

export type SessionCreated = Static<typeof wire.SessionCreated>
export type SessionSummary = Static<typeof wire.SessionSummary>
export type SessionDetails = Static<typeof wire.SessionDetails>
export type RunReceipt = Static<typeof wire.RunAccepted>
export type RunResult = Static<typeof wire.RunResult>
export type Run = Static<typeof wire.WireRun>
export type Tool = Static<typeof wire.WireTool>
export type NewSession = Static<typeof wire.CreateSessionBody>
export type ForkedSession = Static<typeof wire.ForkSessionBody>
export type SessionForked = Static<typeof wire.SessionForked>
export type PlanAnswer = Static<typeof wire.PlanBody>
type RunBody = Omit<Static<typeof wire.SessionRunBody>, 'goal' | 'message' | 'content'>
type AloneBody = Omit<Static<typeof wire.StatelessRunBody>, 'goal' | 'message' | 'content'>

/** What most calls take. */
export interface CallOptions {
  signal?: AbortSignal
}

/** A call that makes something; repeated with the same key and body it is made once. */
export interface OnceOptions extends CallOptions {
  idempotencyKey?: string
}

export interface RunAndFollowOptions extends RunBody, OnceOptions {
  extended?: boolean
  /** Called once the run is accepted, before its first event. */
  onAccepted?: (receipt: RunReceipt) => void
}

/** A client of the agent server. Calls that fail throw an `AgentClientError`. */
export interface AgentClient {
  createSession(session?: NewSession, options?: OnceOptions): Promise<SessionCreated>
  /** All sessions, newest first; with `limit` a page of them, and `next` to ask for the one after it. */
  listSessions(
    page?: CallOptions & { limit?: number; cursor?: string },
  ): Promise<{ sessions: SessionSummary[]; next: string | null }>
  /** A session with its transcript. */
  session(sessionId: string, options?: CallOptions): Promise<SessionDetails>
  rename(sessionId: string, title: string, options?: CallOptions): Promise<SessionSummary>
  remove(sessionId: string, options?: CallOptions): Promise<void>
  /** A new session with the transcript of this one, or its first `messages`. */
  fork(sessionId: string, body?: ForkedSession, options?: OnceOptions): Promise<SessionForked>
  /** Starts a run; its events come from `events`, after the number in `events_url`, among those of other runs. */
  run(sessionId: string, goal: string, options?: RunBody & OnceOptions): Promise<RunReceipt>
  /** Starts a run, once even where the answer was lost and the call was repeated, and gives its events up to its `done`. */
  runAndFollow(
    sessionId: string,
    goal: string,
    options?: RunAndFollowOptions,
  ): AsyncGenerator<AgentEvent, void, undefined>
  /** Ends the active run now; false when there was none. */
  cancel(sessionId: string, options?: CallOptions): Promise<boolean>
  runs(sessionId: string, options?: CallOptions): Promise<Run[]>
  decidePlan(
    sessionId: string,
    answer: PlanAnswer,
    options?: CallOptions,
  ): Promise<{ session_id: string; plan_id: string; run_id: string; decision: 'approve' | 'reject' }>
  /** A session's events, each once and in order; comes back by itself when the connection breaks. */
  events(sessionId: string, options?: EventsOptions): AsyncGenerator<AgentEvent, void, undefined>
  tools(options?: CallOptions): Promise<Tool[]>
  health(options?: CallOptions): Promise<{ status: string; model: string }>
  /** A run without a session; aborting it cancels the run. */
  statelessRun(goal: string, options?: AloneBody & CallOptions): Promise<RunResult>
}

export interface AgentClientOptions extends Partial<Patience> {
  /** Such as `http://127.0.0.1:3000`. */
  url: string
  /** Sent as `X-API-Key`. */
  apiKey?: string | undefined
  fetch?: Fetch
}

const IDLE_MS = 45_000
const PATIENCE_MS = 120_000
const FIRST_RETRY_MS = 500

/** Talks to the agent server at `url`. */
export function agentClient({ url, apiKey, fetch, ...holding }: AgentClientOptions): AgentClient {
  const to: Reach = { url: url.replace(/\/+$/, ''), apiKey, fetch: fetch ?? globalThis.fetch }
  const patience: Patience = {
    idleMs: IDLE_MS,
    patienceMs: PATIENCE_MS,
    now: Date.now,
    pause: sleep,
    random: Math.random,
    ...holding,
  }
  const value = async <T>(call: AgentCall) => (await ask<T>(to, call, patience.idleMs)).value
  const get = <T>(path: string, { signal }: CallOptions = {}) => value<T>({ method: 'GET', path, signal })
  const post = <T>(path: string, body: object, { signal, idempotencyKey }: OnceOptions = {}) =>
    value<T>({ method: 'POST', path, body, signal, headers: keyHeader(idempotencyKey) })

  const client: AgentClient = {
    createSession: (session = {}, options) => post('/sessions', session, options),
    async listSessions({ limit, cursor, signal } = {}) {
      const query = new URLSearchParams()
      if (limit !== undefined) query.set('limit', String(limit))
      if (cursor !== undefined) query.set('cursor', cursor)
      const { value: sessions, headers } = await ask<SessionSummary[]>(
        to,
        {
          method: 'GET',
          path: query.size === 0 ? '/sessions' : `/sessions?${query}`,
          signal,
        },
        patience.idleMs,
      )
      return { sessions, next: nextCursor(headers.get('link')) }
    },
    session: (id, options) => get(pathOf(id), options),
    rename: (id, title, { signal } = {}) => value({ method: 'PATCH', path: pathOf(id), body: { title }, signal }),
    remove: (id, { signal } = {}) => value({ method: 'DELETE', path: pathOf(id), signal }),
    fork: (id, body = {}, options) => post(`${pathOf(id)}/fork`, body, options),
    run: (id, goal, { signal, idempotencyKey, ...more } = {}) =>
      post(
        `${pathOf(id)}/run`,
        { goal, ...more },
        { ...(signal && { signal }), ...(idempotencyKey && { idempotencyKey }) },
      ),
    async cancel(id, options) {
      return (await post<{ cancelled: boolean }>(`${pathOf(id)}/cancel`, {}, options)).cancelled
    },
    async runs(id, options) {
      return (await get<{ runs: Run[] }>(`${pathOf(id)}/runs`, options)).runs
    },
    decidePlan: (id, answer, options) => post(`${pathOf(id)}/plan`, answer, options),
    events: (id, options = {}) => followEvents(to, id, options, patience),
    runAndFollow,
    tools: (options) => get('/tools', options),
    health: (options) => get('/health', options),
    async statelessRun(goal, { signal, ...more } = {}) {
      const call = { method: 'POST', path: '/run', body: { goal, ...more }, signal }
      return (await ask<RunResult>({ ...to, fetch: fetch ?? patientFetch }, call, null)).value
    },
  }
  return client

  async function* runAndFollow(
    sessionId: string,
    goal: string,
    { extended = false, onAccepted, signal, ...order }: RunAndFollowOptions = {},
  ): AsyncGenerator<AgentEvent, void, undefined> {
    const receipt = await runOnce(sessionId, goal, { idempotencyKey: crypto.randomUUID(), ...order }, signal)
    if (receipt === null) return
    onAccepted?.(receipt)
    const after = Number(/[?&]after=(\d+)/.exec(receipt.events_url)?.[1] ?? 0)
    // Not `untilDone`: a run that was queued comes after the `done` of another.
    for await (const event of client.events(sessionId, { after, extended, ...(signal && { signal }) })) {
      if (event.data.run_id !== receipt.run_id) continue
      yield event
      if (event.event === 'done') return
    }
  }

  /** Until there is an answer: the key makes a repetition harmless. Null when the caller aborted. */
  async function runOnce(
    sessionId: string,
    goal: string,
    order: RunBody & OnceOptions,
    signal: AbortSignal | undefined,
  ): Promise<RunReceipt | null> {
    const pauses = pausesOf(patience, signal)
    const startedAt = patience.now()
    while (!signal?.aborted) {
      try {
        return await client.run(sessionId, goal, { ...order, ...(signal && { signal }) })
      } catch (error) {
        if (signal?.aborted) return null
        // A server that is full says so to the caller, who may want to wait or not.
        if (!mayPass(error) || isFull(error) || patience.now() - startedAt > patience.patienceMs) throw error
        await pauses.wait(FIRST_RETRY_MS, error)
      }
    }
    return null
  }
}

function isFull(error: unknown): boolean {
  return error instanceof AgentClientError && error.status === 429
}

function pathOf(sessionId: string): string {
  return `/sessions/${encodeURIComponent(sessionId)}`
}

function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { 'idempotency-key': key }
}

function nextCursor(link: string | null): string | null {
  const target = /<([^>]*)>; *rel="next"/.exec(link ?? '')?.[1]
  return target === undefined ? null : new URL(target, 'http://agent').searchParams.get('cursor')
}
