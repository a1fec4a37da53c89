import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { Claim } from '../kit/lease.ts'
import type { Log } from '../kit/log.ts'
import { type LoopResult, type LoopStep, runAgent } from './loop.ts'
import { addUsage, type FinishReason, lesser, type Message, type Run } from './model.ts'
import { addedBy, endingEntry, type Finished, failureOf, isTakenOver, proposalEntry, untilKept } from './run-endings.ts'
import type { RunSetup } from './setup.ts'
import type { AgentStore, LogEntry, Started } from './store/port.ts'

export interface RunWorkerOptions {
  store: AgentStore
  doorbell: Doorbell
  setup: RunSetup
  log: Log
  now: () => number
  planLifeMs: number
  wallClockMs: number
  onFinished: (run: Run, reason: FinishReason, tookMs: number) => void
}

/** A run that this process works on. */
export interface Active {
  runId: string
  claim: Claim
  abort: AbortController
  /** Why it was aborted; a reader of `done` sees this. */
  reason: FinishReason
  ended: Promise<void>
  /** Aborted, with the error as its reason, while the end cannot be stored: who waits for it is told. */
  unkept: AbortController
}

/** Works on one run, from its start or after a plan, up to its end or the next plan. */
export type RunWorker = (started: Started, how: 'start' | 'resume', one: Active) => Promise<void>

/** `stopping` aborts when the server ends: then nothing is tried again. */
export function runWorker(options: RunWorkerOptions, stopping: AbortSignal): RunWorker {
  const { store, doorbell, setup, log, now } = options

  return async (started, how, one) => {
    const { run, claim } = started
    const unlisten = doorbell.listen(cancelBell(run.sessionId), () => void lookForCancel(run, one))
    const clock = wallClock(run, one)
    const startedAt = now()
    try {
      await lookForCancel(run, one)
      const ending = await drive(started, how, one).catch((error: unknown) => afterFailure(error, run, one))
      if (ending === null) return
      // The loop knows that it was cancelled, not why.
      if (ending.type === 'finished' && ending.reason === 'Cancelled') ending.reason = one.reason
      await conclude(started, ending, run.activeMs + (now() - startedAt), one)
    } finally {
      clearTimeout(clock)
      unlisten()
      // One that cannot be given back runs out by itself.
      await store.leases.release(claim).catch(() => undefined)
    }
  }

  /** Whoever wants a run to end may be another node: it leaves word in the store and rings. */
  async function lookForCancel({ id, sessionId }: Run, one: Active): Promise<void> {
    const session = await store.sessions.get(sessionId).catch(() => undefined)
    if (session === null || session?.cancelRunId === id) end(one, 'Cancelled')
  }

  async function drive({ run, claim }: Started, how: 'start' | 'resume', { abort }: Active): Promise<LoopResult> {
    const { sessionId } = run
    const session = await store.sessions.get(sessionId)
    if (session === null) throw new AppError('not_found', 'The session has gone.')
    const prepared = await setup.prepare(session, run, await store.log.transcript(sessionId), abort.signal)
    if (how === 'start') {
      const events: LogEntry['events'] = [{ type: 'run_started', goal: run.goal, model: prepared.provider.name }]
      await append(claim, { now: now(), runId: run.id, events, messages: [goalMessage(run, now())] })
    }
    const transcript = await store.log.transcript(sessionId)
    const stepsBefore = transcript.filter(({ runId, role }) => runId === run.id && role === 'assistant').length
    const loop = runAgent({
      ...prepared,
      runId: run.id,
      transcript,
      stepsBefore,
      spentBefore: run.usage,
      maxSteps: run.maxSteps,
      signal: abort.signal,
      now,
    })
    for (;;) {
      const { done, value } = await loop.next()
      if (done) return value
      await append(claim, { now: now(), runId: run.id, ...kept(value) })
      run.usage = addUsage(run.usage, value.usage)
    }
  }

  /** Null when the run is no longer ours to end. */
  function afterFailure(error: unknown, run: Run, one: Active): Finished | null {
    const wasAborted = one.abort.signal.aborted
    one.abort.abort() // when it could not be kept the model is still being asked
    if (isTakenOver(error)) return null
    return wasAborted ? { type: 'finished', reason: one.reason } : failureOf(error, log, run)
  }

  async function conclude(
    { run, claim }: Started,
    ending: LoopResult | Finished,
    activeMs: number,
    one: Active,
  ): Promise<void> {
    const isPlan = ending.type === 'plan'
    const patience = { signal: stopping, log, onStuck: (error: unknown) => one.unkept.abort(error) }
    let transcript: Message[] = []
    const read = async () => {
      transcript = await addedBy(run, store.log)
    }
    const write = () =>
      append(
        claim,
        isPlan
          ? proposalEntry(run, ending, { activeMs, now: now(), lifeMs: options.planLifeMs })
          : endingEntry(run, ending, { activeMs, now: now(), transcript }),
      )
    try {
      // Who came to its end by itself has left no call open.
      if (!isPlan && ending.reason !== 'NoMoreToolCalls') await untilKept(read, patience)
      await untilKept(write, patience)
      one.unkept = new AbortController()
    } catch (error) {
      if (isTakenOver(error)) return
      throw error
    }
    if (!isPlan) options.onFinished(run, ending.reason, activeMs)
  }

  async function append(claim: Claim, entry: LogEntry): Promise<void> {
    await store.log.append(claim, entry)
    doorbell.ring(bell(claim.key))
  }

  function wallClock(run: Run, one: Active): NodeJS.Timeout {
    const allowedMs = lesser(options.wallClockMs, run.limits?.wallClockMs) ?? options.wallClockMs
    return setTimeout(() => end(one, 'WallClockExceeded'), Math.max(0, allowedMs - run.activeMs)).unref()
  }
}

/** Ends the work on a run; the first reason counts. */
export function end(one: Active, reason: FinishReason): void {
  if (one.abort.signal.aborted) return
  one.reason = reason
  one.abort.abort()
}

/** Where the readers of a session listen. */
export function bell(sessionId: string): string {
  return `session:${sessionId}`
}

/** Where whoever works on a session hears that its run is to end. */
export function cancelBell(sessionId: string): string {
  return `cancel:${sessionId}`
}

function goalMessage({ id, goal }: Run, now: number): Message {
  return { role: 'user', content: [{ type: 'text', text: goal }], runId: id, step: 0, createdAt: now }
}

function kept({ events, messages, usage }: LoopStep): Pick<LogEntry, 'events' | 'messages' | 'run'> {
  const spent = usage.totalSteps > 0 || usage.totalTokens > 0
  return { events, messages, ...(spent ? { run: { status: 'running', usage } } : {}) }
}
