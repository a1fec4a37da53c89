// Measures 1, 2 and 3 nodes side by side with the bare stores under them: `npm run bench:scale`. See docs/performance.md.
//   --quick          a short run, to see that it works
//   --json <file>    the figures as JSON too
//   --only <parts>   some of the parts, with commas
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Type } from 'typebox'
import { silentLog } from '../src/kit/log.ts'
import { checker } from '../src/kit/schema.ts'
import { startSim } from '../src/sim/main.ts'
import { startPostgres } from '../test/support/servers/postgres.ts'
import { startRedis } from '../test/support/servers/redis.ts'
import { ask } from './agent/ask.ts'
import { type AgentCall, Followed, Ran } from './agent/calls.ts'
import { type AgentServer, startAgent } from './agent/servers.ts'
import { brief, type Figure, type FigureKind, figureOf, type Pair, quantile, type Run, tableOf } from './figures.ts'
import { benchFolder } from './folder.ts'
import { describeMachine, machineText } from './machine.ts'
import { type Part, startPart, TSX } from './processes.ts'
import { startHubs } from './scale/hubs.ts'
import { postgresRate, redisRate, sqliteRate } from './scale/limits.ts'
import { hangUp, measureThroughput, measureWakeUp, parkAll, type Stage } from './scenarios.ts'
import { type Server, startHub } from './servers.ts'

const FULL = { pairs: 3, clients: 100, messages: 8_000, wakeUps: 300, rows: 40_000, runs: 1_000, follows: 60 }
const QUICK = { pairs: 1, clients: 20, messages: 400, wakeUps: 40, rows: 4_000, runs: 60, follows: 8 }
const WAKE_UPS_PER_SECOND = 100
const RUNS_AT_ONCE = 50

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, json: { type: 'string' }, only: { type: 'string' } },
})
const SIZES = options.quick ? QUICK : FULL
const NODES = [1, 2, 3] as const

const PARTS: Record<string, () => Promise<Figure[]>> = {
  'hub-sqlite': () => hubFigures('hub-sqlite', 'SQLite, 1 node', sqlitePair),
  ...Object.fromEntries(
    NODES.map((nodes) => [
      `hub-postgres-${nodes}`,
      () =>
        hubFigures(`hub-postgres-${nodes}`, `Postgres, ${nodes} node${nodes === 1 ? '' : 's'}`, () =>
          postgresPair(nodes),
        ),
    ]),
  ),
  ...Object.fromEntries(NODES.map((nodes) => [`agent-redis-${nodes}`, () => agentFigures(nodes)])),
}

const checkIds = checker(Type.Array(Type.String()))
const checkRan = checker(Ran)
const checkFollowed = checker(Followed)
const folder = benchFolder()
const started: { remove(): Promise<void> }[] = []

run().then(
  async () => {
    await Promise.all(started.map((server) => server.remove()))
    process.exit(0)
  },
  async (error) => {
    console.error(error)
    await Promise.allSettled(started.map((server) => server.remove()))
    process.exit(1)
  },
)

async function run(): Promise<void> {
  const names = options.only?.split(',') ?? Object.keys(PARTS)
  const wanted = Object.entries(PARTS).filter(([name]) => names.includes(name))
  if (wanted.length === 0) throw new Error(`--only takes ${Object.keys(PARTS).join(', ')}.`)
  const machine = await describeMachine(folder)
  console.log(`${machineText(machine)}\nNodes, their store, the service and the callers share these cores.\n`)
  const figures: Figure[] = []
  for (const [, part] of wanted) figures.push(...(await part()))
  console.log(`\n${tableOf(figures, 'ours')}`)
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, figures }, null, 2)}\n`)
}

async function hubFigures(id: string, title: string, measure: () => Promise<Pair>): Promise<Figure[]> {
  const pairs = await inTurn(id, measure)
  const kinds: FigureKind[] = [
    { id: 'rate', name: `hub on ${title}, messages; bare: rows`, unit: '1/s' },
    { id: 'p99', name: '  wake-up, p99', unit: 'ms' },
    { id: 'cpuPerMessage', name: '  CPU of all nodes', unit: 'µs each' },
  ]
  return kinds.map((kind) => ({ ...figureOf(kind, pairs), id: `${id}.${kind.id}` }))
}

async function agentFigures(nodes: number): Promise<Figure[]> {
  const id = `agent-redis-${nodes}`
  const pairs = await inTurn(id, () => redisPair(nodes))
  const aim = { text: 'under 15 ms', isMet: ({ ours }: Pick<Figure, 'ours'>) => ours.median < 15 }
  const kinds: FigureKind[] = [
    {
      id: 'events',
      name: `agent on Redis, ${nodes} node${nodes === 1 ? '' : 's'}, events; bare: entries`,
      unit: '1/s',
    },
    { id: 'runs', name: '  runs with one tool call', unit: '1/s' },
    { id: 'runP99', name: '  such a run, p99', unit: 'ms' },
    { id: 'lagP99', name: '  an event at a reader of another node, p99', unit: 'ms', ...(nodes > 1 ? { aim } : {}) },
  ]
  return kinds.map((kind) => ({ ...figureOf(kind, pairs), id: `${id}.${kind.id}` }))
}

async function inTurn(id: string, measure: () => Promise<Pair>): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let index = 0; index < SIZES.pairs; index += 1) {
    const pair = await measure()
    pairs.push(pair)
    console.log(`${id}, run ${index + 1}\n  ours ${brief(pair.ours)}\n  bare ${brief(pair.bare)}`)
  }
  return pairs
}

let alone = 0

async function sqlitePair(): Promise<Pair> {
  alone += 1
  const stage = await openStage()
  const dataDir = mkdtempSync(join(folder, 'hub-'))
  const server = await startHub({
    sim: stage.sim,
    bot: `alone${alone}`,
    clients: SIZES.clients,
    dataDir,
  })
  const ours = await measureHub(stage, server)
  await closeStage(stage)
  return { ours, bare: { rate: await sqliteRate(folder, SIZES.rows) } }
}

async function postgresPair(nodes: number): Promise<Pair> {
  const postgres = await startPostgres()
  started.push(postgres)
  const stage = await openStage()
  const databaseUrl = await postgres.createDatabase()
  const server = await startHubs({ sim: stage.sim, folder, databaseUrl, nodes, clients: SIZES.clients })
  const ours = await measureHub(stage, server)
  await closeStage(stage)
  const bare = { rate: await postgresRate(await postgres.createDatabase(), SIZES.rows) }
  await postgres.remove()
  return { ours, bare }
}

async function measureHub(stage: Stage, server: Server): Promise<Run> {
  await parkAll(stage, server)
  await measureThroughput(stage, server, Math.ceil(SIZES.messages / 10))
  const { rate = 0, cpuPerMessage = 0 } = await measureThroughput(stage, server, SIZES.messages)
  const { p50 = 0, p99 = 0 } = await measureWakeUp(stage, server, {
    count: SIZES.wakeUps,
    perSecond: WAKE_UPS_PER_SECOND,
  })
  await hangUp(stage)
  await server.stop()
  return { rate, p50, p99, cpuPerMessage }
}

async function openStage(): Promise<Stage> {
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: 'bench', holdMs: 35_000, log: silentLog })
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./load.ts', import.meta.url))])
  return { sim, load }
}

async function closeStage({ sim, load }: Stage): Promise<void> {
  await load.stop()
  await sim.stop()
}

async function redisPair(nodes: number): Promise<Pair> {
  const redis = await startRedis()
  started.push(redis)
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./agent/load.ts', import.meta.url))])
  const servers: AgentServer[] = []
  for (let node = 0; node < nodes; node += 1) servers.push(await startAgent(folder, [], { redisUrl: redis.url }))
  const ours = await measureAgents(load, servers)
  await Promise.all([load.stop(), ...servers.map((server) => server.stop())])
  const bare = { events: await redisRate(redis.url, SIZES.rows / 4) }
  await redis.remove()
  return { ours, bare }
}

async function measureAgents(load: Part, servers: readonly AgentServer[]): Promise<Run> {
  const ports = servers.map(({ port }) => port)
  const [port = 0] = ports
  const count = SIZES.runs
  const warm = checkIds(await ask(load, { do: 'create', port, count: Math.ceil(count / 5) }))
  await ask(load, { do: 'run', port, ports, sessions: warm, atOnce: RUNS_AT_ONCE })
  const sessions = checkIds(await ask(load, { do: 'create', port, count }))
  const { tookMs, doneMs } = checkRan(await ask(load, { do: 'run', port, ports, sessions, atOnce: RUNS_AT_ONCE }))
  const [session = ''] = checkIds(await ask(load, { do: 'create', port, count: 1 }))
  const follow: AgentCall = { do: 'follow', port, remotePort: ports.at(-1) ?? port, session, runs: SIZES.follows }
  const { lagsMs } = checkFollowed(await ask(load, follow))
  const runs = count / (tookMs / 1000)
  const events = (runs * lagsMs.length) / SIZES.follows
  return { runs, events, runP99: quantile(doneMs, 0.99), lagP99: quantile(lagsMs, 0.99) }
}
