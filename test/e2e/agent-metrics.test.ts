import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { FINISH_REASONS } from '../../src/agent/model.ts'
import { documentedMetrics, servedMetrics, ticked } from '../support/metrics-page.ts'
import { parsePrometheusText } from '../support/prometheus-text.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

verifies('agenthttp:metrics:documented', async () => {
  const failing = { error: { kind: 'transient' as const, message: 'later' } }
  const agent = await startTestAgent({
    script: { turns: [{ match: 'fail', steps: [failing] }], after: 'Fine.' },
    retries: { firstMs: 1, mostMs: 2 },
  })
  await agent.finish(await agent.session(), 'hello')
  await agent.finish(await agent.session(), 'fail')
  await agent.call('POST', '/run', { body: { goal: 'hello' } })
  await agent.call('GET', '/nothing')
  const { headers, text } = await agent.call('GET', '/metrics')
  expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const families = parsePrometheusText(text)
  const figure = (name: string, labels: Record<string, string> = {}) => {
    const samples = families.find((family) => family.name === `switchboard_agent_${name}`)?.samples ?? []
    return samples.find((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))?.value
  }
  expect(figure('sessions')).toBe(2)
  expect(figure('runs_total', { kind: 'session', finish_reason: 'NoMoreToolCalls' })).toBe(1)
  expect(figure('runs_total', { kind: 'session', finish_reason: 'ProviderStop' })).toBe(1)
  expect(figure('runs_total', { kind: 'stateless', finish_reason: 'NoMoreToolCalls' })).toBe(1)
  expect(figure('model_retries_total', { failure: 'transient' })).toBe(4)
  expect(figure('refused_calls_total', { code: 'not_found' })).toBe(1)
  expect(figure('tokens_total', { direction: 'in' })).toBeGreaterThan(0)
  expect(figure('active_runs', { kind: 'session' })).toBe(0)

  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  expect(documentedMetrics(page, 'switchboard_agent_')).toEqual(servedMetrics(families))
  const valueRows = [...page.slice(page.indexOf('| Label of the agent')).matchAll(/^\| `(\w+)` \| (.*) \|$/gm)]
  const values = new Map(valueRows.map(([, label = '', said = '']) => [label, ticked(said)]))
  const used = families.flatMap(({ samples }) => samples.flatMap(({ labels }) => Object.entries(labels)))
  expect([...values.keys()]).toEqual([...new Set(used.map(([label]) => label))].filter((one) => one !== 'le').sort())
  for (const [label, value] of used.filter(([label]) => ['direction', 'failure', 'kind', 'quantile'].includes(label)))
    expect(values.get(label), label).toContain(value)
  const manual = readFileSync(new URL('../../docs/agent.md', import.meta.url), 'utf8')
  for (const reason of FINISH_REASONS) expect(manual).toContain(`\`${reason}\``)
})
