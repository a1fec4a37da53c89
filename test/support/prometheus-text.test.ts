import { expect, test } from 'vitest'
import { parsePrometheusText } from './prometheus-text.ts'

test('a text with every kind of metric is read', () => {
  const text = [
    '# HELP jobs_total Jobs\\nby \\\\ state.',
    '# TYPE jobs_total counter',
    'jobs_total{state="a \\"b\\"\\n\\\\",kind=""} 3 1700000000000',
    'jobs_total 1e3',
    '',
    '# HELP wait Wait.',
    '# TYPE wait histogram',
    'wait_bucket{le="0.1"} 1',
    'wait_bucket{le="+Inf"} 2',
    'wait_sum 0.5',
    'wait_count 2',
    '# HELP level Level.',
    '# TYPE level gauge',
    'level -Inf',
    '',
  ].join('\n')
  const [jobs, wait, level] = parsePrometheusText(text)
  expect(jobs?.help).toBe('Jobs\nby \\ state.')
  expect(jobs?.samples[0]).toEqual({ name: 'jobs_total', labels: { state: 'a "b"\n\\', kind: '' }, value: 3 })
  expect(wait?.samples).toHaveLength(4)
  expect(level?.samples[0]?.value).toBe(Number.NEGATIVE_INFINITY)
})

const HEAD = '# HELP a A.\n# TYPE a gauge\n'
const HISTOGRAM = '# HELP a A.\n# TYPE a histogram\n'

test.each([
  ['without an end of line', `${HEAD}a 1`],
  ['with a sample before its TYPE', 'a 1\n'],
  ['with TYPE before HELP', '# TYPE a gauge\n# HELP a A.\na 1\n'],
  ['with HELP alone', '# HELP a A.\n'],
  ['with HELP twice', `${HEAD}a 1\n${HEAD}`],
  ['with a family in two pieces', `${HEAD}a 1\n# HELP b B.\n# TYPE b gauge\nb 1\na{x="1"} 1\n`],
  ['with an unknown type', '# HELP a A.\n# TYPE a number\n'],
  ['with a bad metric name', '# HELP a-b A.\n# TYPE a-b gauge\na-b 1\n'],
  ['with a bad label name', `${HEAD}a{x-y="1"} 1\n`],
  ['with a reserved label name', `${HEAD}a{__x="1"} 1\n`],
  ['with a label twice', `${HEAD}a{x="1",x="2"} 1\n`],
  ['with a comma too many', `${HEAD}a{x="1",} 1\n`],
  ['with a bad escape', `${HEAD}a{x="\\t"} 1\n`],
  ['with a bad escape in its help', '# HELP a \\"A\\".\n# TYPE a gauge\n'],
  ['with an open quote', `${HEAD}a{x="1} 1\n`],
  ['with a value that is none', `${HEAD}a one\n`],
  ['with no value', `${HEAD}a\n`],
  ['with a sample twice', `${HEAD}a{x="1",y="2"} 1\na{y="2",x="1"} 1\n`],
  ['with a counter below zero', '# HELP a A.\n# TYPE a counter\na -1\n'],
  ['with a histogram without +Inf', `${HISTOGRAM}a_bucket{le="1"} 1\na_sum 1\na_count 1\n`],
  ['with buckets that fall', `${HISTOGRAM}a_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n`],
  ['with a wrong count', `${HISTOGRAM}a_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n`],
  ['without a sum', `${HISTOGRAM}a_bucket{le="+Inf"} 1\na_count 1\n`],
  ['with Windows line ends', `${HEAD}a 1\r\n`],
])('a text %s is refused', (_what, text) => {
  expect(() => parsePrometheusText(text)).toThrow()
})
