import type { Claim, Lease } from '../../kit/lease.ts'
import type {
  DecidedPlan,
  FinishReason,
  Message,
  PendingPlan,
  Run,
  RunEvent,
  RunStatus,
  Session,
  SessionStatus,
  StoredEvent,
  Usage,
} from '../model.ts'

/**
 * What the agent server keeps. In memory, or durable: then a promise that resolves after a write resolves after it is on
 * disk. Every write is one step: all of it or nothing, also when the process dies in the middle.
 */
export interface AgentStore {
  readonly sessions: SessionStore
  readonly log: SessionLog
  readonly runs: RunStore
  /** Who works on a session, by its id. `admit`, `next` and `settlePlan` claim in their own step, `append` releases. */
  readonly leases: Lease
  /** How many sessions there are. */
  count(): Promise<number>
  close(): Promise<void>
}

/** What a store refuses to pass. */
export interface StoreLimits {
  /** `too_many_sessions` beyond. */
  maxSessions: number
  /** Events and bytes of a session's log; the oldest go when there are more. The transcript stays. */
  maxLogEvents: number
  maxLogBytes: number
}

export interface SessionStore {
  /** Keeps a session; with a key that is known: the earlier one if it is still there (same body), or `key_reused` (another body). */
  create(session: Session, receipt: Receipt | null): Promise<Session>
  /**
   * Keeps `session` as in `create`, with a copy of the transcript of `fromId`: its first `messages`, or all. Its log is
   * empty. `not_found` when `fromId` has gone.
   */
  fork(
    fromId: string,
    session: Session,
    options: { messages: number | null; receipt: Receipt | null },
  ): Promise<Session>
  get(id: string): Promise<Session | null>
  /** Newest first; after `cursor` (a session id) when given. `bad_request` for a cursor that is no session. */
  list(page: { limit: number | null; cursor: string | null }): Promise<Session[]>
  update(id: string, patch: SessionPatch): Promise<Session | null>
  /** Forgets it with its log, transcript and runs. False when there was none. */
  remove(id: string): Promise<boolean>
}

export interface SessionPatch {
  title?: string | null
  takenSeq?: number
  cancelRunId?: string
}

/** One log per session. `append` is the way to change what a session tells; it writes before anyone is told. */
export interface SessionLog {
  /**
   * Adds events, transcript messages and changes of state in one step. Fails with `fenced` when `claim` is no longer the
   * session's, with `not_found` when the session has gone. An entry that makes the session idle or waiting releases the
   * claim in the same step. Returns the newest seq.
   */
  append(claim: Claim, entry: LogEntry): Promise<number>
  /** Events after `afterSeq`, oldest first, without gaps; the first has a greater number where the log was trimmed. Never waits. */
  read(sessionId: string, afterSeq: number, limit: number): Promise<StoredEvent[]>
  /** What there is to read; null for an unknown session. `oldest` is `newest + 1` when the log is empty. */
  bounds(sessionId: string): Promise<{ oldest: number; newest: number } | null>
  /** All of it; or what one run has added, which is at hand while that run is active, also where the rest is far away. */
  transcript(sessionId: string, runId?: string): Promise<Message[]>
}

/** What happened in one step of a run. */
export interface LogEntry {
  now: number
  runId: string
  events: RunEvent[]
  messages: Message[]
  session?: { status: SessionStatus; activeRunId: string | null; pendingPlan: PendingPlan | null }
  run?: RunChange
}

export interface RunChange {
  status: RunStatus
  finishReason?: FinishReason
  error?: string | null
  /** Used in this step; added to the run's and the session's. */
  usage?: Usage
  activeMs?: number
}

export interface RunStore {
  /**
   * Accepts a run in one step: the run, `turn_count`, `last_active`, and the receipt under its key. With a session that is
   * busy and `whenBusy: 'refuse'` it fails with `session_busy` (details: active_run_id); with `'enqueue'` it is queued, with
   * `'next'` before all that wait; `maxQueued` at most (`queue_full`). A known key gives the first receipt again, or `key_reused` for another body.
   */
  admit(run: Run, options: AdmitOptions): Promise<Admission>
  get(sessionId: string, runId: string): Promise<Run | null>
  list(sessionId: string): Promise<Run[]>
  /** Takes the first queued run of an idle session, makes it the active one and claims the session; null when none waits. */
  next(sessionId: string, now: number): Promise<Started | null>
  /**
   * Ends the wait for a plan in one step, if `planId` still waits: adds the entry, and remembers `decision` (null: nobody
   * decided). An entry that leaves the session running claims it.
   */
  settlePlan(sessionId: string, planId: string, entry: LogEntry, decision: PlanSettlement): Promise<Settled>
  /** Sessions that work, wait, or have queued runs: for the start after a crash, for dead owners, for plans past their time. */
  unfinished(): Promise<Session[]>
}

export interface AdmitOptions {
  receipt: Receipt | null
  whenBusy: 'refuse' | 'enqueue' | 'next'
  /** 16 when absent. */
  maxQueued?: number
}

export type PlanSettlement = DecidedPlan | null

export type Settled = { settled: true; claim: Claim | null } | { settled: false }

/** A run to be worked on, by the holder of the claim. */
export interface Started {
  run: Run
  claim: Claim
}

export interface Admission {
  run: Run
  /** It is the answer to an earlier call with the same key. */
  repeated: boolean
  /** There when the run is to be worked on now. */
  claim: Claim | null
  /** The run that was under way when this one was put into the queue; null for any other. */
  activeRunId: string | null
}

/** A caller's own id for a call, so that a repetition is found. */
export interface Receipt {
  /** Key, API key and path, hashed. */
  key: string
  bodyHash: string
  now: number
}
