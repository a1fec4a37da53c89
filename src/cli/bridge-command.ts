import { resolve } from 'node:path'
import { BRIDGE_SETTINGS, parseBridgeConfig } from '../bridge/config.ts'
import { jsonLog } from '../kit/log.ts'
import type { CommandSpec } from './command.ts'
import { banner, stopOnSignal } from './terminal.ts'

/** `switchboard bridge` */
export const bridgeCommand: CommandSpec = {
  name: 'bridge',
  description: 'answer the users of a hub with the sessions of an agent server',
  group: 'Run:',
  settings: BRIDGE_SETTINGS,
  examples: [
    ['switchboard bridge', 'the hub and the agent server on this machine'],
    ['switchboard bridge --name coder --agent-url http://10.0.0.5:3000', 'a second agent behind the same hub'],
  ],
  async run({ flags, complain }) {
    const { settings, problems } = parseBridgeConfig(flags, process.env)
    complain(problems)
    const { startBridge } = await import('../bridge/main.ts')
    const waiting = new AbortController()
    let stop = async () => waiting.abort()
    stopOnSignal(() => stop())
    const bridge = await startBridge(settings, { log: jsonLog(settings.logLevel), signal: waiting.signal })
    stop = bridge.stop
    banner('bridge', [
      ['name', `${bridge.name}  (in the chat: @${bridge.name}, /use ${bridge.name})`],
      ['hub', settings.hubUrl],
      ['agent', settings.agentUrl],
      ['data', resolve(bridge.folder)],
      ['in chat', '/new begins anew, /stop ends what is running, /model <name> chooses a model'],
    ])
  },
}
