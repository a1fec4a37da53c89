import { randomUUID } from 'node:crypto'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { withoutSummaries } from './compaction.ts'
import { type LoopStep, runAgent } from './loop.ts'
import {
  addUsage,
  type FinishReason,
  lesser,
  type Message,
  NO_USAGE,
  type RunEvent,
  type RunLimits,
  type Usage,
} from './model.ts'
import { answerOpenCalls } from './open-calls.ts'
import { errorOf, type Finished, failureOf, shuttingDown } from './run-endings.ts'
import type { RunSetup } from './setup.ts'

export interface StatelessOrder {
  goal: string
  systemPrompt: string | null
  maxSteps: number | null
  limits: RunLimits
  model: string | null
  /** Aborts when nobody wants the result any more. */
  signal: AbortSignal
  /** Told as it happens, for who watches. The last one is always `done`. */
  onEvent: (event: RunEvent, runId: string) => void
}

export interface StatelessResult {
  runId: string
  finishReason: FinishReason
  messages: Message[]
  usage: Usage
}

/** Runs without a session: the same loop with nothing stored. */
export interface StatelessRuns {
  /** One request, one result. Throws what made it fail, after `error` and `done` were told. */
  run(order: StatelessOrder): Promise<StatelessResult>
  /** Ends those under way with `Interrupted`; no more are taken. */
  stop(): Promise<void>
  readonly active: number
}

export interface StatelessOptions {
  setup: RunSetup
  /** Where they work. */
  root: string
  log: Log
  now: () => number
  maxRuns: number
  maxSteps: number
  wallClockMs: number
  onFinished: (reason: FinishReason, tookMs: number, usage: Usage) => void
}

export function statelessRuns(options: StatelessOptions): StatelessRuns {
  const { setup, root, log, now } = options
  const active = new Set<{ end: (reason: FinishReason) => void; ended: Promise<unknown> }>()
  let stopping = false

  return {
    async run(order) {
      if (stopping) throw shuttingDown()
      if (active.size >= options.maxRuns)
        throw new AppError('too_many_runs', `${options.maxRuns} runs are under way; try again shortly.`, {
          retryAfterMs: 1_000,
        })
      const abort = new AbortController()
      let why: FinishReason = 'Cancelled'
      const end = (reason: FinishReason) => {
        if (!abort.signal.aborted) why = reason
        abort.abort()
      }
      const cancel = () => end('Cancelled')
      order.signal.addEventListener('abort', cancel)
      if (order.signal.aborted) cancel()
      const allowedMs = lesser(options.wallClockMs, order.limits.wallClockMs) ?? options.wallClockMs
      const clock = setTimeout(() => end('WallClockExceeded'), allowedMs).unref()
      const running = play(order, abort.signal, () => why)
      const one = { end, ended: running.catch(() => undefined) }
      active.add(one)
      try {
        return await running
      } finally {
        active.delete(one)
        clearTimeout(clock)
        order.signal.removeEventListener('abort', cancel)
      }
    },
    async stop() {
      stopping = true
      const left = [...active]
      for (const one of left) one.end('Interrupted')
      await Promise.all(left.map(({ ended }) => ended))
    },
    get active() {
      return active.size
    },
  }

  async function play(order: StatelessOrder, signal: AbortSignal, why: () => FinishReason): Promise<StatelessResult> {
    const { goal, systemPrompt, model, limits, onEvent } = order
    const runId = randomUUID()
    const first: Message = { role: 'user', content: [{ type: 'text', text: goal }], runId, step: 0, createdAt: now() }
    const messages: Message[] = [first]
    const startedAt = now()
    let usage = NO_USAGE
    const keep = (step: LoopStep) => {
      usage = addUsage(usage, step.usage)
      messages.push(...withoutSummaries(step.messages))
      for (const event of step.events) onEvent(event, runId)
    }
    const finish = (finishReason: FinishReason, failure?: Finished['error']): StatelessResult => {
      const open = answerOpenCalls(messages, { runId, reason: finishReason, now: now() })
      keep({ ...open, usage: NO_USAGE })
      const error = errorOf({ reason: finishReason, ...(failure && { error: failure }) })
      if (error) onEvent({ type: 'error', ...error }, runId)
      onEvent({ type: 'done', finishReason, usage }, runId)
      options.onFinished(finishReason, now() - startedAt, usage)
      return { runId, finishReason, messages, usage }
    }
    /** Why it ended. By then its background commands have ended too: nobody could ask for them any more. */
    const work = async (): Promise<FinishReason> => {
      const { close, ...prepared } = await setup.prepareAlone(
        { model, systemPrompt, workspace: root },
        { model, limits },
        signal,
      )
      try {
        onEvent({ type: 'run_started', goal, model: prepared.provider.name }, runId)
        const maxSteps = order.maxSteps ?? options.maxSteps
        const loop = runAgent({ ...prepared, runId, transcript: [first], stepsBefore: 0, maxSteps, signal, now })
        for (;;) {
          const { done, value } = await loop.next()
          if (!done) keep(value)
          // Nobody can be asked here: a plan would be the end.
          else if (value.type === 'plan') return 'ProviderStop'
          else return value.reason === 'Cancelled' ? why() : value.reason
        }
      } finally {
        await close()
      }
    }
    try {
      return finish(await work())
    } catch (error) {
      if (signal.aborted) return finish(why())
      const { reason, error: told } = failureOf(error, log, { id: runId })
      finish(reason, told)
      throw error
    }
  }
}
