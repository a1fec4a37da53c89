// Endurance: `npm run soak`. Hub, bridge and agent under mixed load while things break; docs/performance.md says more.
//   --minutes <n>   how long (10)
//   --seed <n>      what breaks when; printed, so that it can be had again
//   --json <file>   the report as JSON too
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { endAll } from '../../bench/processes.ts'
import { SIGNS } from './life-signs.ts'
import { type SoakReport, soak } from './soak.ts'
import { PROGRAMS } from './stage.ts'

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string' }, json: { type: 'string' } },
})
const seed = Number(options.seed ?? Math.floor(Math.random() * 2 ** 31))
const seconds = Number(options.minutes) * 60
if (!(seconds > 0) || !Number.isInteger(seed)) throw new Error('--minutes takes a number, --seed a whole one.')

process.on('exit', endAll)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
console.log(`soak of ${options.minutes} minutes, --seed ${seed}`)
const report = await soak({ seconds, seed, say: (line) => console.log(`${new Date().toISOString()} ${line}`) })
console.log(summary(report))
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
process.exit(report.problems.length === 0 ? 0 : 1)

function summary({ messages, runs, faults, crashes, afterWarmUp, atTheEnd, problems }: SoakReport): string {
  const signs = PROGRAMS.flatMap((name) =>
    SIGNS.map((sign) => `  ${name.padEnd(7)}${sign.padEnd(12)}${afterWarmUp[name][sign]} -> ${atTheEnd[name][sign]}`),
  )
  return [
    `messages ${JSON.stringify(messages)}`,
    `runs     ${JSON.stringify(runs)}`,
    `faults   ${JSON.stringify(faults)}`,
    `crashes  ${JSON.stringify(crashes)}`,
    'after warm-up -> at the end',
    ...signs,
    ...(problems.length === 0 ? ['clean: nothing lost, nothing grown'] : ['PROBLEMS', ...problems]),
  ].join('\n')
}
