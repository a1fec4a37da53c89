import { randomUUID } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep } from '../kit/retry.ts'
import type { LoopResult } from './loop.ts'
import type { FinishReason, Message, PendingPlan, Run, RunEvent } from './model.ts'
import { answerOpenCalls } from './open-calls.ts'
import { ProviderError } from './provider/port.ts'
import type { LogEntry, SessionLog } from './store/port.ts'

/** How a run ended, and with which error. */
export interface Finished {
  type: 'finished'
  reason: FinishReason
  error?: { code: string; message: string }
}

/** Said to who comes with something new while the server ends. */
export function shuttingDown(): AppError {
  return new AppError('shutting_down', 'The server is shutting down; try again shortly.', { retryAfterMs: 2_000 })
}

/** The ending of a run that threw: what a person is told of it, and the log if nobody foresaw it. */
export function failureOf(error: unknown, log: Log, run: Pick<Run, 'id'>): Finished {
  if (error instanceof ProviderError) {
    return {
      type: 'finished',
      reason: 'ProviderStop',
      error: { code: `provider_${error.kind}`, message: error.message },
    }
  }
  if (error instanceof AppError)
    return { type: 'finished', reason: 'ProviderStop', error: { code: error.code, message: error.message } }
  log.error('a run failed unexpectedly', { runId: run.id, error })
  return {
    type: 'finished',
    reason: 'Interrupted',
    error: { code: 'internal', message: `Something went wrong in the server; its log says more under ${run.id}.` },
  }
}

/** Whether a step failed because the session was deleted, or is somebody else's now: then it is no longer ours to end. */
export function isTakenOver(error: unknown): boolean {
  return error instanceof AppError && (error.code === 'fenced' || error.code === 'not_found')
}

/** The errors of ends that are failures by themselves. The others were wished, by a person or by a limit that was set. */
const FAILURES: Partial<Record<FinishReason, { code: string; message: string }>> = {
  ContextOverflow: {
    code: 'context_overflow',
    message: 'The conversation is too long for the model and cannot be made shorter; start a new session.',
  },
  ProviderStop: {
    code: 'provider_stopped',
    message: 'The model stopped before it had finished; ask it to go on, or choose another model.',
  },
  Interrupted: {
    code: 'interrupted',
    message: 'The server stopped while this run was under way; its outcome is not known.',
  },
}

/** The error that is told before `done`; undefined when the run did not fail. */
export function errorOf({ reason, error }: Pick<Finished, 'reason' | 'error'>): Finished['error'] {
  return error ?? FAILURES[reason]
}

/** The ending of a run whose owner died. */
export const INTERRUPTED: Finished = { type: 'finished', reason: 'Interrupted' }

/** The last entry of a run: results for calls that have none, its one `done`, and the session free again. */
export function endingEntry(
  run: Run,
  ending: Finished,
  { activeMs, now, transcript }: { activeMs: number; now: number; transcript: readonly Message[] },
): LogEntry {
  const { reason } = ending
  const error = errorOf(ending)
  const open = answerOpenCalls(transcript, { runId: run.id, reason, now })
  const failed: RunEvent[] = error === undefined ? [] : [{ type: 'error', ...error }]
  return {
    now,
    runId: run.id,
    events: [...open.events, ...failed, { type: 'done', finishReason: reason, usage: run.usage }],
    messages: open.messages,
    session: { status: 'idle', activeRunId: null, pendingPlan: null },
    run: { status: 'finished', finishReason: reason, error: error?.message ?? null, activeMs },
  }
}

/** What a run has added to its session's transcript. */
export async function addedBy({ id, sessionId, afterSeq }: Run, log: SessionLog): Promise<Message[]> {
  const bounds = await log.bounds(sessionId)
  // With its first event comes its goal: before that there is nothing to look for.
  return bounds?.newest === afterSeq ? [] : log.transcript(sessionId, id)
}

/** The entry that makes a run wait for a person. */
export function proposalEntry(
  run: Run,
  { call, plan }: Extract<LoopResult, { type: 'plan' }>,
  { activeMs, now, lifeMs }: { activeMs: number; now: number; lifeMs: number },
): LogEntry {
  const pendingPlan: PendingPlan = {
    planId: randomUUID(),
    runId: run.id,
    plan,
    proposedAt: now,
    expiresAt: now + lifeMs,
    toolUseId: call.id,
    step: call.step,
  }
  return {
    now,
    runId: run.id,
    events: [{ type: 'plan_proposed', planId: pendingPlan.planId, plan, expiresAt: pendingPlan.expiresAt }],
    messages: [],
    session: { status: 'awaiting_plan', activeRunId: run.id, pendingPlan },
    run: { status: 'awaiting_plan', activeMs },
  }
}

const RETRY = { firstMs: 50, mostMs: 5_000 }
const STUCK_AFTER = 3

/**
 * Writes what must not be lost, again and again while the store cannot (a full disk), until `signal` aborts: then it is
 * left to the next start, which ends the run. `onStuck` hears of it when that takes long.
 */
export async function untilKept(
  write: () => Promise<unknown>,
  { signal, log, onStuck }: { signal: AbortSignal; log: Log; onStuck: (error: unknown) => void },
): Promise<void> {
  const pause = backoff(RETRY)
  for (;;) {
    try {
      await write()
      return
    } catch (error) {
      const mayRetry = error instanceof AppError && error.code === 'store_failed' && !signal.aborted
      if (!mayRetry) throw error
      if (pause.failures === 0) log.error('the end of a run cannot be stored; it is tried again', { error })
      if (pause.failures === STUCK_AFTER) onStuck(error)
      await sleep(pause.next(), signal)
    }
  }
}
