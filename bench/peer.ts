// The load of the hub and agent benches on another server of the same protocol on this machine:
// `npm run bench -- --peer http://127.0.0.1:<port>`.
// A relay: the bench starts a messaging service and waits until the peer polls it. An agent server (it has `/tools`): its
// model should be one that answers at once, such as `scripted:` with the file that `tsx bench/peer.ts --script <folder>` writes.
//   --quick             a short run
//   --sim-addr <addr>   where the messaging service listens (127.0.0.1:8799); its bot token is `peer@im.bot:bench`
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Type } from 'typebox'
import { silentLog } from '../src/kit/log.ts'
import { checker } from '../src/kit/schema.ts'
import { readAddress } from '../src/kit/settings.ts'
import { startSim } from '../src/sim/main.ts'
import { ask } from './agent/ask.ts'
import { Ran } from './agent/calls.ts'
import { writeScript } from './agent/servers.ts'
import { brief, quantile } from './figures.ts'
import { benchFolder, endWith } from './folder.ts'
import { describeMachine, machineText } from './machine.ts'
import { startPart, TSX, within } from './processes.ts'
import { hangUp, measureSends, measureThroughput, measureWakeUp, parkAll } from './scenarios.ts'
import { populate, type Server } from './servers.ts'

const FULL = { clients: 100, messages: 16_000, wakeUps: 500, sends: 60, runs: 1_000, atOnce: 100 }
const QUICK = { clients: 20, messages: 500, wakeUps: 50, sends: 4, runs: 50, atOnce: 10 }
const BOT = 'peer'
const BOT_TOKEN = 'peer@im.bot:bench'
const PEER_POLLS_WITHIN_MS = 120_000
const SETTLE_MS = 2_000
/** A stranger cannot be asked what it uses. */
const NOTHING_KNOWN = { cpuMs: 0, mainMs: 0, loopDelayMs: 0, heapBytes: 0, externalBytes: 0, rssBytes: 0 }

const { values: options } = parseArgs({
  options: {
    peer: { type: 'string' },
    quick: { type: 'boolean', default: false },
    script: { type: 'string' },
    'sim-addr': { type: 'string', default: '127.0.0.1:8799' },
  },
})
const SIZES = options.quick ? QUICK : FULL
const checkIds = checker(Type.Array(Type.String()))
const checkRan = checker(Ran)
const folder = benchFolder()

endWith(run())

async function run(): Promise<void> {
  if (options.script !== undefined) return console.log(writeScript(options.script))
  const url = new URL(options.peer ?? '')
  if (!['127.0.0.1', 'localhost'].includes(url.hostname)) throw new Error('--peer must be a server on this machine.')
  console.log(machineText(await describeMachine(folder)))
  const isAgent = (await fetch(new URL('/tools', url))).ok
  if (isAgent) await measureAgent(Number(url.port))
  else await measureRelay(url)
}

async function measureRelay(url: URL): Promise<void> {
  const sim = await startSim({
    ...readAddress(options['sim-addr']),
    botToken: BOT_TOKEN,
    holdMs: 35_000,
    log: silentLog,
  })
  const [account] = sim.control.state().bots
  const bot = account?.name ?? BOT
  console.log(`The messaging service is ${sim.url}, its bot token ${BOT_TOKEN}; waiting for the peer to poll it.`)
  await within(PEER_POLLS_WITHIN_MS, 'the peer to poll the messaging service', async () => {
    while (sim.control.state().polls === 0) await new Promise((resolve) => setTimeout(resolve, 100))
  })
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./load.ts', import.meta.url))])
  const stage = { sim, load }
  const tokens = await populate(url.origin, { sim, bot, clients: SIZES.clients })
  const server: Server = {
    name: 'peer',
    bot,
    port: Number(url.port),
    tokens,
    untilParked: () => new Promise((resolve) => setTimeout(resolve, SETTLE_MS)),
    usage: async () => NOTHING_KNOWN,
    stop: async () => {},
  }
  await parkAll(stage, server)
  await measureThroughput(stage, server, Math.ceil(SIZES.messages / 10))
  console.log(`messages  ${brief(await measureThroughput(stage, server, SIZES.messages))}`)
  const wakeUp = await measureWakeUp(stage, server, { count: SIZES.wakeUps, perSecond: 100 })
  console.log(`wake-up   ${brief(wakeUp)}`)
  console.log(`sends     ${brief(await measureSends(stage, server, SIZES.sends))}`)
  await hangUp(stage)
  await Promise.all([load.stop(), sim.stop()])
}

async function measureAgent(port: number): Promise<void> {
  const load = startPart('the load generator', [...TSX, fileURLToPath(new URL('./agent/load.ts', import.meta.url))])
  for (const atOnce of [1, SIZES.atOnce]) {
    const sessions = checkIds(await ask(load, { do: 'create', port, count: SIZES.runs }))
    const { tookMs, doneMs, firstMs } = checkRan(await ask(load, { do: 'run', port, sessions, atOnce }))
    const found = {
      rate: SIZES.runs / (tookMs / 1000),
      p50: quantile(doneMs, 0.5),
      p99: quantile(doneMs, 0.99),
      first: quantile(firstMs, 0.5),
    }
    console.log(`runs, ${atOnce} at once  ${brief(found)}`)
  }
  await load.stop()
}
