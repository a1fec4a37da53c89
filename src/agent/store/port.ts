import type {
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

/** What the agent server keeps. In memory, or durable: then a promise that resolves after a write resolves after it is on disk. */
export interface AgentStore {
  readonly sessions: SessionStore
  readonly log: SessionLog
  readonly runs: RunStore
  close(): Promise<void>
}

export interface SessionStore {
  /** Keeps a session; with a key that is known: the earlier one if it is still there (same body), or `key_reused` (another body). */
  create(session: Session, receipt: Receipt | null): Promise<Session>
  get(id: string): Promise<Session | null>
  /** Newest first; after `cursor` (a session id) when given. */
  list(page: { limit: number | null; cursor: string | null }): Promise<Session[]>
  update(id: string, patch: { title?: string | null; takenSeq?: number }): Promise<Session | null>
  /** Forgets it with its log, transcript and runs. False when there was none. */
  remove(id: string): Promise<boolean>
  count(): Promise<number>
}

/** One log per session. `append` is the only way to change what a session tells; it writes before anyone is told. */
export interface SessionLog {
  /**
   * Adds events, transcript messages and changes of state in one step. Fails with `fenced` when `generation` is no longer
   * the session's newest, with `not_found` when the session has gone. Returns the newest seq.
   */
  append(sessionId: string, generation: number, entry: LogEntry): Promise<number>
  /** Events after `afterSeq`, oldest first. Never waits. */
  read(sessionId: string, afterSeq: number, limit: number): Promise<StoredEvent[]>
  /** What there is to read; null for an unknown session. `oldest` is `newest + 1` when the log is empty. */
  bounds(sessionId: string): Promise<{ oldest: number; newest: number } | null>
  transcript(sessionId: string): Promise<Message[]>
  /** Forgets events up to `seq`. The transcript stays. */
  trim(sessionId: string, seq: number): Promise<void>
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
   * busy and `whenBusy: 'refuse'` it fails with `session_busy` (details: active_run_id); with `'enqueue'` it is queued,
   * `maxQueued` at most (`queue_full`). A known key gives the first receipt again, or `key_reused` for another body.
   */
  admit(run: Run, options: AdmitOptions): Promise<Admission>
  get(sessionId: string, runId: string): Promise<Run | null>
  list(sessionId: string): Promise<Run[]>
  /** Takes the oldest queued run and makes it the active one; null when none waits. */
  next(sessionId: string, now: number): Promise<Run | null>
  /** A new owner's generation, greater than any before. Appends with an older one fail. */
  fence(sessionId: string): Promise<number>
  /** Sessions that work, wait, or have queued runs: for the start after a crash, and for expiring plans. */
  unfinished(): Promise<Session[]>
}

export interface AdmitOptions {
  receipt: Receipt | null
  whenBusy: 'refuse' | 'enqueue'
  /** 16 when absent. */
  maxQueued?: number
}

export interface Admission {
  run: Run
  /** It is the answer to an earlier call with the same key. */
  repeated: boolean
}

/** A caller's own id for a call, so that a repetition is found. */
export interface Receipt {
  /** Key, API key and path, hashed. */
  key: string
  bodyHash: string
  now: number
}
