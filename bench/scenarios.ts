import { checker } from '../src/kit/schema.ts'
import type { RunningSim } from '../src/sim/main.ts'
import { sharedMicroseconds } from './clock.ts'
import { quantile, type Run } from './figures.ts'
import { type LoadCall, numberedText, Received, Sent } from './load-calls.ts'
import type { Part } from './processes.ts'
import { type Server, userName } from './servers.ts'

/** What every scenario works with: the messaging service and the clients. */
export interface Stage {
  sim: RunningSim
  load: Part
}

const CALL_MS = 60_000
const checkReceived = checker(Received)
const checkSent = checker(Sent)
let runs = 0

/** Has every client of a server poll, and resolves when all are parked. */
export async function parkAll({ load }: Stage, server: Server, { echo = false } = {}): Promise<void> {
  const { port, ports, tokens } = server
  await ask(load, { do: 'poll', port, tokens: [...tokens], echo, ...(ports ? { ports: [...ports] } : {}) })
  await server.untilParked(server.tokens.length)
}

export async function hangUp({ load }: Stage): Promise<void> {
  await ask(load, { do: 'hangUp' })
}

/** Milliseconds of CPU that the service and the clients have used. */
export async function stageCpuMs({ load }: Stage): Promise<number> {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000 + Number(await ask(load, { do: 'tellCpu' }))
}

/** Says `count` messages at once, user after user, and measures until the clients have them all. Polls must be parked. */
export async function measureThroughput({ sim, load }: Stage, server: Server, count: number): Promise<Run> {
  const run = await expect(load, count)
  const before = await server.usage()
  const saidAt = sharedMicroseconds()
  const messages = Array.from({ length: count }, (_, index) => ({
    user: userName(index % server.tokens.length),
    bot: server.bot,
    text: numberedText(run, index, saidAt),
  }))
  // Synchronous: the service hands out nothing before the last one is in its inbox.
  sim.control.sayAll(messages)
  const startedAt = sharedMicroseconds()
  const received = await receive(load)
  const after = await server.usage()
  return {
    rate: count / ((received.doneAt - startedAt) / 1e6),
    cpuPerMessage: ((after.cpuMs - before.cpuMs) * 1000) / count,
    mainPerMessage: ((after.mainMs - before.mainMs) * 1000) / count,
    loopDelay: after.loopDelayMs,
    perAnswer: count / received.answers,
    repeated: received.repeated,
  }
}

/** Parks every client of a server that has just started and measures what a parked poll costs. */
export async function measureMemory(stage: Stage, server: Server): Promise<Run> {
  const before = await server.usage({ collect: true })
  await parkAll(stage, server)
  const after = await server.usage({ collect: true })
  const perPoll = (bytes: number) => bytes / 1024 / server.tokens.length
  return {
    heap: perPoll(after.heapBytes + after.externalBytes - before.heapBytes - before.externalBytes),
    rss: perPoll(after.rssBytes - before.rssBytes),
  }
}

/** Says messages one by one, at a pace that loads nobody, and measures until each is in its client's hands. */
export async function measureWakeUp(
  { sim, load }: Stage,
  server: Server,
  { count, perSecond }: { count: number; perSecond: number },
): Promise<Run> {
  const run = await expect(load, count)
  globalThis.gc?.()
  const clients = server.tokens.length
  const startedAt = performance.now()
  for (let index = 0; index < count; index += 1) {
    const dueMs = startedAt + (index * 1000) / perSecond - performance.now()
    if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs))
    // A stride that is no divisor, so that neighbours do not follow each other.
    const user = userName((index * 7919) % clients)
    sim.control.say({ user, bot: server.bot, text: numberedText(run, index, sharedMicroseconds()) })
  }
  const { waitsMs, repeated } = await receive(load)
  return { p50: quantile(waitsMs, 0.5), p99: quantile(waitsMs, 0.99), worst: Math.max(...waitsMs), repeated }
}

/** Every client answers the newest message it has, again and again. */
export async function measureSends({ load }: Stage, server: Server, perClient: number): Promise<Run> {
  const before = await server.usage()
  const { count, failed, tookMs } = checkSent(await ask(load, { do: 'send', perClient }))
  const after = await server.usage()
  if (failed > 0) throw new Error(`${failed} of ${count} sends through the ${server.name} failed`)
  return { sends: count / (tookMs / 1000), cpuPerSend: ((after.cpuMs - before.cpuMs) * 1000) / count }
}

async function expect(load: Part, count: number): Promise<number> {
  runs += 1
  await ask(load, { do: 'expect', run: runs, count })
  return runs
}

async function receive(load: Part): Promise<Received> {
  return checkReceived(await ask(load, { do: 'await' }))
}

async function ask(load: Part, call: LoadCall): Promise<unknown> {
  const answer = await load.ask(call, CALL_MS, call.do)
  if (typeof answer !== 'object' || answer === null || !('ok' in answer)) throw new Error('the load generator babbles')
  if (answer.ok !== true) throw new Error(`load: ${'problem' in answer ? answer.problem : '?'}`)
  return 'answer' in answer ? answer.answer : undefined
}
