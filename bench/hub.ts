// Measures the hub against a bare relay, side by side: `npm run bench:hub`. docs/performance.md says what it means.
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { silentLog } from '../src/kit/log.ts'
import { startSim } from '../src/sim/main.ts'
import { type Figure, type FigureKind, figureOf, type Pair, quantile, tableOf } from './figures.ts'
import { endAll, startPart, TSX } from './processes.ts'
import {
  hangUp,
  measureMemory,
  measureSends,
  measureThroughput,
  measureWakeUp,
  parkAll,
  type Stage,
} from './scenarios.ts'
import { type Server, startBare, startHub } from './servers.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    only: { type: 'string', default: 'through-1,through-100,through-1000,echo-100,sends,parked' },
    profile: { type: 'string' },
  },
})

/** How much is done. A queue of the hub holds 10,000 messages, so one client gets fewer at a time. */
const SIZES = options.quick
  ? { pairs: 1, messages: { 1: 1_000, 100: 1_000, 1000: 2_000 }, parked: 500, wakeUps: 200, sendsPerClient: 5 }
  : { pairs: 3, messages: { 1: 9_000, 100: 20_000, 1000: 20_000 }, parked: 5_000, wakeUps: 1_000, sendsPerClient: 60 }
const WAKE_UPS_PER_SECOND = 150
const SENDING_CLIENTS = 100
const HUB_TOKEN = 'b0b000000000@im.bot:bench'
const GIVE_UP_MS = options.quick ? 90_000 : 400_000

const HALF = { text: 'at least 0.50', isMet: ({ ratio }: Pick<Figure, 'ratio'>) => ratio.median >= 0.5 }
const FRUGAL = { text: 'at most 1.30', isMet: ({ ratio }: Pick<Figure, 'ratio'>) => ratio.median <= 1.3 }
const AWAKE = { text: 'hub under 10 ms', isMet: ({ hub }: Pick<Figure, 'hub'>) => hub.median < 10 }

const folder = mkdtempSync(join(tmpdir(), 'switchboard-bench-'))
const giveUp = setTimeout(() => fail(new Error(`the bench took longer than ${GIVE_UP_MS} ms`)), GIVE_UP_MS)
process.on('exit', () => {
  endAll()
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

run().then(() => process.exit(0), fail)

async function run(): Promise<void> {
  const machine = describeMachine()
  console.log(
    `${machine.cores} × ${machine.cpu}, Node ${machine.node}, load ${machine.load}, fsync ${machine.fsyncMs} ms`,
  )
  console.log('The service, the server and the clients are a process each and share these cores.\n')
  const wanted = new Set(options.only.split(','))
  const figures: Figure[] = []
  for (const [clients, messages] of Object.entries(SIZES.messages)) {
    if (wanted.has(`through-${clients}`)) figures.push(...(await throughput(Number(clients), messages)))
  }
  if (wanted.has('echo-100')) figures.push(...(await throughput(100, SIZES.messages[100], { echo: true })))
  if (wanted.has('sends')) figures.push(...(await sends()))
  if (wanted.has('parked')) figures.push(...(await parked()))
  console.log(`\n${tableOf(figures)}`)
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, figures }, null, 2)}\n`)
}

/** `echo`: the clients send the cursor of the last answer back, as the real protocol has it. */
async function throughput(clients: number, messages: number, { echo = false } = {}): Promise<Figure[]> {
  const pairs = await inPairs(clients, async (stage, server) => {
    await parkAll(stage, server, { echo })
    await measureThroughput(stage, server, Math.ceil(messages / 10))
    const found = await measureThroughput(stage, server, messages)
    await hangUp(stage)
    return found
  })
  const of = `${clients} client${clients === 1 ? '' : 's'}${echo ? ' with cursors' : ''}`
  return figuresOf(pairs, [
    { id: 'rate', name: `through to ${of}`, unit: 'messages/s', ...(clients === 100 ? { aim: HALF } : {}) },
    { id: 'cpuPerMessage', name: '  server CPU', unit: 'µs a message' },
    { id: 'perAnswer', name: '  messages', unit: 'per answer' },
  ])
}

async function sends(): Promise<Figure[]> {
  const pairs = await inPairs(SENDING_CLIENTS, async (stage, server) => {
    await parkAll(stage, server)
    // So that each has something to answer.
    await measureThroughput(stage, server, SENDING_CLIENTS)
    await measureSends(stage, server, Math.ceil(SIZES.sendsPerClient / 10))
    const found = await measureSends(stage, server, SIZES.sendsPerClient)
    await hangUp(stage)
    return found
  })
  return figuresOf(pairs, [
    { id: 'sends', name: `sends of ${SENDING_CLIENTS} clients`, unit: 'sends/s' },
    { id: 'cpuPerSend', name: '  server CPU', unit: 'µs a send' },
  ])
}

/** Memory is taken from processes that have just started, so each run has its own. */
async function parked(): Promise<Figure[]> {
  const pairs = await inPairs(
    SIZES.parked,
    async (stage, server) => {
      const memory = await measureMemory(stage, server)
      const found = await measureWakeUp(stage, server, { count: SIZES.wakeUps, perSecond: WAKE_UPS_PER_SECOND })
      await hangUp(stage)
      return { ...memory, ...found }
    },
    { restart: true },
  )
  const of = `${SIZES.parked} parked polls`
  return figuresOf(pairs, [
    { id: 'p50', name: `wake-up with ${of}, p50`, unit: 'ms' },
    { id: 'p99', name: `wake-up with ${of}, p99`, unit: 'ms', aim: AWAKE },
    { id: 'heap', name: 'a parked poll, heap', unit: 'kB', aim: FRUGAL },
    { id: 'rss', name: 'a parked poll, resident', unit: 'kB', aim: FRUGAL },
  ])
}

/** Measures hub, bare, hub, bare …; whoever is not being measured has nothing to do. */
async function inPairs(
  clients: number,
  measure: (stage: Stage, server: Server) => Promise<Record<string, number>>,
  { restart = false } = {},
): Promise<Pair[]> {
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: HUB_TOKEN, holdMs: 35_000, log: silentLog })
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./load.ts', import.meta.url))])
  const stage = { sim, load }
  const dataDir = mkdtempSync(join(folder, 'hub-'))
  const nodeArgs = options.profile ? ['--cpu-prof', '--cpu-prof-dir', options.profile] : []
  const bare = () => startBare({ sim, clients })
  let hub = await startHub({ sim, dataDir, clients, nodeArgs })
  let other = await bare()
  const pairs: Pair[] = []
  for (let index = 0; index < SIZES.pairs; index += 1) {
    if (restart) {
      const { tokens } = hub
      await Promise.all([hub.stop(), other.stop()])
      hub = await startHub({ sim, dataDir, clients, tokens, nodeArgs })
      other = await bare()
    }
    const pair = { hub: await measure(stage, hub), bare: await measure(stage, other) }
    pairs.push(pair)
    console.log(`${clients} clients, pair ${index + 1}: ${brief('hub', pair.hub)}; ${brief('bare', pair.bare)}`)
  }
  await Promise.all([hub.stop(), other.stop(), load.stop()])
  await sim.stop()
  return pairs
}

function figuresOf(pairs: readonly Pair[], kinds: FigureKind[]): Figure[] {
  return kinds.map((kind) => ({ ...figureOf(kind, pairs), id: `${kind.id} ${kind.name.trim()}` }))
}

function brief(name: string, found: Record<string, number>): string {
  const parts = Object.entries(found).map(
    ([id, value]) => `${id} ${value >= 100 ? Math.round(value) : value.toFixed(2)}`,
  )
  return `${name} ${parts.join(', ')}`
}

function describeMachine() {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    node: process.versions.node,
    load: Number((loadavg()[0] ?? 0).toFixed(2)),
    fsyncMs: Number(medianFsyncMs().toFixed(2)),
  }
}

/** How long the disk under the hub's data takes to make 4 kB durable. */
function medianFsyncMs(): number {
  const file = openSync(join(folder, 'fsync'), 'w')
  const block = Buffer.alloc(4096, 1)
  const times = Array.from({ length: 50 }, () => {
    const startedAt = performance.now()
    writeSync(file, block)
    fsyncSync(file)
    return performance.now() - startedAt
  })
  closeSync(file)
  return quantile(times, 0.5)
}

function fail(error: unknown): never {
  clearTimeout(giveUp)
  console.error(error)
  process.exit(1)
}
