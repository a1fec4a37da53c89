import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** The figures of one service, in the text format a Prometheus server reads. */
export interface Metrics {
  counter<L extends string = never>(name: string, help: string, labels?: readonly L[]): Counter<L>
  histogram<L extends string = never>(
    name: string,
    help: string,
    buckets: number[],
    labels?: readonly L[],
  ): Histogram<L>
  /** A figure that is looked up when somebody asks. */
  gauge<L extends string = never>(
    name: string,
    help: string,
    collect: (gauge: Gauge<L>) => void | Promise<void>,
    labels?: readonly L[],
  ): Gauge<L>
  text(): Promise<string>
  readonly contentType: string
  stop(): void
}

/** A registry of its own, so that two services in one process never mix; with event-loop delay and memory in it. */
export function createMetrics(prefix: string): Metrics {
  const registry = new Registry()
  const loop = monitorEventLoopDelay({ resolution: 10 })
  loop.enable()
  const metrics: Metrics = {
    counter: (name, help, labels = []) =>
      new Counter({ name: prefix + name, help, labelNames: labels, registers: [registry] }),
    histogram: (name, help, buckets, labels = []) =>
      new Histogram({ name: prefix + name, help, buckets, labelNames: labels, registers: [registry] }),
    gauge: <L extends string = never>(
      name: string,
      help: string,
      collect: (gauge: Gauge<L>) => void | Promise<void>,
      labels: readonly L[] = [],
    ) => {
      const gauge: Gauge<L> = new Gauge<L>({
        name: prefix + name,
        help,
        labelNames: labels,
        registers: [registry],
        collect: () => collect(gauge),
      })
      return gauge
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
    stop: () => loop.disable(),
  }
  metrics.gauge(
    'event_loop_delay_seconds',
    'How late the event loop ran since the last scrape, by quantile.',
    (gauge) => {
      // The monitor counts its own 10 ms resolution as delay.
      const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - 0.01)
      for (const quantile of [0.5, 0.99])
        gauge.set({ quantile: String(quantile) }, seconds(loop.percentile(quantile * 100)))
      gauge.set({ quantile: '1' }, seconds(loop.max))
      loop.reset()
    },
    ['quantile'],
  )
  metrics.gauge('resident_memory_bytes', 'Resident memory of the process.', (gauge) =>
    gauge.set(process.memoryUsage.rss()),
  )
  metrics.gauge('open_handles', 'Open handles and requests that keep the process busy.', (gauge) =>
    gauge.set(process.getActiveResourcesInfo().length),
  )
  return metrics
}
