/** What one run found, by the id of the figure. */
export type Run = Record<string, number>

/** Runs of our server and of the bare one that were made next to each other. */
export interface Pair {
  ours: Run
  bare: Run
}

/** What is measured, and what is aimed at. */
export interface FigureKind {
  id: string
  name: string
  unit: string
  aim?: { text: string; isMet: (figure: Pick<Figure, 'ours' | 'bare' | 'ratio'>) => boolean }
}

export interface Spread {
  median: number
  least: number
  most: number
}

export interface Figure {
  id: string
  name: string
  unit: string
  ours: Spread
  bare: Spread
  /** Ours by bare, of each pair. */
  ratio: Spread
  aim: string | null
  isMet: boolean | null
}

/** What one more costs when there are so many. */
export interface Point {
  size: number
  cost: number
}

/** How a cost grows. */
export interface Series {
  id: string
  name: string
  unit: string
  points: Point[]
}

/** The figure that these pairs of runs give. */
export function figureOf({ id, name, unit, aim }: FigureKind, pairs: readonly Pair[]): Figure {
  const ours = spreadOf(pairs.map((pair) => pair.ours[id] ?? Number.NaN))
  const bare = spreadOf(pairs.map((pair) => pair.bare[id] ?? Number.NaN))
  const ratio = spreadOf(pairs.map((pair) => (pair.ours[id] ?? Number.NaN) / (pair.bare[id] ?? Number.NaN)))
  return { id, name, unit, ours, bare, ratio, aim: aim?.text ?? null, isMet: aim?.isMet({ ours, bare, ratio }) ?? null }
}

/** A table for people. */
export function tableOf(figures: readonly Figure[], server: string): string {
  const rows = [
    ['', server, 'bare', 'ratio', '(spread)', 'aim', ''],
    ...figures.map(({ name, unit, ours, bare, ratio, aim, isMet }) => [
      unit === '' ? name : `${name}, ${unit}`,
      number(ours.median),
      number(bare.median),
      isNumber(ratio.median) ? ratio.median.toFixed(2) : '',
      isNumber(ratio.median) ? `${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}` : '',
      aim ?? '',
      isMet === null ? '' : isMet ? 'met' : 'NOT MET',
    ]),
  ]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const isRight = (column: number) => column >= 1 && column <= 4
  const line = (row: string[]) =>
    row
      .map((text, column) => (isRight(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  return rows.map(line).join('\n')
}

/** The value below which `share` of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** What one run found, in a line. */
export function brief(run: Run): string {
  const parts = Object.entries(run).map(([id, value]) => `${id} ${value >= 100 ? Math.round(value) : value.toFixed(2)}`)
  return parts.join(', ')
}

function spreadOf(values: readonly number[]): Spread {
  return { median: quantile(values, 0.5), least: Math.min(...values), most: Math.max(...values) }
}

/** As a table shows it; nothing where nothing was measured. */
export function number(value: number | null): string {
  if (!isNumber(value)) return ''
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(value >= 10 ? 1 : 2)
}

/** Something was measured; what was not is null in a report that was kept. */
export function isNumber(value: number | null): value is number {
  return value !== null && Number.isFinite(value)
}
