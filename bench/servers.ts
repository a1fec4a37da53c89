import { fileURLToPath } from 'node:url'
import { hubAdmin } from '../src/client/hub-client.ts'
import type { RunningSim } from '../src/sim/main.ts'
import { PROBED, type Usage, usageOf } from './probe.ts'
import { type Part, startPart, TSX, within } from './processes.ts'

/** One of the two relays, with its clients: client `i` gets what user `i` says. */
export interface Server {
  readonly name: 'hub' | 'bare' | 'peer'
  /** Its bot account at the sim. */
  readonly bot: string
  readonly port: number
  /** Of all its nodes, where it has several. */
  readonly ports?: readonly number[]
  readonly tokens: readonly string[]
  /** Resolves when `count` polls are parked in it. */
  untilParked(count: number): Promise<void>
  /** What it has used so far; `collect` has it collect garbage first. */
  usage(options?: { collect: boolean }): Promise<Usage>
  stop(): Promise<void>
}

export interface Plan {
  sim: RunningSim
  /** An account at the sim of its own; made when it is not there. */
  bot: string
  clients: number
}

export interface HubPlan extends Plan {
  /** One that has been used before has its clients already; then give their tokens. */
  dataDir: string
  tokens?: readonly string[]
  /** Further arguments for node. */
  nodeArgs?: string[]
}

/** Nothing but messages ends a poll during a run. */
export const HOLD_MS = 600_000
const START_MS = 15_000
const SETTLE_MS = 120_000
const AT_ONCE = 64
const ADDRESS = /http:\/\/127\.0\.0\.1:(\d+)\/health/
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Starts the built hub on its own data directory. */
export async function startHub({ sim, bot, clients, dataDir, tokens, nodeArgs = [] }: HubPlan): Promise<Server> {
  const args = hubArgs(sim, dataDir)
  const part = startPart('the hub', [...PROBED, ...nodeArgs, path('../dist/cli.js'), ...args], {
    RELAY_UPSTREAM_TOKEN: tokenOf(sim, bot),
  })
  const port = Number((await part.printed(ADDRESS, START_MS))[1])
  const url = `http://127.0.0.1:${port}`
  const parked = async () => Number(/^switchboard_hub_parked_polls (\d+)/m.exec(await get(`${url}/metrics`))?.[1])
  return server('hub', bot, part, { port, tokens: tokens ?? (await populate(url, { sim, bot, clients })), parked })
}

/** How a hub is started to be measured. */
export function hubArgs(sim: RunningSim, dataDir: string): string[] {
  const settings = {
    addr: '127.0.0.1:0',
    'data-dir': dataDir,
    'upstream-url': sim.url,
    'poll-hold-ms': String(HOLD_MS),
    'requests-per-second': '1000000',
    'log-level': 'warn',
  }
  return ['hub', ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])]
}

/** Starts the relay that the hub is measured against. */
export async function startBare({ sim, bot, clients }: Plan): Promise<Server> {
  const part = startPart('the bare relay', [...PROBED, ...TSX, path('./bare-relay.ts')], {
    BARE_UPSTREAM_URL: sim.url,
    BARE_UPSTREAM_TOKEN: tokenOf(sim, bot),
    BARE_HOLD_MS: String(HOLD_MS),
  })
  const port = Number((await part.printed(ADDRESS, START_MS))[1])
  const url = `http://127.0.0.1:${port}`
  const named = Array.from({ length: clients }, (_, index) => ({
    token: `vhub_${String(index).padStart(32, '0')}`,
    userId: `${userName(index)}@im.wechat`,
  }))
  await fetch(`${url}/bench/clients`, { method: 'POST', body: JSON.stringify(named) })
  const parked = async () => Number(await get(`${url}/bench/parked`))
  return server('bare', bot, part, { port, tokens: named.map((one) => one.token), parked })
}

/** The user whose messages go to client `index`. */
export function userName(index: number): string {
  return `u${index}`
}

/** The token of a bot account at the sim, which is made when it is not there. */
export function tokenOf(sim: RunningSim, bot: string): string {
  const token = `${bot}:token`
  const isThere = sim.control.state().bots.some(({ name }) => name === bot)
  return isThere ? token : sim.control.accounts.add({ name: bot, token }).bot_token
}

function server(
  name: 'hub' | 'bare',
  bot: string,
  part: Part,
  { port, tokens, parked }: { port: number; tokens: readonly string[]; parked: () => Promise<number> },
): Server {
  return {
    name,
    bot,
    port,
    tokens,
    untilParked: (count) => until(`${count} polls at the ${name}`, async () => (await parked()) === count),
    usage: (options) => usageOf(part, options),
    stop: part.stop,
  }
}

/** Registers clients and has user `i` choose client `i`. */
export async function populate(url: string, { sim, bot, clients: count }: Plan): Promise<string[]> {
  const admin = hubAdmin({ url })
  const names = Array.from({ length: count }, (_, index) => `c${index}`)
  const tokens: string[] = []
  for (let from = 0; from < count; from += AT_ONCE) {
    const some = await Promise.all(names.slice(from, from + AT_ONCE).map((name) => admin.register(name)))
    tokens.push(...some.map(({ token }) => token))
  }
  const sends = () => sim.control.state().bots.find(({ name }) => name === bot)?.sends ?? 0
  const before = sends()
  sim.control.sayAll(names.map((name, index) => ({ user: userName(index), bot, text: `/use ${name}` })))
  await until(`${count} choices`, async () => sends() - before >= count)
  return tokens
}

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  await within(SETTLE_MS, what, async () => {
    while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 50))
  })
}

async function get(url: string): Promise<string> {
  return (await fetch(url)).text()
}
