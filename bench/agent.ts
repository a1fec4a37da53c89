// Measures the agent server against a bare one, side by side: `npm run bench:agent`. docs/performance.md says what it means.
//   --quick          a short run, to see that it works
//   --json <file>    the figures as JSON too
//   --only <parts>   some of the parts, with commas
//   --durable        with a data directory
//   --profile <dir>  CPU profiles of the agent server
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Type } from 'typebox'
import { checker } from '../src/kit/schema.ts'
import { type AgentCall, FannedOut, Ran } from './agent/calls.ts'
import { type AgentServer, FAN_OUT_CALLS, startAgent, startBareAgent, teachBare } from './agent/servers.ts'
import { brief, type Figure, type FigureKind, figureOf, type Pair, quantile, type Run, tableOf } from './figures.ts'
import { benchFolder, endWith } from './folder.ts'
import { describeMachine, machineText } from './machine.ts'
import { type Part, startPart, TSX } from './processes.ts'

const FULL = { pairs: 3, runs: 1_000, atOnce: 3_000, idle: 10_000 }
const QUICK = { pairs: 1, runs: 100, atOnce: 300, idle: 1_000 }
/** One event for each call, one for each result, `message` and `done`. */
const FAN_OUT_EVENTS = 2 * FAN_OUT_CALLS + 2
const CALL_MS = 120_000

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    only: { type: 'string' },
    durable: { type: 'boolean', default: false },
    profile: { type: 'string' },
  },
})
const SIZES = options.quick ? QUICK : FULL

const PARTS: Record<string, { kinds: FigureKind[]; measure: (server: AgentServer) => Promise<Run> }> = {
  'run-1': {
    measure: (server) => measureRuns(server, SIZES.runs, 1),
    kinds: [
      { id: 'p50', name: 'a run with one tool call, p50', unit: 'ms', aim: over(2) },
      { id: 'p99', name: 'a run with one tool call, p99', unit: 'ms' },
      { id: 'first', name: '  its first event, p50', unit: 'ms', aim: under(5) },
      { id: 'cpu', name: '  CPU of the server', unit: 'µs each' },
    ],
  },
  'run-100': {
    measure: (server) => measureRuns(server, SIZES.atOnce, 100),
    kinds: [
      { id: 'rate', name: 'runs, 100 at once', unit: '1/s', aim: atLeast(500) },
      { id: 'p99', name: '  p99', unit: 'ms' },
      { id: 'cpu', name: '  CPU of the server', unit: 'µs each' },
    ],
  },
  'fan-1': { measure: (server) => measureFanOut(server, 1), kinds: [fanOutKind(1)] },
  'fan-100': { measure: (server) => measureFanOut(server, 100), kinds: [fanOutKind(100)] },
  'fan-1000': { measure: (server) => measureFanOut(server, 1_000), kinds: [fanOutKind(1_000)] },
  idle: {
    measure: (server) => measureIdle(server, SIZES.idle),
    kinds: [{ id: 'heap', name: 'an idle session, JavaScript heap', unit: 'kB', aim: under(5) }],
  },
}

const checkIds = checker(Type.Array(Type.String()))
const checkRan = checker(Ran)
const checkFannedOut = checker(FannedOut)
const folder = benchFolder()
const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./agent/load.ts', import.meta.url))])

endWith(run())

async function run(): Promise<void> {
  const names = options.only?.split(',') ?? Object.keys(PARTS)
  const wanted = Object.entries(PARTS).filter(([name]) => names.includes(name))
  if (wanted.length === 0) throw new Error(`--only takes ${Object.keys(PARTS).join(', ')}.`)
  const machine = await describeMachine(folder)
  console.log(machineText(machine))
  console.log(`The server and its callers are a process each. State: ${options.durable ? 'on disk' : 'in memory'}.\n`)
  const figures: Figure[] = []
  for (const [name, { kinds, measure }] of wanted) {
    const pairs = await inPairs(name, measure)
    for (const kind of kinds) figures.push({ ...figureOf(kind, pairs), id: `${name}.${kind.id}` })
  }
  console.log(`\n${tableOf(figures, 'agent')}`)
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, figures }, null, 2)}\n`)
}

/** Measures agent, bare, agent, bare …, each in processes of its own. */
async function inPairs(name: string, measure: (server: AgentServer) => Promise<Run>): Promise<Pair[]> {
  const pairs: Pair[] = []
  const nodeArgs = options.profile ? ['--cpu-prof', '--cpu-prof-dir', options.profile] : []
  for (let index = 0; index < SIZES.pairs; index += 1) {
    const dataDir = options.durable ? mkdtempSync(join(folder, 'data-')) : undefined
    const agent = await startAgent(folder, nodeArgs, { dataDir })
    const bare = await startBareAgent()
    await teachBare(agent, bare)
    const pair = { ours: await measure(agent), bare: await measure(bare) }
    await Promise.all([agent.stop(), bare.stop()])
    pairs.push(pair)
    console.log(`${name}, pair ${index + 1}\n  agent ${brief(pair.ours)}\n  bare  ${brief(pair.bare)}`)
  }
  return pairs
}

async function measureRuns({ port, usage }: AgentServer, count: number, atOnce: number): Promise<Run> {
  const warm = checkIds(await ask({ do: 'create', port, count: Math.ceil(count / 5) }))
  await ask({ do: 'run', port, sessions: warm, atOnce })
  const sessions = checkIds(await ask({ do: 'create', port, count }))
  const before = await usage()
  const { tookMs, firstMs, doneMs } = checkRan(await ask({ do: 'run', port, sessions, atOnce }))
  const after = await usage()
  return {
    rate: count / (tookMs / 1000),
    p50: quantile(doneMs, 0.5),
    p99: quantile(doneMs, 0.99),
    first: quantile(firstMs, 0.5),
    cpu: ((after.cpuMs - before.cpuMs) * 1000) / count,
  }
}

async function measureFanOut({ port, usage }: AgentServer, readers: number): Promise<Run> {
  const [warm = '', session = ''] = checkIds(await ask({ do: 'create', port, count: 2 }))
  await ask({ do: 'subscribe', port, session: warm, count: readers })
  await ask({ do: 'fanOut', port, session: warm })
  await ask({ do: 'hangUp' })
  await ask({ do: 'subscribe', port, session, count: readers })
  const before = await usage()
  const { tookMs, bytes } = checkFannedOut(await ask({ do: 'fanOut', port, session }))
  const after = await usage()
  await ask({ do: 'hangUp' })
  const events = readers * FAN_OUT_EVENTS
  return { rate: events / (tookMs / 1000), bytes: bytes / events, cpu: ((after.cpuMs - before.cpuMs) * 1000) / events }
}

async function measureIdle({ port, usage }: AgentServer, count: number): Promise<Run> {
  const before = await usage({ collect: true })
  await ask({ do: 'create', port, count })
  const after = await usage({ collect: true })
  const bytes = after.heapBytes + after.externalBytes - before.heapBytes - before.externalBytes
  return { heap: bytes / 1024 / count }
}

function fanOutKind(readers: number): FigureKind {
  const name = `events to ${readers.toLocaleString('en')} reader${readers === 1 ? '' : 's'}`
  const aim = { text: 'at least 0.70', isMet: ({ ratio }: Pick<Figure, 'ratio'>) => ratio.median >= 0.7 }
  return { id: 'rate', name, unit: '1/s', ...(readers === 1_000 ? { aim } : {}) }
}

function under(limit: number): NonNullable<FigureKind['aim']> {
  return { text: `under ${limit}`, isMet: ({ ours }) => ours.median < limit }
}

function atLeast(limit: number): NonNullable<FigureKind['aim']> {
  return { text: `at least ${limit}`, isMet: ({ ours }) => ours.median >= limit }
}

function over(limitMs: number): NonNullable<FigureKind['aim']> {
  return { text: `bare + ${limitMs} ms`, isMet: ({ ours, bare }) => ours.median - bare.median < limitMs }
}

async function ask(call: AgentCall): Promise<unknown> {
  const answer = await askPart(load, call)
  if (typeof answer !== 'object' || answer === null || !('ok' in answer)) throw new Error('the load generator babbles')
  if (answer.ok !== true) throw new Error(`load: ${'problem' in answer ? answer.problem : '?'}`)
  return 'answer' in answer ? answer.answer : undefined
}

function askPart(part: Part, call: AgentCall): Promise<unknown> {
  return part.ask(call, CALL_MS, call.do)
}
