import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import pc from 'picocolors'
import type { RunningAgent } from '../agent/main.ts'
import { AppError } from '../kit/errors.ts'
import { jsonLog } from '../kit/log.ts'
import { modelProblems, modelText } from './agent-command.ts'
import type { CommandSpec } from './command.ts'
import { adminText, launchHub } from './hub-command.ts'
import { banner, type Line, reachable, stopOnSignal } from './terminal.ts'
import { parseUpConfig, UP_SETTINGS, type UpConfig } from './up-settings.ts'
import { VERSION } from './version.ts'

/** `switchboard up` */
export const upCommand: CommandSpec = {
  name: 'up',
  description: 'run everything in one process: hub, agent, bridge and a simulated messenger',
  group: 'Run:',
  settings: UP_SETTINGS,
  examples: [
    ['switchboard up', 'with an offline demo model and a simulated messenger'],
    ['ANTHROPIC_API_KEY=… switchboard up', 'with a real model'],
    ['RELAY_UPSTREAM_URL=… RELAY_UPSTREAM_TOKEN=… switchboard up', 'with a real messenger'],
  ],
  async run({ flags, complain }) {
    const { config, problems } = parseUpConfig(flags, process.env)
    complain([...problems, ...(await modelProblems(config.agent.model, flags))])
    const stops: (() => Promise<void>)[] = []
    const stop = async () => {
      // The last one started goes first: who asks goes before who is asked.
      for (const one of stops.splice(0).reverse()) await one()
    }
    stopOnSignal(stop)
    try {
      await startAll(config, stops)
    } catch (error) {
      await stop()
      throw error
    }
  },
}

async function startAll(config: UpConfig, stops: (() => Promise<void>)[]): Promise<void> {
  const { hub: hubSettings, agent: agentSettings, bridge: bridgeSettings } = config
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
  await mkdir(config.workspace, { recursive: true })
  // A user who wrote before the first start is answered, too: nothing is taken before there is somebody to give it to.
  let takeMessages = () => {}
  const bridged = new Promise<void>((resolve) => {
    takeMessages = resolve
  })
  const { hub, sim, url } = await launchHub(hubSettings, bridged).catch(portIsTaken)
  stops.push(async () => {
    await hub.stop()
    await sim?.stop()
  })
  const { startAgent } = await import('../agent/main.ts')
  const surroundings = { log: jsonLog(agentSettings.logLevel), env: process.env, version: VERSION }
  const agent = await startAgent(agentSettings, surroundings).catch(portIsTaken)
  stops.push(() => agent.stop())
  const { startBridge } = await import('../bridge/main.ts')
  const { at: hubUrl } = reachable(hub)
  const { at: agentUrl } = reachable(agent)
  const agentKey = agentSettings.authKeys?.[0] ?? null
  const bridge = await startBridge(
    { ...bridgeSettings, hubUrl, agentUrl, agentKey },
    { log: jsonLog(bridgeSettings.logLevel), reclaim: true },
  )
  stops.push(() => bridge.stop())
  takeMessages()
  banner('is up', [
    ...chatLines(sim?.url ?? null, url, hubSettings.upstreamToken),
    ['panel', `${hubUrl}/hub/ui`],
    ['console', `${agentUrl}/ui`],
    ['model', modelText(agent.model)],
    ...shellLines(agent),
    ['data', resolve(config.dataDir)],
    ['workspace', agent.workspace],
    ['admin', adminText(hubSettings)],
  ])
  const text = sim
    ? `  Or say something from here:  curl -X POST ${sim.url}/sim/say -d '{"user":"ann","text":"list files"}'`
    : '  Write to the bot in the messenger.'
  console.log(pc.dim(`${text}\n  Talk to the agent alone:     switchboard chat\n  Ctrl-C stops all of it.\n`))
}

function chatLines(simUrl: string | null, upstreamUrl: string, token: string | null): Line[] {
  const login = token === null ? '  (if no bot is logged in yet: switchboard login)' : ''
  if (simUrl === null) return [['upstream', `${upstreamUrl}${login}`]]
  return [['chat', `${simUrl}/  (write as a user; no messaging service is configured, so this one is simulated)`]]
}

function shellLines({ shellOff }: RunningAgent): Line[] {
  return shellOff === null ? [] : [['shell', shellOff]]
}

/** Says which of several addresses it is. */
function portIsTaken(error: unknown): never {
  if (!(error instanceof AppError) || error.code !== 'address_in_use') throw error
  const address = /^\S+/.exec(error.message)?.[0] ?? 'An address'
  throw new AppError(
    'address_in_use',
    `${address} is taken by another program. Is Switchboard running already? Stop it, or choose other addresses with --hub-addr, --agent-addr and --sim-addr.`,
    { cause: error },
  )
}
