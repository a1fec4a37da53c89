// All benches, one table: `npm run bench`. docs/performance.md says what the figures mean.
//   --quick          short runs, to see that it works
//   --only <names>   some of hub, agent, scale, growth, with commas
//   --json <file>    where the report goes (bench.json)
//   --docs           the report goes to docs/performance.json, and docs/performance.md is written from it; with --only
//                    the other parts stay as they are there
//   --peer <url>     the same load on another server of the protocol: see bench/peer.ts
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { tableOf } from './figures.ts'
import { describeMachine, machineText } from './machine.ts'
import { STEADY, TSX } from './processes.ts'
import type { Report } from './report.ts'

const KEPT = '../docs/performance.json'
const PARTS = ['hub', 'agent', 'scale', 'growth']
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    json: { type: 'string', default: 'bench.json' },
    docs: { type: 'boolean', default: false },
    peer: { type: 'string' },
  },
})
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'switchboard-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

if (options.peer === undefined) await benchAll()
else await runPart('peer', ['--peer', options.peer])

async function benchAll(): Promise<void> {
  const names = options.only?.split(',') ?? PARTS
  const strange = names.filter((name) => !PARTS.includes(name))
  if (strange.length > 0) throw new Error(`--only takes ${PARTS.join(', ')}; not ${strange.join(', ')}.`)
  const machine = await describeMachine(folder)
  const report: Report = { measuredAt: new Date().toISOString(), machine, figures: [], series: [] }
  for (const name of names) {
    console.log(`\n=== ${name}`)
    const file = join(folder, `${name}.json`)
    await runPart(name, ['--json', file])
    const { figures = [], series = [] }: Partial<Report> = JSON.parse(readFileSync(file, 'utf8'))
    report.figures.push(...figures.map((figure) => ({ ...figure, id: `${name}.${figure.id}` })))
    report.series.push(...series)
  }
  const text = textOf(report)
  writeFileSync(options.json, text)
  console.log(`\n${machineText(machine)}\n\n${tableOf(report.figures, 'ours')}\n\nAll of it is in ${options.json}.`)
  if (!options.docs) return
  writeFileSync(here(KEPT), textOf({ ...report, ...withOthers(report, names) }))
  await runPart('docs', [])
}

function textOf(report: Report): string {
  return `${JSON.stringify(report, null, 2)}\n`
}

/** What the parts that were left out showed last stays. */
function withOthers({ figures, series }: Report, measured: readonly string[]): Pick<Report, 'figures' | 'series'> {
  if (!existsSync(here(KEPT))) return { figures, series }
  const kept: Report = JSON.parse(readFileSync(here(KEPT), 'utf8'))
  const ofPart = (part: string) =>
    (measured.includes(part) ? figures : kept.figures).filter(({ id }) => id.startsWith(`${part}.`))
  return { figures: PARTS.flatMap(ofPart), series: measured.includes('growth') ? series : kept.series }
}

async function runPart(name: string, args: string[]): Promise<void> {
  const quick = options.quick && name !== 'docs' ? ['--quick'] : []
  const child = spawn(process.execPath, [...STEADY, ...TSX, here(`./${name}.ts`), ...args, ...quick], {
    stdio: 'inherit',
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal))
  const [code] = await once(child, 'exit')
  if (code !== 0) process.exit(typeof code === 'number' ? code : 1)
}
