// Hostile input: `npm run fuzz`. Hub and agent as they run, under requests made from their own schemas; docs/performance.md.
//   --minutes <n>       how long (10)
//   --seed <n>          which requests; printed, so that they can be had again
//   --connections <n>   of a crowd that only begins requests (10000; `ulimit -n` bounds it)
//   --json <file>       the report as JSON too
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { endAll } from '../../bench/processes.ts'
import { fuzz } from './fuzz.ts'

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    connections: { type: 'string', default: '10000' },
    json: { type: 'string' },
  },
})
const seed = Number(options.seed ?? Math.floor(Math.random() * 2 ** 31))
const seconds = Number(options.minutes) * 60
const connections = Number(options.connections)
if (!(seconds > 0) || !Number.isInteger(seed) || !Number.isInteger(connections))
  throw new Error('--minutes takes a number, --seed and --connections a whole one.')

process.on('exit', endAll)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
console.log(`fuzz of ${options.minutes} minutes, --seed ${seed}`)
const report = await fuzz({
  seconds,
  seed,
  connections,
  say: (line) => console.log(`${new Date().toISOString()} ${line}`),
})
const { problems, requests, statuses, crowds, timing } = report
for (const [name, value] of Object.entries({ requests, statuses, crowds, timing }))
  console.log(name, JSON.stringify(value))
console.log(problems.length === 0 ? 'clean: nothing but documented answers' : `PROBLEMS\n${problems.join('\n\n')}`)
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
process.exit(problems.length === 0 ? 0 : 1)
