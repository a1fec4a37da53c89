import { randomUUID } from 'node:crypto'
import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { type LoopResult, type LoopStep, runAgent } from './loop.ts'
import {
  addUsage,
  type FinishReason,
  type Message,
  NO_USAGE,
  type PendingPlan,
  type PlanDecision,
  type Run,
  type RunEvent,
  type Session,
} from './model.ts'
import { decisionText } from './plan.ts'
import { ProviderError } from './provider/port.ts'
import type { RunSetup } from './setup.ts'
import type { AgentStore, LogEntry, Receipt } from './store/port.ts'

/** What a caller asks a session to do. */
export interface RunOrder {
  goal: string
  model: string | null
  maxSteps: number | null
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
  planLifeMs: number
  wallClockMs: number
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

const DEFAULT_MAX_STEPS = 50

export function sessionRunner(options: SessionRunnerOptions): SessionRunner {
  const { store, doorbell, setup, log, now } = options
  const active = new Map<string, Active>()
  let stopping = false

  return {
    async submit(session, order) {
      if (stopping)
        throw new AppError('shutting_down', 'The server is shutting down; try again shortly.', { retryAfterMs: 2_000 })
      if (active.size >= options.maxConcurrentRuns && !active.has(session.id)) {
        throw new AppError('too_many_runs', `${options.maxConcurrentRuns} runs are under way; try again shortly.`, {
          retryAfterMs: 1_000,
        })
      }
      if (order.whenBusy === 'interrupt') await cancel(session.id)
      const run = newRun(session, order)
      const { run: admitted, repeated } = await store.runs.admit(run, {
        receipt: order.receipt,
        whenBusy: order.whenBusy === 'enqueue' ? 'enqueue' : 'refuse',
      })
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
      await cancel(sessionId)
      await setup.forget(sessionId)
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
      await Promise.all(running.map(({ ended }) => ended))
      await setup.close()
    },
    get active() {
      return active.size
    },
  }

  /** Starts to work on a run; the session's next one follows by itself. */
  function launch(sessionId: string, run: Run, how: 'start' | 'resume'): void {
    const abort = new AbortController()
    const one: Active = { runId: run.id, abort, reason: 'Cancelled', ended: Promise.resolve() }
    active.set(sessionId, one)
    one.ended = work(sessionId, run, how, one).finally(async () => {
      if (active.get(sessionId) === one) active.delete(sessionId)
      if (!stopping) await startNext(sessionId)
    })
    one.ended.catch((error: unknown) => log.error('a run ended badly', { sessionId, runId: run.id, error }))
  }

  async function startNext(sessionId: string): Promise<void> {
    if (active.has(sessionId)) return
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
    } catch (error) {
      if (error instanceof AppError && (error.code === 'fenced' || error.code === 'not_found')) return
      ending = one.abort.signal.aborted ? { type: 'finished', reason: one.reason } : failureOf(error, log, run)
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
      return true
    }
    const session = await store.sessions.get(sessionId)
    const run = session?.activeRunId ? await store.runs.get(sessionId, session.activeRunId) : null
    if (session?.status !== 'awaiting_plan' || run === null) return false
    await finishAlone(sessionId, run, { type: 'finished', reason: 'Cancelled' })
    await startNext(sessionId)
    return true
  }

  async function decide(sessionId: string, planId: string | null, decision: PlanDecision): Promise<PendingPlan> {
    const session = await store.sessions.get(sessionId)
    if (session === null) throw new AppError('not_found', `There is no session ${sessionId}.`)
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
    if (run !== null && !stopping) launch(sessionId, run, 'resume')
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
    return setTimeout(() => end(one, 'WallClockExceeded'), Math.max(0, options.wallClockMs - run.activeMs)).unref()
  }

  function newRun(session: Session, { goal, model, maxSteps }: RunOrder): Run {
    return {
      id: randomUUID(),
      sessionId: session.id,
      goal,
      model: model ?? session.model,
      maxSteps: maxSteps ?? session.maxSteps ?? DEFAULT_MAX_STEPS,
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

interface Finished {
  type: 'finished'
  reason: FinishReason
  error?: { code: string; message: string }
}

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

function failureOf(error: unknown, log: Log, run: Run): Finished {
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
