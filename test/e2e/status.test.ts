import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import type { HubStore } from '../../src/hub/store/port.ts'
import { createMetrics } from '../../src/kit/metrics.ts'
import { documentedMetrics, servedMetrics, ticked } from '../support/metrics-page.ts'
import { parsePrometheusText } from '../support/prometheus-text.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const PREFIX = 'switchboard_hub_'

const health = async ({ call }: TestHub) => (await call('GET', '/health')).body
const metricsOf = async ({ call }: TestHub) => parsePrometheusText((await call('GET', '/metrics')).text)
const upTo = (hub: TestHub, state: string) => until(async () => (await health(hub)).upstream_detail.state === state)

verifies(['health:report:fields', 'health:report:ok', 'health:report:always-200'], async () => {
  const hub = await startTestHub()
  await upTo(hub, 'connected')
  const { status, headers, body } = await hub.call('GET', '/health')
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  const { upstream_detail: detail, ...report } = body
  expect(report).toEqual({ status: 'ok', upstream: 'connected', clients: { online: 0, total: 0 } })
  expect(Object.keys(detail)).toEqual([
    'account',
    'state',
    'reason',
    'since',
    'next_retry_at',
    'action',
    'last_poll_at',
    'accounts',
  ])
  expect((await hub.call('HEAD', '/health')).status).toBe(200)
})

verifies(['health:report:degraded', 'health:report:always-200'], async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  await upTo(hub, 'connected')
  hub.sim.control.faults.add({ kind: 'down' })
  await upTo(hub, 'reconnecting')
  const { status, body } = await hub.call('GET', '/health')
  expect(status).toBe(200)
  expect(body).toMatchObject({ status: 'degraded', upstream: 'reconnecting' })
  expect((await hub.call('GET', '/ready')).status).toBe(200)
  hub.sim.control.faults.clear()
  await upTo(hub, 'connected')
  expect(await health(hub)).toMatchObject({ status: 'ok', upstream: 'connected' })
  expect((await hub.poll(token)).status).toBe(200)
})

verifies(['health:report:throttled', 'health:report:detail'], async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  await hub.say('ann', 'hello')
  const { body } = await hub.poll(token)
  hub.sim.control.faults.add({ kind: 'throttle' })
  expect((await hub.send(token, body.messages[0].context_token, 'hi')).status).toBe(429)
  const throttled = await health(hub)
  expect(throttled).toMatchObject({ status: 'ok', upstream: 'connected', upstream_detail: { state: 'throttled' } })
  expect(throttled.upstream_detail.next_retry_at).toMatch(/Z$/)
  hub.sim.control.faults.clear()
  hub.sim.control.faults.add({ kind: 'expired' })
  await upTo(hub, 'needs_login')
  expect(await health(hub)).toMatchObject({ status: 'degraded', upstream: 'reconnecting' })
  expect((await health(hub)).upstream_detail.action).toMatch(/./)
})

verifies('health:report:throttled', 'what does not speak the protocol is shown as reconnecting', async () => {
  const hub = await startTestHub()
  hub.sim.control.faults.add({ kind: 'http_error', status: 404 })
  await upTo(hub, 'misconfigured')
  expect(await health(hub)).toMatchObject({ status: 'degraded', upstream: 'reconnecting' })
})

verifies(['health:report:counts', 'presence:online:recent-call'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const counts = async () => (await health(hub)).clients
  const [first] = [await hub.register('first'), await hub.register('second'), await hub.register('third')]
  expect(await counts()).toEqual({ online: 0, total: 3 })
  await hub.call('POST', '/relay/bot/getconfig', { token: first })
  expect(await counts()).toEqual({ online: 1, total: 3 })
  hub.advance(89_000)
  expect(await counts()).toEqual({ online: 1, total: 3 })
  hub.advance(1_001)
  expect(await counts()).toEqual({ online: 0, total: 3 })
  await hub.poll(first)
  await hub.call('DELETE', '/hub/clients/first')
  expect(await counts()).toEqual({ online: 0, total: 2 })
})

verifies(['health:ready:ready', 'health:ready:starting'], async () => {
  const sim = (await startTestHub()).sim
  sim.control.faults.add({ kind: 'slow', delay_ms: 60_000, only: 'notifystart' })
  const hub = await startTestHub({ sim })
  const starting = await hub.call('GET', '/ready')
  expect([starting.status, starting.body]).toEqual([503, { ready: false, reason: 'starting' }])
  // Everything is served already, as /health says too.
  expect(await health(hub)).toMatchObject({ status: 'degraded', upstream_detail: { state: 'connecting' } })
  const { sim: quick } = await startTestHub()
  const ready = await startTestHub({ sim: quick })
  await until(async () => (await ready.call('GET', '/ready')).status === 200)
  expect((await ready.call('GET', '/ready')).body).toEqual({ ready: true })
})

test('a hub whose service cannot be reached is ready all the same', async () => {
  const { sim } = await startTestHub()
  sim.control.faults.add({ kind: 'down' })
  const hub = await startTestHub({ sim })
  await upTo(hub, 'reconnecting')
  expect((await hub.call('GET', '/ready')).status).toBe(200)
})

verifies('health:ready:draining', async () => {
  const hub = await startTestHub()
  await until(async () => (await hub.call('GET', '/ready')).status === 200)
  // The goodbye to the service takes a while, and so does the draining.
  hub.sim.control.faults.add({ kind: 'slow', delay_ms: 1_000, only: 'notifystop' })
  const stopped = hub.stop()
  const { status, body } = await hub.call('GET', '/ready')
  expect([status, body]).toEqual([503, { ready: false, reason: 'shutting down' }])
  await stopped
})

/** A store whose lazy writes and operations go through `write`. */
async function brokenStore(write: () => Promise<void>): Promise<HubStore> {
  const store = await openMemoryStore()
  onTestFinished(() => store.close())
  return {
    ...store,
    deliveries: { ...store.deliveries, flush: () => write().then(() => store.deliveries.flush()) },
    deadLetters: {
      ...store.deadLetters,
      discard: (id, now) => write().then(() => store.deadLetters.discard(id, now)),
    },
  }
}

verifies('health:ready:store', async () => {
  let works = true
  const store = await brokenStore(async () => {
    if (!works) throw new Error('disk I/O error')
  })
  const hub = await startTestHub({ store })
  await until(async () => (await hub.call('GET', '/ready')).status === 200)
  works = false
  const { status, body } = await hub.call('GET', '/ready')
  expect([status, body]).toEqual([503, { ready: false, reason: 'the store does not answer' }])
  works = true
  expect((await hub.call('GET', '/ready')).status).toBe(200)
})

verifies('health:ready:store', 'a store that hangs does not make /ready hang', async () => {
  const hub = await startTestHub({ store: await brokenStore(() => new Promise(() => {})) })
  await upTo(hub, 'connected')
  const { status, body } = await hub.call('GET', '/ready')
  expect([status, body.ready]).toEqual([503, false])
})

verifies('health:ready:store', 'a store that is closed is found out though nothing waits to be written', async () => {
  const hub = await startTestHub()
  await until(async () => (await hub.call('GET', '/ready')).status === 200)
  await hub.store.close()
  expect((await hub.call('GET', '/ready')).status).toBe(503)
  // The figures that need no store are still told.
  const letters = (await metricsOf(hub)).find(({ name }) => name === `${PREFIX}dead_letters`)
  expect(letters?.samples[0]?.value).toBe(-1)
})

/** A hub on which everything has happened that has a label. */
async function busyHub(): Promise<TestHub> {
  const hub = await startTestHub({ holdMs: 20, mediaRelay: true })
  const token = await hub.register('a "quoted" \\ name')
  await hub.call('GET', '/relay/bot/getupdates')
  await hub.call('POST', '/relay/bot/getupdates')
  await hub.say('ann', 'hello')
  const { body } = await hub.poll(token)
  await hub.send(token, body.messages[0].context_token, 'hi')
  await hub.call('GET', '/c2c/download?encrypted_query_param=none')
  await hub.register('gone')
  await hub.say('ann', '@gone hello')
  await hub.call('DELETE', '/hub/clients/gone')
  return hub
}

verifies(['metrics:text:format', 'metrics:loop:delay'], async () => {
  const hub = await busyHub()
  const { status, headers, text } = await hub.call('GET', '/metrics')
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const families = parsePrometheusText(text)
  const figure = (name: string, labels: Record<string, string> = {}) => {
    const samples = families.find((family) => family.name === PREFIX + name)?.samples ?? []
    return samples.find((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))?.value
  }
  expect(figure('clients', { status: 'online' })).toBe(1)
  expect(figure('messages_total', { state: 'routed' })).toBe(2)
  expect(figure('deliveries_total', { kind: 'first' })).toBe(1)
  expect(figure('sends_total', { outcome: 'accepted' })).toBeGreaterThanOrEqual(1)
  expect(figure('polls_total', { answer: 'messages' })).toBe(1)
  expect(figure('dead_letters_total', { reason: 'client_removed' })).toBe(1)
  expect(figure('dead_letters')).toBe(1)
  expect(figure('refused_tokens_total')).toBe(1)
  expect(figure('upstream_up')).toBe(1)
  expect(figure('resident_memory_bytes')).toBeGreaterThan(1_000_000)
  for (const quantile of ['0.5', '0.99', '1']) {
    expect(figure('event_loop_delay_seconds', { quantile })).toBeGreaterThanOrEqual(0)
  }
})

verifies('metrics:text:escaped', async () => {
  const hub = await busyHub()
  const queues = (await metricsOf(hub)).find(({ name }) => name === `${PREFIX}queue_messages`)
  // The deleted client is no longer there.
  expect(queues?.samples.map(({ labels }) => labels)).toEqual([{ client: 'a "quoted" \\ name' }])
  // No client name has a line break in it, but should one ever come so far, it breaks nothing.
  const metrics = createMetrics('x_')
  onTestFinished(metrics.stop)
  const client = 'a\nb"} 1\n# HELP y y\n\\n'
  metrics.gauge('queue', 'A queue.', (gauge) => gauge.set({ client }, 1), ['client'])
  const family = parsePrometheusText(await metrics.text()).find(({ name }) => name === 'x_queue')
  expect(family?.samples).toEqual([{ name: 'x_queue', labels: { client }, value: 1 }])
})

verifies('metrics:text:documented', async () => {
  const families = await metricsOf(await busyHub())
  const whole = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const page = whole.slice(0, whole.indexOf('# Metrics of the agent server'))
  const served = servedMetrics(families)
  expect(documentedMetrics(page, 'switchboard_hub_')).toEqual(served)
  for (const { name } of served) expect(name).toMatch(/^switchboard_hub_[a-z_]+$/)

  // Each label has its row, and only values that stand there, but for names that people chose.
  const valueRows = [
    ...page
      .slice(page.indexOf('| Label |'), page.indexOf('# Metrics of the agent'))
      .matchAll(/^\| `(\w+)` \| (.*) \|$/gm),
  ]
  const values = new Map(valueRows.map(([, label = '', text = '']) => [label, ticked(text)]))
  const used = families.flatMap(({ samples }) => samples.flatMap(({ labels }) => Object.entries(labels)))
  expect([...values.keys()]).toEqual([...new Set(used.map(([label]) => label))].filter((one) => one !== 'le').sort())
  for (const [label, value] of used.filter(([label]) => !['le', 'client', 'account'].includes(label)))
    expect(values.get(label), label).toContain(value)
})
