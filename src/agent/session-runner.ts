import { randomUUID } from 'node:crypto'
import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { type LoopResult, type LoopStep, runAgent } from './loop.ts'
import {
  addUsage,
  type FinishReason,
  lesser,
  type Message,
  NO_USAGE,
  type PendingPlan,
  type PlanDecision,
  type Run,
  type RunEvent,
  type RunLimits,
  type Session,
} from './model.ts'
import { decisionText } from './plan.ts'
import { type Finished, failureOf, shuttingDown } from './run-endings.ts'
import type { RunSetup } from './setup.ts'
import type { Admission, AgentStore, LogEntry, Receipt } from './store/port.ts'

/** What a caller asks a session to do. */
export interface RunOrder {
  goal: string
  model: string | null
  maxSteps: number | null
  limits?: RunLimits
  whenBusy: 'refuse' | 'enqueue' | 'interrupt'
  receipt: Receipt | null
}

/** Runs the sessions of this process: one run at a time in each, every run with exactly one `done`. */
export interface SessionRunner {
  submit(session: Session, order: RunOrder): Promise<Run>
  /** Ends the active run now: the model call is aborted and running tools are killed. True when there was one. */
  cancel(sessionId: string): Promise<boolean>
  decide(sessionId: string, planId: string | null, decision: PlanDecision): Promise<PendingPlan>
  /** Before the server listens: runs that a crash left running end with `error` and `done`; queued ones start. */
  recover(): Promise<number>
  /** Cancels, forgets the tools of the session, and wakes its readers. */
  forget(sessionId: string): Promise<void>
  /** Ends plans that nobody answered. */
  expirePlans(): Promise<void>
  stop(): Promise<void>
  readonly active: number
}

export interface SessionRunnerOptions {
  store: AgentStore
  doorbell: Doorbell
  setup: RunSetup
  log: Log
  now: () => number
  maxConcurrentRuns: number
  /** Runs that may wait in one session. */
  maxQueued: number
  planLifeMs: number
  wallClockMs: number
  /** Turns of the model, where neither the run nor its session says. */
  maxSteps: number
  onFinished: (run: Run, reason: FinishReason, tookMs: number) => void
}

/** A run that this process works on. */
interface Active {
  runId: string
  abort: AbortController
  /** Why it was aborted; a reader of `done` sees this. */
  reason: FinishReason
  ended: Promise<void>
}

export function sessionRunner(options: SessionRunnerOptions): SessionRunner {
  const { store, doorbell, setup, log, now } = options
  const active = new Map<string, Active>()
  /** Sessions about to be deleted: their queued runs are not started any more. */
  const leaving = new Set<string>()
  let stopping = false

  return {
    async submit(session, order) {
      if (stopping) throw shuttingDown()
      if (active.size >= options.maxConcurrentRuns && !active.has(session.id)) {
        throw new AppError('too_many_runs', `${options.maxConcurrentRuns} runs are under way; try again shortly.`, {
          retryAfterMs: 1_000,
        })
      }
      const { run: admitted, repeated } = await admit(newRun(session, order), order)
      if (!repeated && admitted.status === 'running') launch(session.id, admitted, 'start')
      return admitted
    },
    cancel,
    decide,
    async recover() {
      const left = await store.runs.unfinished()
      for (const session of left) await pickUp(session)
      return left.length
    },
    async forget(sessionId) {
      leaving.add(sessionId)
      try {
        await cancel(sessionId)
        await setup.forget(sessionId)
      } finally {
        leaving.delete(sessionId)
      }
      doorbell.ring(bell(sessionId))
    },
    async expirePlans() {
      for (const session of await store.runs.unfinished()) {
        const plan = session.pendingPlan
        if (plan === null || plan.expiresAt > now()) continue
        await decide(session.id, plan.planId, {
          decision: 'reject',
          feedback: 'Nobody answered in time.',
          plan: null,
        }).catch(() => undefined)
      }
    },
    async stop() {
      stopping = true
      const running = [...active.values()]
      for (const one of running) end(one, 'Interrupted')
      await Promise.allSettled(running.map(({ ended }) => ended))
      await setup.close()
    },
    get active() {
      return active.size
    },
  }

  /** A repetition finds its receipt before anything is cancelled for it. */
  async function admit(run: Run, { receipt, whenBusy }: RunOrder): Promise<Admission> {
    const { maxQueued } = options
    if (whenBusy !== 'interrupt') return store.runs.admit(run, { receipt, whenBusy, maxQueued })
    try {
      return await store.runs.admit(run, { receipt, whenBusy: 'refuse', maxQueued })
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'session_busy')) throw error
      await cancel(run.sessionId)
      return store.runs.admit(run, { receipt, whenBusy: 'enqueue', maxQueued: Math.max(1, maxQueued) })
    }
  }

  /** Starts to work on a run; the session's next one follows by itself. */
  function launch(sessionId: string, run: Run, how: 'start' | 'resume'): void {
    const abort = new AbortController()
    const one: Active = { runId: run.id, abort, reason: 'Cancelled', ended: Promise.resolve() }
    active.set(sessionId, one)
    if (stopping) end(one, 'Interrupted')
    one.ended = work(sessionId, run, how, one).finally(async () => {
      if (active.get(sessionId) === one) active.delete(sessionId)
      if (!stopping) await startNext(sessionId)
    })
    one.ended.catch((error: unknown) => log.error('a run ended badly', { sessionId, runId: run.id, error }))
  }

  async function startNext(sessionId: string): Promise<void> {
    if (active.has(sessionId) || leaving.has(sessionId)) return
    const next = await store.runs.next(sessionId, now())
    if (next !== null) launch(sessionId, next, 'start')
  }

  async function work(sessionId: string, run: Run, how: 'start' | 'resume', one: Active): Promise<void> {
    const startedAt = now()
    const generation = await store.runs.fence(sessionId)
    const append = async (entry: Pick<LogEntry, 'events' | 'messages'> & Partial<LogEntry>) => {
      await store.log.append(sessionId, generation, { now: now(), runId: run.id, ...entry })
      doorbell.ring(bell(sessionId))
    }
    const clock = wallClock(run, one)
    let ending: Ending
    try {
      ending = await drive(sessionId, run, how, one, append)
      // The loop knows that it was cancelled, not why.
      if (ending.type === 'finished' && ending.reason === 'Cancelled') ending.reason = one.reason
    } catch (error) {
      const wasAborted = one.abort.signal.aborted
      one.abort.abort() // when it could not be kept the model is still being asked
      if (error instanceof AppError && (error.code === 'fenced' || error.code === 'not_found')) return
      ending = wasAborted ? { type: 'finished', reason: one.reason } : failureOf(error, log, run)
    } finally {
      clearTimeout(clock)
    }
    const activeMs = run.activeMs + (now() - startedAt)
    if (ending.type === 'plan') return waitForPlan(run, ending, activeMs, append)
    await finish(run, ending, activeMs, append)
  }

  async function drive(
    sessionId: string,
    run: Run,
    how: 'start' | 'resume',
    { abort }: Active,
    append: Append,
  ): Promise<LoopResult> {
    const session = await store.sessions.get(sessionId)
    if (session === null) throw new AppError('not_found', 'The session has gone.')
    const prepared = await setup.prepare(session, run, await store.log.transcript(sessionId), abort.signal)
    if (how === 'start') {
      const goal: Message = {
        role: 'user',
        content: [{ type: 'text', text: run.goal }],
        runId: run.id,
        step: 0,
        createdAt: now(),
      }
      await append({
        events: [{ type: 'run_started', goal: run.goal, model: prepared.provider.name }],
        messages: [goal],
      })
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
      await append(kept(value))
      run.usage = addUsage(run.usage, value.usage)
    }
  }

  /** The lease is given up: whoever takes the decision goes on, here or elsewhere, now or after a restart. */
  async function waitForPlan(
    run: Run,
    { call, plan }: Extract<LoopResult, { type: 'plan' }>,
    activeMs: number,
    append: Append,
  ): Promise<void> {
    const proposedAt = now()
    const pendingPlan: PendingPlan = {
      planId: randomUUID(),
      runId: run.id,
      plan,
      proposedAt,
      expiresAt: proposedAt + options.planLifeMs,
      toolUseId: call.id,
      step: call.step,
    }
    await append({
      events: [{ type: 'plan_proposed', planId: pendingPlan.planId, plan, expiresAt: pendingPlan.expiresAt }],
      messages: [],
      session: { status: 'awaiting_plan', activeRunId: run.id, pendingPlan },
      run: { status: 'awaiting_plan', activeMs },
    })
  }

  async function finish(run: Run, { reason, error }: Finished, activeMs: number, append: Append): Promise<void> {
    const failed: RunEvent[] = error === undefined ? [] : [{ type: 'error', ...error }]
    await append({
      events: [...failed, { type: 'done', finishReason: reason, usage: run.usage }],
      messages: [],
      session: { status: 'idle', activeRunId: null, pendingPlan: null },
      run: { status: 'finished', finishReason: reason, error: error?.message ?? null, activeMs },
    })
    options.onFinished(run, reason, activeMs)
  }

  async function cancel(sessionId: string): Promise<boolean> {
    const one = active.get(sessionId)
    if (one !== undefined) {
      end(one, 'Cancelled')
      await one.ended.catch(() => undefined)
    }
    const session = await store.sessions.get(sessionId)
    // A run that came to propose its plan in that moment is ended as well; its successor is not.
    const runId = one?.runId ?? session?.activeRunId ?? null
    const run = runId === null ? null : await store.runs.get(sessionId, runId)
    if (run === null || run.status !== 'awaiting_plan') return one !== undefined
    await finishAlone(sessionId, run, { type: 'finished', reason: 'Cancelled' })
    await startNext(sessionId)
    return true
  }

  async function decide(sessionId: string, planId: string | null, decision: PlanDecision): Promise<PendingPlan> {
    const session = await store.sessions.get(sessionId)
    if (session === null) throw new AppError('not_found', `There is no session ${sessionId}.`)
    if (stopping) throw shuttingDown()
    const plan = session.pendingPlan
    if (plan === null || (planId !== null && planId !== plan.planId)) {
      throw new AppError('no_plan', 'No such plan waits for a decision in this session.')
    }
    const generation = await store.runs.fence(sessionId)
    const answer: Message = {
      role: 'tool',
      content: [
        {
          type: 'tool_result',
          toolUseId: plan.toolUseId,
          content: decisionText(plan.plan, decision),
          isError: decision.decision === 'reject',
        },
      ],
      runId: plan.runId,
      step: plan.step,
      createdAt: now(),
    }
    await store.log.append(sessionId, generation, {
      now: now(),
      runId: plan.runId,
      events: [{ type: 'plan_decided', planId: plan.planId, decision: decision.decision }],
      messages: [answer],
      session: { status: 'running', activeRunId: plan.runId, pendingPlan: null },
      run: { status: 'running' },
    })
    doorbell.ring(bell(sessionId))
    const run = await store.runs.get(sessionId, plan.runId)
    if (run !== null) launch(sessionId, run, 'resume')
    return plan
  }

  /** After a crash: what waits for a plan goes on waiting; what ran is over. */
  async function pickUp(session: Session): Promise<void> {
    if (session.status === 'awaiting_plan') return
    const run = session.activeRunId === null ? null : await store.runs.get(session.id, session.activeRunId)
    if (run !== null) {
      const error = {
        code: 'interrupted',
        message: 'The server stopped while this run was under way; its outcome is not known.',
      }
      await finishAlone(session.id, run, { type: 'finished', reason: 'Interrupted', error })
    }
    await startNext(session.id)
  }

  async function finishAlone(sessionId: string, run: Run, ending: Finished): Promise<void> {
    const generation = await store.runs.fence(sessionId)
    await finish(run, ending, run.activeMs, async (entry) => {
      await store.log.append(sessionId, generation, { now: now(), runId: run.id, ...entry })
      doorbell.ring(bell(sessionId))
    })
  }

  function wallClock(run: Run, one: Active): NodeJS.Timeout {
    const allowedMs = lesser(options.wallClockMs, run.limits?.wallClockMs) ?? options.wallClockMs
    return setTimeout(() => end(one, 'WallClockExceeded'), Math.max(0, allowedMs - run.activeMs)).unref()
  }

  function newRun(session: Session, { goal, model, maxSteps, limits }: RunOrder): Run {
    return {
      id: randomUUID(),
      sessionId: session.id,
      goal,
      model: model ?? session.model,
      maxSteps: maxSteps ?? session.maxSteps ?? options.maxSteps,
      ...(limits === undefined ? {} : { limits }),
      status: 'running',
      finishReason: null,
      error: null,
      usage: NO_USAGE,
      createdAt: now(),
      startedAt: null,
      finishedAt: null,
      afterSeq: 0,
      activeMs: 0,
    }
  }
}

type Append = (entry: Pick<LogEntry, 'events' | 'messages'> & Partial<LogEntry>) => Promise<void>

type Ending = Finished | Extract<LoopResult, { type: 'plan' }>

/** Where the readers of a session listen. */
export function bell(sessionId: string): string {
  return `session:${sessionId}`
}

function end(one: Active, reason: FinishReason): void {
  if (one.abort.signal.aborted) return
  one.reason = reason
  one.abort.abort()
}

function kept({ events, messages, usage }: LoopStep): Pick<LogEntry, 'events' | 'messages' | 'run'> {
  const spent = usage.totalSteps > 0 || usage.totalTokens > 0
  return { events, messages, ...(spent ? { run: { status: 'running', usage } } : {}) }
}
