import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { parsePrometheusText, type Sample } from '../../test/support/prometheus-text.ts'
import { createMetrics, type Metrics } from './metrics.ts'

function testMetrics(prefix = 'relay_'): Metrics {
  const metrics = createMetrics(prefix)
  onTestFinished(() => metrics.stop())
  return metrics
}

/** The monitor looks every 10 ms and tells nobody; it needs one look before and one after what it is to see. */
function monitorTicks(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 40))
}

async function samplesOf(metrics: Metrics, family: string): Promise<Sample[]> {
  const found = parsePrometheusText(await metrics.text()).find(({ name }) => name === family)
  return found?.samples ?? []
}

test('the text is accepted by a strict parser, with names under the prefix', async () => {
  const metrics = testMetrics()
  metrics.counter('messages_total', 'Messages,\nby \\ state.', ['state']).inc({ state: 'queued' }, 3)
  metrics.histogram('wait_seconds', 'Wait.', [0.1, 1], ['route']).observe({ route: 'poll' }, 0.5)
  metrics.gauge('queue', 'Queued.', (gauge) => gauge.set(7))
  metrics.counter('unused_total', 'Never counted.', ['why'])
  const families = parsePrometheusText(await metrics.text())
  expect(families.map(({ name, type }) => `${type} ${name}`)).toEqual(
    expect.arrayContaining(['counter relay_messages_total', 'histogram relay_wait_seconds', 'gauge relay_queue']),
  )
  expect(families.every(({ name }) => name.startsWith('relay_'))).toBe(true)
  expect(families.find(({ name }) => name === 'relay_messages_total')?.help).toBe('Messages,\nby \\ state.')
})

test('any label value comes out as it went in', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (client) => {
      const metrics = createMetrics('')
      metrics.counter('calls_total', 'Calls.', ['client']).inc({ client })
      const [sample] = await samplesOf(metrics, 'calls_total')
      metrics.stop()
      expect(sample?.labels).toEqual({ client })
    }),
    { numRuns: 50, examples: [['a"b\\c\nd'], ['\\n'], ['"},x="']] },
  )
})

test('a gauge is looked up each time somebody asks', async () => {
  const metrics = testMetrics()
  let size = 1
  metrics.gauge('queue', 'Queued.', (gauge) => gauge.set({ client: 'ann' }, size), ['client'])
  expect(await samplesOf(metrics, 'relay_queue')).toMatchObject([{ labels: { client: 'ann' }, value: 1 }])
  size = 2
  expect(await samplesOf(metrics, 'relay_queue')).toMatchObject([{ value: 2 }])
})

test('event-loop delay and memory are there from the start', async () => {
  const metrics = testMetrics()
  const delays = await samplesOf(metrics, 'relay_event_loop_delay_seconds')
  expect(delays.map(({ labels }) => labels.quantile)).toEqual(['0.5', '0.99', '1'])
  expect(delays.every(({ value }) => value >= 0)).toBe(true)
  const [memory] = await samplesOf(metrics, 'relay_resident_memory_bytes')
  expect(memory?.value).toBeGreaterThan(1_000_000)
})

test('a stopped event loop shows in its delay, until somebody has asked', async () => {
  const metrics = testMetrics()
  await monitorTicks()
  const until = performance.now() + 100
  while (performance.now() < until);
  await monitorTicks()
  const longest = async () => (await samplesOf(metrics, 'relay_event_loop_delay_seconds')).at(-1)?.value
  expect(await longest()).toBeGreaterThan(0.05)
  expect(await longest()).toBeLessThan(0.05)
})

test('two services in one process do not mix', async () => {
  const hub = testMetrics('relay_')
  const sim = testMetrics('sim_')
  hub.counter('calls_total', 'Calls.').inc()
  sim.counter('calls_total', 'Calls.').inc(5)
  expect(await samplesOf(hub, 'relay_calls_total')).toMatchObject([{ value: 1 }])
  expect(await hub.text()).not.toContain('sim_')
})

test('the content type names the format', () => {
  expect(testMetrics().contentType).toMatch(/^text\/plain; version=0\.0\.4/)
})
