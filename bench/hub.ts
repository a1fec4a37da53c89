// Measures the hub against a bare relay, side by side: `npm run bench:hub`. docs/performance.md says what it means.
//   --quick          a short run, to see that it works
//   --json <file>    the figures as JSON too
//   --only <parts>   some of the parts, with commas
//   --profile <dir>  CPU profiles of the hub
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { silentLog } from '../src/kit/log.ts'
import { startSim } from '../src/sim/main.ts'
import { type Figure, type FigureKind, figureOf, type Pair, type Run, tableOf } from './figures.ts'
import { benchFolder, endWith, fail } from './folder.ts'
import { describeMachine, machineText } from './machine.ts'
import { inPairs } from './pairs.ts'
import { STEADY, startPart, TSX } from './processes.ts'
import {
  hangUp,
  measureMemory,
  measureSends,
  measureThroughput,
  measureWakeUp,
  parkAll,
  type Stage,
} from './scenarios.ts'
import type { Server } from './servers.ts'

// A queue of the hub holds 10,000 messages, so one client gets fewer at a time.
const FULL = {
  pairs: 5,
  parkedPairs: 5,
  one: 9_000,
  many: 16_000,
  most: 1_000,
  parked: 5_000,
  mostParked: 10_000,
  wakeUps: 3_000,
  sends: 60,
}
const QUICK = {
  pairs: 1,
  parkedPairs: 1,
  one: 1_000,
  many: 1_000,
  most: 200,
  parked: 300,
  mostParked: 600,
  wakeUps: 150,
  sends: 4,
}
const WAKE_UPS_PER_SECOND = 150
/** Of two cores a stop of 10 ms every three seconds. What comes more often shows in a 99th percentile of 150 messages a second. */
const MOST_STOLEN_PERCENT = 0.15

const PARTS: Record<string, (stage: Stage) => Promise<Figure[]>> = {
  'through-1': (stage) => throughput(stage, { clients: 1, messages: SIZES.one }),
  'through-100': (stage) => throughput(stage, { clients: 100, messages: SIZES.many }),
  'through-1000': (stage) => throughput(stage, { clients: SIZES.most, messages: SIZES.many }),
  'echo-100': (stage) => throughput(stage, { clients: 100, messages: SIZES.many, echo: true }),
  'sends-100': (stage) => sends(stage, 100),
  'parked-5000': (stage) => parked(stage, SIZES.parked, 10),
  'parked-10000': (stage) => parked(stage, SIZES.mostParked, 5),
}

const QUICK_PARTS = ['through-1', 'through-100', 'sends-100', 'parked-5000']

const CLOSE = { text: 'at least 0.60', isMet: ({ ratio }: Pick<Figure, 'ratio'>) => ratio.median >= 0.6 }
const FRUGAL = { text: 'at most 1.15', isMet: ({ ratio }: Pick<Figure, 'ratio'>) => ratio.median <= 1.15 }
const PROMPT = { text: 'hub under 20 ms', isMet: ({ ours }: Pick<Figure, 'ours'>) => ours.median < 20 }

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    only: { type: 'string' },
    profile: { type: 'string' },
  },
})
const SIZES = options.quick ? QUICK : FULL
const GIVE_UP_MS = options.quick ? 120_000 : 2_400_000

/** In percent of the machine; what was measured beside a busy program is worth little. */
let mostOthers = 0
const folder = benchFolder()
setTimeout(() => fail(new Error(`the bench has not ended after ${GIVE_UP_MS} ms`)), GIVE_UP_MS).unref()

endWith(run())

async function run(): Promise<void> {
  const names = options.only?.split(',') ?? (options.quick ? QUICK_PARTS : Object.keys(PARTS))
  const wanted = Object.entries(PARTS).filter(([name]) => names.includes(name))
  if (wanted.length === 0) throw new Error(`--only takes ${Object.keys(PARTS).join(', ')}.`)
  const machine = await describeMachine(folder)
  console.log(machineText(machine))
  console.log('The service, the server and the clients are a process each and share these cores.\n')
  const load = startPart('the load generator', [
    ...STEADY,
    ...TSX,
    fileURLToPath(new URL('./load.ts', import.meta.url)),
  ])
  const figures: Figure[] = []
  for (const [name, part] of wanted) {
    // Each with a service of its own: one that remembers all messages of the parts before has pauses of its own.
    const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: 'bench', holdMs: 35_000, log: silentLog })
    for (const figure of await part({ sim, load })) figures.push({ ...figure, id: `${name}.${figure.id}` })
    await sim.stop()
  }
  console.log(
    `\n${tableOf(figures, 'hub')}\n\nOther programs took at most ${mostOthers.toFixed(0)} % of the machine during a run.`,
  )
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, mostOthers, figures }, null, 2)}\n`)
}

/** `echo`: the clients send the cursor of the last answer back, as the real protocol has it. */
async function throughput(
  stage: Stage,
  { clients, messages, echo = false }: { clients: number; messages: number; echo?: boolean },
): Promise<Figure[]> {
  const pairs = await measured(stage, clients, async (server) => {
    await parkAll(stage, server, { echo })
    // Both have run a while before they are measured.
    await measureThroughput(stage, server, Math.ceil(messages / 2))
    const found = await measureThroughput(stage, server, messages)
    await hangUp(stage)
    return found
  })
  const to = `to ${count(clients, 'client')}${echo ? ' with cursors' : ''}`
  return figuresOf(pairs, [
    { id: 'rate', name: `messages ${to}`, unit: '1/s', ...(clients === 100 ? { aim: CLOSE } : {}) },
    { id: 'cpuPerMessage', name: '  CPU of the server', unit: 'µs each' },
    { id: 'mainPerMessage', name: '  of it on the main thread', unit: 'µs each' },
    { id: 'loopDelay', name: '  event-loop delay, p99', unit: 'ms', aim: PROMPT },
    { id: 'perAnswer', name: `  messages in an answer`, unit: '' },
  ])
}

async function sends(stage: Stage, clients: number): Promise<Figure[]> {
  const pairs = await measured(stage, clients, async (server) => {
    await parkAll(stage, server)
    // So that each has something to answer.
    await measureThroughput(stage, server, clients)
    await measureSends(stage, server, Math.ceil(SIZES.sends / 10))
    const found = await measureSends(stage, server, SIZES.sends)
    await hangUp(stage)
    return found
  })
  return figuresOf(pairs, [
    { id: 'sends', name: `sends of ${count(clients, 'client')}`, unit: '1/s' },
    { id: 'cpuPerSend', name: '  CPU of the server', unit: 'µs each' },
  ])
}

/** Memory is taken from processes that have just started, so each pair has its own. */
async function parked(stage: Stage, clients: number, awakeWithinMs: number): Promise<Figure[]> {
  const pairs = await measured(
    stage,
    clients,
    async (server) => {
      const memory = await measureMemory(stage, server)
      // Compilers and heaps of all three come to rest first.
      await measureWakeUp(stage, server, { count: SIZES.wakeUps / 2, perSecond: WAKE_UPS_PER_SECOND })
      const found = await measureWakeUp(stage, server, { count: SIZES.wakeUps, perSecond: WAKE_UPS_PER_SECOND })
      await hangUp(stage)
      return { ...memory, ...found }
    },
    true,
  )
  const awake = {
    text: `hub under ${awakeWithinMs} ms`,
    isMet: ({ ours }: Pick<Figure, 'ours'>) => ours.median < awakeWithinMs,
  }
  const among = `among ${count(clients, 'parked poll')}`
  return figuresOf(pairs, [
    { id: 'p50', name: `wake-up ${among}, p50`, unit: 'ms' },
    { id: 'p99', name: `wake-up ${among}, p99`, unit: 'ms', aim: awake },
    { id: 'rss', name: 'a parked poll, resident memory', unit: 'kB', aim: FRUGAL },
    { id: 'heap', name: 'a parked poll, JavaScript heap', unit: 'kB', aim: FRUGAL },
  ])
}

async function measured(
  stage: Stage,
  clients: number,
  measure: (server: Server) => Promise<Run>,
  restart = false,
): Promise<Pair[]> {
  const nodeArgs = options.profile ? ['--cpu-prof', '--cpu-prof-dir', options.profile] : []
  const pairs = await inPairs(
    {
      stage,
      folder,
      clients,
      pairs: restart ? SIZES.parkedPairs : SIZES.pairs,
      restart,
      // For those who wait: a rate hardly changes by it, a 99th percentile does.
      ...(restart && !options.quick ? { mostStolenPercent: MOST_STOLEN_PERCENT } : {}),
      nodeArgs,
    },
    measure,
  )
  for (const { ours, bare } of pairs)
    mostOthers = Math.max(mostOthers, ours.othersPercent ?? 0, bare.othersPercent ?? 0)
  return pairs
}

function figuresOf(pairs: readonly Pair[], kinds: FigureKind[]): Figure[] {
  return kinds.map((kind) => figureOf(kind, pairs))
}

function count(number: number, what: string): string {
  return `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`
}
