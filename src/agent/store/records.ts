import { AppError } from '../../kit/errors.ts'
import { eventData } from '../event-data.ts'
import { addUsage, type Message, type Run, type Session, type StoredEvent } from '../model.ts'
import type { AdmitOptions, LogEntry, Receipt } from './port.ts'

const MAX_QUEUED = 16
const RECEIPT_LIFE_MS = 24 * 60 * 60_000

/** What was made under a key. */
export interface KeptReceipt {
  bodyHash: string
  made: string
  at: number
}

/** What a known key stands for; null when it is unknown or too old; `key_reused` for another body. */
export function madeUnder(receipt: Receipt | null, known: KeptReceipt | undefined): string | null {
  if (!receipt || !known || isReceiptOver(known.at, receipt.now)) return null
  if (known.bodyHash === receipt.bodyHash) return known.made
  throw new AppError('key_reused', 'This Idempotency-Key was used for another body; use a new one.')
}

/** The messages of one run; all of them where none is named. */
export function ofRun(messages: readonly Message[], runId: string | undefined): Message[] {
  return messages.filter((message) => runId === undefined || message.runId === runId)
}

export function isReceiptOver(at: number, now: number): boolean {
  return at < oldestReceipt(now)
}

/** Receipts from before this moment are forgotten. */
export function oldestReceipt(now: number): number {
  return now - RECEIPT_LIFE_MS
}

/** The events of an entry as the log keeps them, numbered after `newest`. */
export function storedEvents({ events, runId, now }: LogEntry, newest: number): StoredEvent[] {
  return events.map((event, index) => {
    const seq = newest + index + 1
    return { seq, runId, at: now, type: event.type, data: eventData(event, seq, runId) }
  })
}

/** Changes a session, and its run where that is known, by an entry. */
export function applyEntry(session: Session, run: Run | undefined, entry: LogEntry): void {
  if (entry.session) Object.assign(session, entry.session)
  session.lastActive = entry.now
  if (entry.run === undefined || run === undefined) return
  const { usage, activeMs, ...change } = entry.run
  Object.assign(run, change)
  if (activeMs !== undefined) run.activeMs = activeMs
  if (usage) run.usage = addUsage(run.usage, usage)
  if (usage) session.usage = addUsage(session.usage, usage)
  if (change.status === 'finished') run.finishedAt = entry.now
}

/** Whether nobody works on the session after this entry. */
export function endsWork({ session }: LogEntry): boolean {
  return session !== undefined && session.status !== 'running'
}

/** Makes a run the one that is worked on. `newest` is the log's newest number. */
export function startRun(session: Session, run: Run, newest: number, now: number): void {
  run.status = 'running'
  run.startedAt = now
  run.afterSeq = newest
  session.status = 'running'
  session.activeRunId = run.id
}

/**
 * Accepts a run: at once, or into the queue, in which `queued` wait. Fails with `session_busy` or `queue_full`, and then
 * nothing is changed.
 */
export function acceptRun(
  session: Session,
  run: Run,
  { newest, queued, whenBusy, maxQueued = MAX_QUEUED }: { newest: number; queued: number } & AdmitOptions,
): void {
  const isFree = session.status === 'idle' && queued === 0
  if (!isFree) checkQueue(session, queued, whenBusy, maxQueued)
  run.acceptedSeq = newest
  run.afterSeq = newest
  if (isFree) startRun(session, run, newest, run.createdAt)
  else {
    run.status = 'queued'
    if (whenBusy === 'next') run.ahead = true
  }
  session.turnCount += 1
  session.lastActive = run.createdAt
}

function checkQueue(session: Session, queued: number, whenBusy: AdmitOptions['whenBusy'], maxQueued: number): void {
  if (whenBusy === 'refuse') {
    throw new AppError(
      'session_busy',
      `Session ${session.id} already has a run; wait for its done event, or send on_busy.`,
      { details: { active_run_id: session.activeRunId } },
    )
  }
  if (queued < maxQueued) return
  throw new AppError('queue_full', `${maxQueued} runs wait in this session already; try again when one has ended.`, {
    retryAfterMs: 5_000,
  })
}

/** The run whose turn it is, of those that wait in the order they came: the newest of those put before the others, if any. */
export function firstQueued(queued: readonly Run[]): Run | undefined {
  return queued.findLast(({ ahead }) => ahead) ?? queued[0]
}

/** The transcript up to its first `count` messages as people count them (summaries are not for them), or all of it. */
export function firstMessages(transcript: readonly Message[], count: number | null): Message[] {
  let left = count ?? Number.POSITIVE_INFINITY
  const end = transcript.findIndex(({ covers }) => covers === undefined && left-- <= 0)
  return transcript.slice(0, end === -1 ? undefined : end)
}

/** Fails with `too_many_sessions` when there is no room for another. */
export function checkRoom(count: number, maxSessions: number): void {
  if (count < maxSessions) return
  throw new AppError('too_many_sessions', `There are ${maxSessions} sessions already; delete some.`)
}

/** `bounds` of a log that holds the last `count` events up to `newest`. */
export function logBounds(newest: number, count: number): { oldest: number; newest: number } {
  return { oldest: newest - count + 1, newest }
}

export function fenced(): AppError {
  return new AppError('fenced', 'Another owner has taken this session over.')
}

export function noSession(id: string): AppError {
  return new AppError('not_found', `There is no session ${id}.`)
}

export function unknownCursor(cursor: string): AppError {
  return new AppError(
    'bad_request',
    `There is no session ${cursor.slice(0, 64)} to go on from; start without cursor.`,
    {
      details: { field: 'cursor' },
    },
  )
}
