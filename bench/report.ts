import { type Figure, isNumber, number, type Series } from './figures.ts'
import { type Machine, machineText } from './machine.ts'

/** Everything that `npm run bench` has measured. JSON has null where a number is none. */
export interface Report {
  measuredAt: string
  machine: Machine
  figures: Figure[]
  series: Series[]
}

const BEGIN = '<!-- figures: written by npm run bench:docs -->'
const END = '<!-- end of figures -->'
/** Costs that stay below so many times the first are called flat. */
const FLAT = 1.5

/** The page with its tables written anew. */
export function withFigures(page: string, report: Report): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (begin === -1 || end < begin) throw new Error(`The page has no place for figures: ${BEGIN} … ${END}`)
  return `${page.slice(0, begin)}${BEGIN}\n\n${tables(report)}\n${page.slice(end)}`
}

function tables({ measuredAt, machine, figures, series }: Report): string {
  const rows = figures.map(({ name, unit, ours, bare, ratio, aim, isMet }) => [
    `${name.trimStart()}${unit === '' ? '' : `, ${unit}`}`,
    number(ours.median),
    number(bare.median),
    isNumber(ratio.median) ? ratio.median.toFixed(2) : '',
    isNumber(ratio.median) ? `${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}` : '',
    aim === null ? '' : `${aim}: ${isMet ? 'met' : '**not met**'}`,
  ])
  const growth = series.map(({ name, unit, points }) => [
    `${name}, ${unit}`,
    points.map(({ size, cost }) => `${number(cost)} up to ${size.toLocaleString('en')}`).join(', '),
    isFlat(points) ? 'yes' : '**no**',
  ])
  return [
    `${machineText(machine)}. Measured ${measuredAt.slice(0, 10)}.`,
    '',
    ...table(['', 'ours', 'bare', 'ours / bare', 'spread', 'aim'], rows),
    '',
    ...(growth.length === 0
      ? []
      : [...table(['one more costs', '', 'linear'], growth), '', '![growth](images/growth.svg)', '']),
  ].join('\n')
}

function table(head: readonly string[], rows: readonly string[][]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)]
}

function isFlat(points: Series['points']): boolean {
  return points.every(({ cost }) => cost <= FLAT * (points[0]?.cost ?? 0))
}

const WIDTH = 640
const HEIGHT = 320
const MARGIN = 50
const COLOURS = ['#1f6feb', '#d1242f', '#1a7f37']

/** The plot: cost of one more, as a multiple of the first, over how many there are. A level line is linear growth. */
export function growthPlot(series: readonly Series[]): string {
  const sizes = [...new Set(series.flatMap(({ points }) => points.map(({ size }) => size)))].sort((a, b) => a - b)
  const [least = 1, most = 10] = [sizes[0], sizes.at(-1)]
  const multiples = series.map(({ points }) =>
    points.map(({ size, cost }) => ({ size, times: cost / (points[0]?.cost || 1) })),
  )
  const top = Math.max(2, ...multiples.flat().map(({ times }) => times))
  const x = (size: number) => MARGIN + ((WIDTH - 2 * MARGIN) * Math.log(size / least)) / Math.log(most / least || 10)
  const y = (times: number) => HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * times) / top
  const at = (value: number) => value.toFixed(1)
  const lines = multiples.map((points, index) => {
    const path = points.map(({ size, times }) => `${at(x(size))},${at(y(times))}`).join(' ')
    return `<polyline fill="none" stroke="${COLOURS[index % COLOURS.length]}" stroke-width="2" points="${path}"/>`
  })
  const names = series.map(
    ({ name }, index) =>
      `<text x="${MARGIN + 8}" y="${MARGIN + 16 * index}" fill="${COLOURS[index % COLOURS.length]}">${name}</text>`,
  )
  const ticks = sizes.map(
    (size) =>
      `<text x="${at(x(size))}" y="${HEIGHT - MARGIN + 20}" text-anchor="middle">${size.toLocaleString('en')}</text>`,
  )
  const marks = [0, 1, 2].map(
    (times) => `<text x="${MARGIN - 8}" y="${at(y(times) + 4)}" text-anchor="end">${times}×</text>`,
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    '<title>What one more message, session and event costs as their number grows</title>',
    '<rect width="100%" height="100%" fill="#fff"/>',
    `<path d="M${MARGIN} ${MARGIN / 2}V${HEIGHT - MARGIN}H${WIDTH - MARGIN}" fill="none" stroke="#888"/>`,
    `<path d="M${MARGIN} ${at(y(1))}H${WIDTH - MARGIN}" stroke="#ccc" stroke-dasharray="4"/>`,
    ...lines,
    ...names,
    ...ticks,
    ...marks,
    '</svg>',
    '',
  ].join('\n')
}
