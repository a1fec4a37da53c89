import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { sourceFiles } from './support/sources.ts'
import { verifies } from './support/verifies.ts'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), 'utf8')

const UNITS = sourceFiles(['deploy'], /\.service$/)
const CONTAINERS = ['Dockerfile', 'compose.yaml', 'compose.nodes.yaml'].map((path) => ({ path, text: read(path) }))

verifies('deploy:settings:known', () => {
  const source = sourceFiles(['src'], /\.ts$/)
    .filter(({ path }) => !path.endsWith('.test.ts'))
    .map(({ text }) => text)
    .join('\n')
  const commands = new Set([...source.matchAll(/\bname: '([a-z-]+)'/g)].map(([, name]) => name))
  expect(UNITS.map(({ path }) => path)).toEqual(
    ['agent', 'bridge', 'hub', 'up'].map((name) => `deploy/switchboard-${name}.service`),
  )
  const unknown = [...UNITS, ...CONTAINERS].flatMap(({ path, text }) => {
    const names = [...text.matchAll(/\b(?:RELAY|AGENT|BRIDGE|SIM|SWITCHBOARD)_[A-Z0-9_]+/g)].map(([name]) => name)
    const started = [...text.matchAll(/(?:cli\.js |command: \[|CMD \[")([a-z]+)\b/g)]
      .map(([, name = '']) => name)
      .filter((name) => !['valkey', 'node', 'server'].includes(name))
    expect(started.length, path).toBeGreaterThan(0)
    return [
      ...names.filter((name) => !source.includes(`'${name}'`)),
      ...started.filter((name) => !commands.has(name)),
    ].map((name) => `${path}: ${name}`)
  })
  expect(unknown).toEqual([])
})

verifies('deploy:dashboard:metrics', () => {
  const page = read('docs/metrics.md')
  const known = new Map(
    [...page.matchAll(/^\| `(switchboard_\w+)` \| (\w+) \| ([^|]*)\|/gm)].map(([, name = '', type, labels = '']) => {
      const allowed = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)
      return [type === 'histogram' ? `${name}_bucket` : name, new Set([...allowed, 'instance', 'le'])]
    }),
  )
  const queries = JSON.parse(read('deploy/grafana-dashboard.json'))
    .panels.flatMap(({ targets = [] }: { targets?: { expr: string; legendFormat: string }[] }) => targets)
    .map(({ expr, legendFormat }: { expr: string; legendFormat: string }) => `${expr} ${legendFormat}`)
  expect(queries.length).toBeGreaterThan(20)
  for (const query of queries) {
    const names = query.match(/switchboard_\w+/g) ?? []
    const labels = [...query.matchAll(/(\w+)(?:=~?")|\{\{(\w+)\}\}|by \((\w+)\)/g)].map((found) =>
      String(found.slice(1).find(Boolean)),
    )
    expect(names, query).toHaveLength(1)
    const allowed = [...(known.get(names[0] ?? '') ?? [])]
    expect(allowed, query).toEqual(expect.arrayContaining(labels))
  }
})

verifies('deploy:nginx:long-polls', () => {
  for (const path of ['deploy/nginx.conf', 'deploy/nginx-tls.conf']) {
    const text = read(path)
    expect(text, path).toMatch(/proxy_buffering off;/)
    expect(text, path).toMatch(/proxy_http_version 1\.1;/)
    expect(text, path).toMatch(/proxy_set_header Host \$http_host;/)
    expect(text, path).toMatch(/proxy_set_header X-Forwarded-For /)
    const limits = [...text.matchAll(/proxy_read_timeout (\d+)([sh]);/g)]
    expect(limits.length, path).toBeGreaterThan(1)
    for (const [, amount, unit] of limits) expect(Number(amount) * (unit === 'h' ? 3600 : 1)).toBeGreaterThan(75)
  }
})
