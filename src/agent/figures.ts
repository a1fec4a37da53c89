import type { Metrics } from '../kit/metrics.ts'
import type { AgentServer } from './agent.ts'
import type { FinishReason, Usage } from './model.ts'

/** What the agent server counts as it happens. Each stands in docs/metrics.md. */
export interface Figures {
  runEnded(kind: 'session' | 'stateless', reason: FinishReason, tookMs: number, usage: Usage): void
  refused(code: string): void
  modelRetried(kind: string): void
}

const RUN_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 1800]

export function createFigures(metrics: Metrics): Figures {
  const runs = metrics.counter('runs_total', 'Runs that ended, by kind and by why.', ['kind', 'finish_reason'])
  const seconds = metrics.histogram('run_seconds', 'How long runs worked, waiting for a plan apart.', RUN_SECONDS, [
    'kind',
  ])
  const tokens = metrics.counter('tokens_total', 'Tokens of runs that ended, to and from models.', ['direction'])
  const refused = metrics.counter('refused_calls_total', 'Calls that were answered with an error, by its code.', [
    'code',
  ])
  const retries = metrics.counter('model_retries_total', 'Answers that a model was asked for again, by what failed.', [
    'failure',
  ])
  return {
    runEnded(kind, reason, tookMs, { inputTokens, outputTokens }) {
      runs.inc({ kind, finish_reason: reason })
      seconds.observe({ kind }, tookMs / 1000)
      tokens.inc({ direction: 'in' }, inputTokens)
      tokens.inc({ direction: 'out' }, outputTokens)
    },
    refused: (code) => refused.inc({ code }),
    modelRetried: (failure) => retries.inc({ failure }),
  }
}

/** What is looked up when somebody asks. */
export function observe(metrics: Metrics, { store, runner, alone, streams }: AgentServer): void {
  metrics.gauge('sessions', 'Sessions there are.', async (gauge) => {
    // The other figures can be had while the store cannot be asked.
    const count = await store.count().catch(() => null)
    if (count !== null) gauge.set(count)
  })
  metrics.gauge(
    'active_runs',
    'Runs under way, by kind.',
    (gauge) => {
      gauge.set({ kind: 'session' }, runner.active)
      gauge.set({ kind: 'stateless' }, alone.active)
    },
    ['kind'],
  )
  metrics.gauge('event_streams', 'Readers of event streams.', (gauge) => gauge.set(streams.count))
}
