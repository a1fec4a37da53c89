import { onTestFinished } from 'vitest'
import { type BridgeSettings, parseBridgeConfig } from '../../src/bridge/config.ts'
import { type RunningBridge, startBridge } from '../../src/bridge/main.ts'
import { type Log, silentLog } from '../../src/kit/log.ts'
import { temporaryFolder } from './processes.ts'
import { startTestAgent, type TestAgent, type TestAgentOptions } from './test-agent.ts'
import { startTestHub, type TestHub, type TestHubOptions } from './test-hub.ts'

export interface TestBridgeOptions extends Partial<BridgeSettings> {
  hub?: TestHub
  agent?: TestAgent
  hubOptions?: TestHubOptions
  agentOptions?: TestAgentOptions
  log?: Log
  now?: () => number
  tellAwayMs?: number
  planCheckMs?: number
}

export interface TestBridge {
  hub: TestHub
  agent: TestAgent
  bridge: RunningBridge
  folder: string
  /** As a user; without waiting for anything. */
  say(user: string, text: string, more?: object): void
  /** What the user saw from the bot so far. */
  seen(user: string): Promise<string[]>
  stop(): Promise<void>
}

/** A hub, a sim, an agent server and a bridge between them, all in this process; gone when the test is over. */
export async function startTestBridge(options: TestBridgeOptions = {}): Promise<TestBridge> {
  const { hubOptions, agentOptions, log = silentLog, now, tellAwayMs, planCheckMs, ...settings } = options
  const hub = options.hub ?? (await startTestHub(hubOptions))
  const agent = options.agent ?? (await startTestAgent(agentOptions))
  const folder = settings.dataDir ?? temporaryFolder()
  const { settings: defaults } = parseBridgeConfig({}, {})
  const bridge = await startBridge(
    { ...defaults, hubUrl: hub.url, agentUrl: agent.url, dataDir: folder, ...settings },
    {
      log,
      ...(now === undefined ? {} : { now }),
      ...(tellAwayMs === undefined ? {} : { tellAwayMs }),
      ...(planCheckMs === undefined ? {} : { planCheckMs }),
    },
  )
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= bridge.stop()
    return stopped
  }
  onTestFinished(stop)
  return {
    hub,
    agent,
    bridge,
    folder,
    say: (user, text, more = {}) => void hub.sim.control.say({ user, text, ...more }),
    async seen(user) {
      const { messages } = await hub.sim.control.conversation({ user })
      return messages.filter(({ from }) => from === 'bot').map((message) => String(message.text))
    },
    stop,
  }
}
