// Measures what one more message, session or event costs when there are many already: `npm run bench:growth`.
//   --quick          two decades that end early, to see that it works
//   --json <file>    the points as JSON too
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Type } from 'typebox'
import { silentLog } from '../src/kit/log.ts'
import { checker } from '../src/kit/schema.ts'
import { startSim } from '../src/sim/main.ts'
import { ask } from './agent/ask.ts'
import { FAN_OUT_CALLS, startAgent } from './agent/servers.ts'
import type { Point, Series } from './figures.ts'
import { benchFolder, endWith } from './folder.ts'
import { describeMachine, machineText } from './machine.ts'
import { startPart, TSX } from './processes.ts'
import { hangUp, measureThroughput, parkAll } from './scenarios.ts'
import { startHub } from './servers.ts'

const FULL = [1_000, 10_000, 100_000]
const QUICK = [200, 1_000, 2_000]
/** A queue holds 10,000 messages; so many are said at a time. */
/** A server takes a hundred thousand, these among them. */
const WARM_SESSIONS = 100
const AT_A_TIME = 5_000
const CLIENTS = 100
const EVENTS_A_RUN = 2 * FAN_OUT_CALLS + 2

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, json: { type: 'string' } },
})
const SIZES = options.quick ? QUICK : FULL
const checkIds = checker(Type.Array(Type.String()))
const folder = benchFolder()

endWith(run())

async function run(): Promise<void> {
  const machine = await describeMachine(folder)
  console.log(`${machineText(machine)}\n`)
  const series: Series[] = [
    { id: 'messages', name: 'a message through the hub', unit: 'µs of CPU', points: await messages() },
    { id: 'sessions', name: 'a session of the agent', unit: 'µs of CPU', points: await sessions() },
    { id: 'events', name: 'an event of the agent', unit: 'µs of CPU', points: await events() },
  ]
  for (const { name, unit, points } of series)
    console.log(`${name}, ${unit}: ${points.map(({ size, cost }) => `${cost.toFixed(0)} (up to ${size})`).join(', ')}`)
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, series }, null, 2)}\n`)
}

/** Through one hub that keeps them all. */
async function messages(): Promise<Point[]> {
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: 'bench', holdMs: 35_000, log: silentLog })
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./load.ts', import.meta.url))])
  const stage = { sim, load }
  const server = await startHub({ sim, bot: 'growth', clients: CLIENTS, dataDir: mkdtempSync(join(folder, 'hub-')) })
  await parkAll(stage, server)
  await measureThroughput(stage, server, CLIENTS)
  const points = await grow(server.usage, async (count) => {
    for (let left = count; left > 0; left -= AT_A_TIME)
      await measureThroughput(stage, server, Math.min(left, AT_A_TIME))
  })
  await hangUp(stage)
  await Promise.all([server.stop(), load.stop(), sim.stop()])
  return points
}

/** In one server that keeps them all. */
async function sessions(): Promise<Point[]> {
  const { server, load, stop } = await startAgentAndLoad()
  await ask(load, { do: 'create', port: server.port, count: WARM_SESSIONS })
  const add = async (count: number) => {
    for (let left = count; left > 0; left -= AT_A_TIME)
      await ask(load, { do: 'create', port: server.port, count: Math.min(left, AT_A_TIME) })
  }
  const points = await grow(server.usage, add, WARM_SESSIONS)
  await stop()
  return points
}

/** Of long runs, each in a session of its own with one reader. */
async function events(): Promise<Point[]> {
  const { server, load, stop } = await startAgentAndLoad()
  const { port } = server
  const oneRun = async () => {
    const [session = ''] = checkIds(await ask(load, { do: 'create', port, count: 1 }))
    await ask(load, { do: 'subscribe', port, session, count: 1 })
    await ask(load, { do: 'fanOut', port, session })
    await ask(load, { do: 'hangUp' })
  }
  await oneRun()
  const points = await grow(server.usage, async (count) => {
    for (let left = count; left > 0; left -= EVENTS_A_RUN) await oneRun()
  })
  await stop()
  return points
}

/** What each costs on the way from one size to the next. */
async function grow(
  usage: () => Promise<{ cpuMs: number }>,
  add: (count: number) => Promise<void>,
  start = 0,
): Promise<Point[]> {
  const points: Point[] = []
  let before = start
  for (const size of SIZES) {
    const { cpuMs } = await usage()
    await add(size - before)
    points.push({ size, cost: (((await usage()).cpuMs - cpuMs) * 1000) / (size - before) })
    before = size
  }
  return points
}

async function startAgentAndLoad() {
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./agent/load.ts', import.meta.url))])
  const server = await startAgent(folder, [], { dataDir: mkdtempSync(join(folder, 'agent-data-')) })
  const stop = async () => void (await Promise.all([load.stop(), server.stop()]))
  return { server, load, stop }
}
