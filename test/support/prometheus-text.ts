/** One figure: `name{labels} value`. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** A metric with all its samples. */
export interface Family {
  name: string
  help: string
  type: string
  samples: Sample[]
}

/**
 * Reads the text exposition format 0.0.4, as strictly as a Prometheus server and a little more: every family has HELP,
 * then TYPE, then its samples in one piece; histograms are whole and cumulative. Throws with the number of the bad line.
 */
export function parsePrometheusText(text: string): Family[] {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let current: Family | undefined
  for (const [index, line] of text.slice(0, -1).split('\n').entries()) {
    try {
      current = readLine(line, { families, seen, current })
    } catch (error) {
      throw new Error(`line ${index + 1} (${line}): ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  for (const family of families.values()) checkFamily(family)
  return [...families.values()]
}

interface State {
  families: Map<string, Family>
  seen: Set<string>
  current: Family | undefined
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const VALUE = /^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]Inf|NaN)$/
const TYPES = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped'])

function readLine(line: string, { families, seen, current }: State): Family | undefined {
  if (line === '') return current
  if (line.startsWith('#')) return readComment(line, families, current)
  const sample = readSample(line)
  if (current === undefined || !belongsTo(sample.name, current)) throw new Error('no TYPE of this metric stands above')
  const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
  if (seen.has(identity)) throw new Error('this sample stands twice')
  seen.add(identity)
  current.samples.push(sample)
  return current
}

function readComment(line: string, families: Map<string, Family>, current: Family | undefined): Family | undefined {
  const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
  if (keyword === undefined) throw new Error('neither HELP nor TYPE')
  if (!NAME.test(name)) throw new Error(`bad metric name ${name}`)
  if (keyword === 'HELP') {
    if (families.has(name)) throw new Error(`${name} has a HELP already`)
    if (current?.type === '') throw new Error(`${current.name} has no TYPE`)
    const family = { name, help: decode(rest, { n: '\n', '\\': '\\' }), type: '', samples: [] }
    families.set(name, family)
    return family
  }
  if (current?.name !== name) throw new Error(`TYPE of ${name} does not follow its HELP`)
  if (current.type !== '') throw new Error(`${name} has a TYPE already`)
  if (!TYPES.has(rest)) throw new Error(`unknown type ${rest}`)
  current.type = rest
  return current
}

function readSample(line: string): Sample {
  const name = /^[^\s{]*/.exec(line)?.[0] ?? ''
  if (!NAME.test(name)) throw new Error(`bad metric name ${name}`)
  const labels: Record<string, string> = {}
  let rest = line.slice(name.length)
  if (rest.startsWith('{')) {
    rest = rest.slice(1)
    while (!rest.startsWith('}')) {
      const found = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(,(?!\})|(?=\}))/.exec(rest)
      if (found === null) throw new Error(`bad labels at ${rest}`)
      const [whole, label = '', value = ''] = found
      if (label.startsWith('__') || Object.hasOwn(labels, label)) throw new Error(`bad label name ${label}`)
      labels[label] = decode(value, { n: '\n', '\\': '\\', '"': '"' })
      rest = rest.slice(whole.length)
    }
    rest = rest.slice(1)
  }
  const [, value = '', timestamp] = /^ (\S+)(?: (\S+))?$/.exec(rest) ?? []
  if (!VALUE.test(value)) throw new Error(`bad value ${value}`)
  if (timestamp !== undefined && !/^-?\d+$/.test(timestamp)) throw new Error(`bad timestamp ${timestamp}`)
  return { name, labels, value: Number(value.replace('Inf', 'Infinity')) }
}

function decode(text: string, escapes: Record<string, string>): string {
  return text.replace(/\\(.?)/g, (_whole, char: string) => {
    const plain = escapes[char]
    if (plain === undefined) throw new Error(`bad escape \\${char}`)
    return plain
  })
}

function belongsTo(name: string, { name: family, type }: Family): boolean {
  if (type === '') return false
  if (type === 'histogram') return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name)
  if (type === 'summary') return [family, `${family}_sum`, `${family}_count`].includes(name)
  return name === family
}

function checkFamily({ name, type, samples }: Family): void {
  if (type === '') throw new Error(`${name} has no TYPE`)
  if (type === 'counter' && samples.some(({ value }) => !(value >= 0))) throw new Error(`${name} counts below zero`)
  if (type === 'histogram') for (const series of seriesOf(samples)) checkHistogram(name, series)
}

/** The samples of a histogram, by their labels but `le`. */
function seriesOf(samples: readonly Sample[]): Sample[][] {
  const series = new Map<string, Sample[]>()
  for (const sample of samples) {
    const labels = Object.entries(sample.labels).filter(([label]) => label !== 'le')
    const key = JSON.stringify(labels.sort())
    series.set(key, [...(series.get(key) ?? []), sample])
  }
  return [...series.values()]
}

function checkHistogram(name: string, series: readonly Sample[]): void {
  const buckets = series.filter((sample) => sample.name === `${name}_bucket`)
  const bounds = buckets.map(({ labels }) => Number((labels.le ?? 'missing').replace('Inf', 'Infinity')))
  const counts = buckets.map(({ value }) => value)
  const rises = (values: readonly number[], least: number) =>
    values.every((value, at) => at === 0 || value - (values[at - 1] ?? 0) >= least)
  if (bounds.some(Number.isNaN) || !rises(bounds, Number.MIN_VALUE)) throw new Error(`${name} has bad bucket bounds`)
  if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name} has no +Inf bucket`)
  if (!rises(counts, 0)) throw new Error(`${name} has buckets that are not cumulative`)
  const total = series.find((sample) => sample.name === `${name}_count`)?.value
  if (total !== counts.at(-1)) throw new Error(`${name} has a _count that is not its +Inf bucket`)
  if (!series.some((sample) => sample.name === `${name}_sum`)) throw new Error(`${name} has no _sum`)
}
