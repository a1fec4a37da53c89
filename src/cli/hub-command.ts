import { resolve } from 'node:path'
import pc from 'picocolors'
import { HUB_SETTINGS, type HubSettings, parseHubConfig } from '../hub/config.ts'
import type { RunningHub } from '../hub/main.ts'
import { AppError } from '../kit/errors.ts'
import { jsonLog } from '../kit/log.ts'
import { SIM_SETTINGS } from '../sim/config.ts'
import type { RunningSim } from '../sim/main.ts'
import type { CommandSpec } from './command.ts'
import { newBotToken } from './sim-command.ts'
import { banner, reachable, stopOnSignal } from './terminal.ts'

/** `switchboard hub` */
export const hubCommand: CommandSpec = {
  name: 'hub',
  description: 'run the message relay hub',
  group: 'Run:',
  settings: HUB_SETTINGS,
  examples: [
    ['switchboard hub', 'with a simulated messaging service beside it'],
    ['switchboard hub --upstream-url https://… ', 'with RELAY_UPSTREAM_TOKEN in the environment: a real one'],
    ['RELAY_ADMIN_TOKEN=… switchboard hub --addr 0.0.0.0:8765', 'to be administered from elsewhere'],
  ],
  async run({ flags, complain }) {
    const { settings, problems } = parseHubConfig(flags, process.env)
    complain(problems)
    await runHub(settings)
  },
}

/** The hub, and the sim where no service is configured. Users' messages are taken once `pollAfter` has come. */
export async function launchHub(
  settings: HubSettings,
  pollAfter?: Promise<unknown>,
): Promise<{ hub: RunningHub; sim: RunningSim | null; url: string }> {
  // Not at the top: --help and the small commands need none of it.
  const { startHub } = await import('../hub/main.ts')
  const log = jsonLog(settings.logLevel)
  const sim = settings.upstreamUrl === null ? await simBeside(settings) : null
  const url = sim?.url ?? settings.upstreamUrl ?? ''
  const token = sim?.botToken ?? settings.upstreamToken
  // The sim's bot is another after every start, and goes on where the last one was.
  const upstream = { url, token, ...(sim ? { source: 'sim' } : {}) }
  const hub = await startHub({ ...settings, upstream, pollAfter }, log).catch(async (error: unknown) => {
    await sim?.stop()
    throw error
  })
  return { hub, sim, url }
}

async function runHub(settings: HubSettings): Promise<void> {
  const { hub, sim, url } = await launchHub(settings)
  const { at, listens } = reachable(hub)
  banner('hub', [
    ['clients', `${at}/relay/bot/…  (the same at /ilink/bot/…)`],
    ['panel', `${at}/hub/ui`],
    ['health', `${at}/health`],
    ['metrics', `${at}/metrics`],
    ...listens,
    ['data', resolve(settings.dataDir)],
    ['upstream', sim ? `none configured, so a simulated messaging service runs at ${sim.url}` : url],
    ['admin', adminText(settings)],
  ])
  if (sim) {
    console.log(
      pc.dim(`  Say something as a user:  curl -X POST ${sim.url}/sim/say -d '{"user":"ann","text":"hello"}'`),
    )
    console.log(pc.dim(`  Read the answers:         curl '${sim.url}/sim/conversation?user=ann'\n`))
  }
  stopOnSignal(async () => {
    await hub.stop()
    await sim?.stop()
  })
}

/** The sim on the port after the hub's, or on any free one when that is taken. */
async function simBeside({ addr, simAddr, logLevel }: HubSettings): Promise<RunningSim> {
  const { startSim } = await import('../sim/main.ts')
  const log = jsonLog(logLevel === 'info' ? 'warn' : logLevel)
  const start = (at: { host: string; port: number }) =>
    startSim({ ...at, botToken: newBotToken(), holdMs: SIM_SETTINGS.holdMs.fallback, log })
  if (simAddr !== null) return start(simAddr)
  const host = '127.0.0.1'
  const port = addr.port === 0 || addr.port === 65_535 ? 0 : addr.port + 1
  return start({ host, port }).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'address_in_use') return start({ host, port: 0 })
    throw error
  })
}

/** Who may administer the hub. */
export function adminText({ adminToken, insecure }: HubSettings): string {
  if (adminToken !== null) return 'needs RELAY_ADMIN_TOKEN'
  if (insecure) return pc.yellow('OPEN TO EVERY CALLER (--insecure)')
  return 'open to this machine only; set RELAY_ADMIN_TOKEN to reach it from elsewhere'
}
