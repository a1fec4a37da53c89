import { expect, test } from 'vitest'
import { figureOf } from '../bench/figures.ts'
import { growthPlot, type Report, withFigures } from '../bench/report.ts'

const PAGE = 'before\n\n<!-- figures: written by npm run bench:docs -->\nold\n<!-- end of figures -->\n\nafter\n'
const AIM = { text: 'at least 0.60', isMet: ({ ratio }: { ratio: { median: number } }) => ratio.median >= 0.6 }
const KIND = { id: 'rate', name: '  messages', unit: '1/s', aim: AIM }
const SERIES = [
  { id: 'm', name: 'a message', unit: 'µs', points: [10, 11, 30].map((cost, at) => ({ size: 10 ** (3 + at), cost })) },
]

function report(): Report {
  const machine = { cpu: 'a chip', cores: 2, kernel: '6', node: '20.1.0', busyPercent: 1, fsyncMs: 0.1 }
  const pairs = [300, 500, 400].map((rate) => ({ ours: { rate }, bare: { rate: 1_000 } }))
  const alone = figureOf({ id: 'p99', name: 'alone', unit: 'ms' }, [{ ours: { p99: 3 }, bare: {} }])
  const made = { measuredAt: '2026-01-02T03:04:05Z', machine, figures: [figureOf(KIND, pairs), alone], series: SERIES }
  // As it comes from the file: JSON has no NaN.
  return JSON.parse(JSON.stringify(made))
}

test('the page gets tables with medians, ratios, spread and aims, and the rest of it stays', () => {
  const page = withFigures(PAGE, report())
  expect(page).toMatch(/^before\n[\s\S]*\nafter\n$/)
  expect(page).not.toContain('old')
  expect(page).toContain('2 × a chip, Node 20.1.0')
  expect(page).toContain('| messages, 1/s | 400 | 1,000 | 0.40 | 0.30–0.50 | at least 0.60: **not met** |')
  expect(page).toContain('| alone, ms | 3.00 |  |  |  |  |')
})

test('a cost that grows with the number of things is told', () => {
  expect(withFigures(PAGE, report())).toContain('30.0 up to 100,000 | **no** |')
})

test('written twice it is the same page', () => {
  const once = withFigures(PAGE, report())
  expect(withFigures(once, report())).toBe(once)
})

test('a page without a place for figures is left alone', () => {
  expect(() => withFigures('a page', report())).toThrow('no place for figures')
})

test('the plot has a line for each series and stays inside of its frame', () => {
  const svg = growthPlot(SERIES)
  expect(svg.match(/<polyline/g)).toHaveLength(1)
  const numbers = [...(/points="([^"]*)"/.exec(svg)?.[1] ?? '').matchAll(/[\d.]+/g)].map(Number)
  expect(numbers).toHaveLength(6)
  expect(Math.max(...numbers)).toBeLessThanOrEqual(640)
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0)
})
