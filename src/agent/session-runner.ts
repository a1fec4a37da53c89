import { randomUUID } from 'node:crypto'
import { AppError, errorText } from '../kit/errors.ts'
import { nextBatch } from '../kit/tail.ts'
import { NO_USAGE, type PlanDecision, type Run, type RunLimits, type Session } from './model.ts'
import { decidedBefore, decisionEntry, waitingPlan } from './plan.ts'
import { addedBy, endingEntry, type Finished, INTERRUPTED, isTakenOver, shuttingDown } from './run-endings.ts'
import { type Active, bell, cancelBell, end, type RunWorkerOptions, runWorker } from './run-worker.ts'
import type { Admission, Receipt, Started } from './store/port.ts'

export { bell }

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
  /**
   * Ends the active run now: the model call is aborted and running tools are killed. True when there was one. Fails with
   * `store_failed` while its end cannot be stored.
   */
  cancel(sessionId: string): Promise<boolean>
  /**
   * Ends the wait for a plan, exactly once; the same decision again gets the same answer. Fails with `no_plan`, or with
   * `plan_decided` when another decision came first.
   */
  decide(sessionId: string, planId: string | null, decision: PlanDecision): Promise<{ planId: string; runId: string }>
  /** Ends runs whose owner died with `error` and `done`. Before the server listens. Returns how many sessions it looked at. */
  recover(): Promise<number>
  /** The same now and then; starts queued runs that nobody starts, and rejects plans that nobody answered in time. */
  sweep(): Promise<void>
  /** Cancels, forgets the tools of the session, and wakes its readers. */
  forget(sessionId: string): Promise<void>
  stop(): Promise<void>
  readonly active: number
}

export interface SessionRunnerOptions extends RunWorkerOptions {
  maxConcurrentRuns: number
  /** Runs that may wait in one session. */
  maxQueued: number
  /** Turns of the model, where neither the run nor its session says. */
  maxSteps: number
  /** How often claims are renewed. */
  renewEveryMs?: number
  /** How long a claim lives that is not renewed, where others can take it. */
  leaseMs?: number
}

const RENEW_EVERY_MS = 5_000
const CANCELLED_ELSEWHERE_MS = 5_000
const NOBODY_ANSWERED: PlanDecision = { decision: 'reject', feedback: 'Nobody answered in time.', plan: null }

export function sessionRunner(options: SessionRunnerOptions): SessionRunner {
  const { store, doorbell, setup, log, now } = options
  const active = new Map<string, Active>()
  /** Sessions about to be deleted: their queued runs are not started any more. */
  const leaving = new Set<string>()
  /** Sessions whose queued run waits for room among all that run. */
  const crowded = new Set<string>()
  const stopping = new AbortController()
  let renewedAt = now()
  const work = runWorker(options, stopping.signal)
  const renewing = setInterval(() => void renew(), options.renewEveryMs ?? RENEW_EVERY_MS).unref()

  return {
    async submit(session, order) {
      if (stopping.signal.aborted) throw shuttingDown()
      if (active.size >= options.maxConcurrentRuns && !active.has(session.id)) {
        throw new AppError('too_many_runs', `${options.maxConcurrentRuns} runs are under way; try again shortly.`, {
          retryAfterMs: 1_000,
        })
      }
      const { run, claim } = await admit(newRun(session, order), order)
      if (claim !== null) launch({ run: { ...run }, claim }, 'start')
      return run
    },
    cancel: (sessionId) => cancel(sessionId),
    decide,
    async recover() {
      const left = await store.runs.unfinished()
      await forEach(left, endAbandoned)
      return left.length
    },
    async sweep() {
      await forEach(await store.runs.unfinished(), pickUp)
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
    async stop() {
      stopping.abort()
      clearInterval(renewing)
      const running = [...active.values()]
      for (const one of running) end(one, 'Interrupted')
      await Promise.allSettled(running.map(({ ended }) => ended))
      await setup.close()
    },
    get active() {
      return active.size
    },
  }

  /**
   * One that interrupts goes into the queue, before all others, and only then is the active one ended: so nothing else can
   * begin in between, on no node. What ends is what was active in that very step; a repetition ends nothing.
   */
  async function admit(run: Run, { receipt, whenBusy }: RunOrder): Promise<Admission> {
    const { maxQueued } = options
    if (whenBusy !== 'interrupt') return store.runs.admit(run, { receipt, whenBusy, maxQueued })
    try {
      const next = { receipt, whenBusy: 'next' as const, maxQueued: Math.max(1, maxQueued) }
      const admission = await store.runs.admit(run, next)
      // The end of the other one may have to wait for the store; this one follows it in any case.
      if (admission.activeRunId !== null) await cancel(run.sessionId, admission.activeRunId).catch(passIfUnkept)
      return admission
    } catch (error) {
      const one = active.get(run.sessionId)
      if (one !== undefined && isStoreFailure(error)) end(one, 'Cancelled')
      throw error
    }
  }

  /** Starts to work on a run; the session's next one follows by itself. */
  function launch(started: Started, how: 'start' | 'resume'): void {
    const { run, claim } = started
    const { sessionId } = run
    const one: Active = {
      runId: run.id,
      claim,
      abort: new AbortController(),
      reason: 'Cancelled',
      ended: Promise.resolve(),
      unkept: new AbortController(),
    }
    active.set(sessionId, one)
    if (stopping.signal.aborted) end(one, 'Interrupted')
    one.ended = work(started, how, one).finally(async () => {
      if (active.get(sessionId) === one) active.delete(sessionId)
      await startNext(sessionId)
      const [other] = crowded
      if (other !== undefined) await startNext(other)
    })
    one.ended.catch((error: unknown) => log.error('a run ended badly', { sessionId, runId: run.id, error }))
  }

  async function startNext(sessionId: string): Promise<void> {
    if (stopping.signal.aborted || active.has(sessionId) || leaving.has(sessionId)) return
    crowded.delete(sessionId)
    if (active.size >= options.maxConcurrentRuns) {
      crowded.add(sessionId)
      return
    }
    const next = await store.runs.next(sessionId, now())
    if (next !== null) launch(next, 'start')
  }

  /** Ends the active run, or `only` this one if it is active. */
  async function cancel(sessionId: string, only?: string): Promise<boolean> {
    const found = active.get(sessionId)
    const one = only === undefined || found?.runId === only ? found : undefined
    if (one !== undefined) {
      end(one, 'Cancelled')
      await Promise.race([one.ended.catch(() => undefined), failed(one.unkept.signal)])
    }
    const session = await store.sessions.get(sessionId)
    if (session === null || session.activeRunId === null) return one !== undefined
    if (only !== undefined && session.activeRunId !== only) return one !== undefined
    // A run that came to propose its plan in that moment is ended as well; its successor is not.
    if (one !== undefined && session.activeRunId !== one.runId) return true
    if (session.pendingPlan !== null) {
      const over = await endWait(session, session.pendingPlan.planId)
      // Somebody decided in that moment: now there is work to be ended.
      return over || cancel(sessionId, only)
    }
    if (one === undefined && !active.has(sessionId)) await cancelElsewhere(sessionId, session.activeRunId)
    else if (one === undefined) return cancel(sessionId, only)
    return true
  }

  /** The run is worked on by another node, or about to be by this one. */
  async function cancelElsewhere(sessionId: string, runId: string): Promise<void> {
    const over = nextBatch(doorbell, bell(sessionId), async () => {
      const run = await store.runs.get(sessionId, runId)
      return run === null || run.status === 'finished' ? [true] : []
    })
    const giveUp = setTimeout(over.stop, CANCELLED_ELSEWHERE_MS)
    try {
      await store.sessions.update(sessionId, { cancelRunId: runId })
      doorbell.ring(cancelBell(sessionId))
      await over.batch
    } finally {
      clearTimeout(giveUp)
      over.stop()
    }
  }

  /** False when the plan does not wait any more. */
  async function endWait(session: Session, planId: string): Promise<boolean> {
    const run = session.activeRunId === null ? null : await store.runs.get(session.id, session.activeRunId)
    if (run === null) return false
    const ending: Finished = { type: 'finished', reason: 'Cancelled' }
    const transcript = await addedBy(run, store.log)
    const entry = endingEntry(run, ending, { activeMs: run.activeMs, now: now(), transcript })
    const { settled } = await store.runs.settlePlan(session.id, planId, entry, null)
    if (!settled) return false
    doorbell.ring(bell(session.id))
    options.onFinished(run, 'Cancelled', run.activeMs)
    await startNext(session.id)
    return true
  }

  async function decide(
    sessionId: string,
    planId: string | null,
    decision: PlanDecision,
  ): Promise<{ planId: string; runId: string }> {
    const session = await store.sessions.get(sessionId)
    if (session === null) throw new AppError('not_found', `There is no session ${sessionId}.`)
    if (stopping.signal.aborted) throw shuttingDown()
    const plan = waitingPlan(session, planId)
    if (plan === null) return decidedBefore(session, planId, decision)
    const decided = { planId: plan.planId, runId: plan.runId, decision }
    const result = await store.runs.settlePlan(sessionId, plan.planId, decisionEntry(plan, decision, now()), decided)
    // Somebody was faster: what they decided counts.
    if (!result.settled) return decide(sessionId, plan.planId, decision)
    doorbell.ring(bell(sessionId))
    const run = await store.runs.get(sessionId, plan.runId)
    if (run !== null && result.claim !== null) launch({ run, claim: result.claim }, 'resume')
    return decided
  }

  async function pickUp(session: Session): Promise<void> {
    const { pendingPlan } = session
    if (pendingPlan === null) {
      await endAbandoned(session)
      await startNext(session.id)
    } else if (pendingPlan.expiresAt <= now()) await expire(session.id, pendingPlan.planId)
  }

  async function expire(sessionId: string, planId: string): Promise<void> {
    try {
      await decide(sessionId, planId, NOBODY_ANSWERED)
    } catch (error) {
      const isDecided = error instanceof AppError && ['no_plan', 'plan_decided', 'not_found'].includes(error.code)
      if (!isDecided) throw error
    }
  }

  /** What cannot be read of one session now (its objects may be away) holds up no other, nor a start: it is tried again. */
  async function forEach(sessions: readonly Session[], work: (session: Session) => Promise<void>): Promise<void> {
    for (const session of sessions) {
      try {
        await work(session)
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        log.warn('an unfinished session must wait', { sessionId: session.id, error: errorText(error) })
      }
    }
  }

  /** Whoever holds a session's claim lives. Read again under our own: the run may have ended in the last moment. */
  async function endAbandoned({ id, status }: Session): Promise<void> {
    const claim = status === 'running' ? await store.leases.claim(id) : null
    if (claim === null) return
    try {
      const session = await store.sessions.get(id)
      const run = session?.activeRunId ? await store.runs.get(id, session.activeRunId) : null
      if (session?.status !== 'running' || run === null) return
      const transcript = await addedBy(run, store.log)
      const ending = endingEntry(run, INTERRUPTED, { activeMs: run.activeMs, now: now(), transcript })
      await store.log.append(claim, ending)
      doorbell.ring(bell(id))
      options.onFinished(run, 'Interrupted', run.activeMs)
    } catch (error) {
      // Deleted, or taken over, in that moment: then it is no longer ours to end.
      if (!isTakenOver(error)) throw error
    } finally {
      await store.leases.release(claim)
    }
  }

  /** Who lost its claim was taken for dead: another has ended the run. */
  async function renew(): Promise<void> {
    const held = [...active.values()]
    const asked = now()
    try {
      const lost = new Set((await store.leases.renew(held.map(({ claim }) => claim))).map(({ key }) => key))
      for (const one of held) if (lost.has(one.claim.key)) end(one, 'Interrupted')
      renewedAt = asked
    } catch (error) {
      log.warn('claims on sessions could not be renewed', { error: errorText(error) })
      if (asked - renewedAt < (options.leaseMs ?? Number.POSITIVE_INFINITY)) return
      // By now others may work on these sessions: whatever tools do here is not to go on beside them.
      for (const one of held) end(one, 'Interrupted')
    }
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
      acceptedSeq: 0,
      afterSeq: 0,
      activeMs: 0,
    }
  }
}

function isStoreFailure(error: unknown): boolean {
  return error instanceof AppError && error.code === 'store_failed'
}

function passIfUnkept(error: unknown): void {
  if (!isStoreFailure(error)) throw error
}

/** Rejects with the reason of the abort. */
function failed(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
