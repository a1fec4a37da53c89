import { join } from 'node:path'
import { AGENT_SETTINGS, type AgentSettings, parseAgentConfig } from '../agent/config.ts'
import { BRIDGE_SETTINGS, type BridgeSettings, parseBridgeConfig } from '../bridge/config.ts'
import { HUB_SETTINGS, type HubSettings, parseHubConfig } from '../hub/config.ts'
import { LOG_LEVELS, type LogLevel } from '../kit/log.ts'
import { readChoice, readSettings, type Setting } from '../kit/settings.ts'
import type { Flags } from './command.ts'

/** The settings of `switchboard up`: those of its parts that one wants at hand. The rest comes from the environment. */
export const UP_SETTINGS = {
  dataDir: {
    flag: '--data-dir',
    placeholder: '<folder>',
    env: 'SWITCHBOARD_DATA_DIR',
    help: 'where everything is kept: hub/, agent/, bridge/ and workspace/ inside it',
    fallback: '.switchboard',
    read: readFolder,
  },
  hubAddr: { ...HUB_SETTINGS.addr, flag: '--hub-addr' },
  agentAddr: { ...AGENT_SETTINGS.addr, flag: '--agent-addr' },
  simAddr: { ...HUB_SETTINGS.simAddr, fallbackText: "the hub's port + 1" },
  upstreamUrl: { ...HUB_SETTINGS.upstreamUrl, help: 'the messaging service; without it a simulated one is started' },
  upstreamToken: HUB_SETTINGS.upstreamToken,
  model: AGENT_SETTINGS.model,
  workspace: { ...AGENT_SETTINGS.workspace, fallback: '', fallbackText: 'workspace/ in the data directory' },
  allowNetwork: AGENT_SETTINGS.allowNetwork,
  unsafeShell: AGENT_SETTINGS.unsafeShell,
  name: BRIDGE_SETTINGS.name,
  showTools: BRIDGE_SETTINGS.showTools,
  planMode: BRIDGE_SETTINGS.planMode,
  ownFolders: BRIDGE_SETTINGS.ownFolders,
  logLevel: {
    flag: '--log-level',
    placeholder: '<level>',
    env: 'SWITCHBOARD_LOG_LEVEL',
    help: LOG_LEVELS.join(', '),
    fallback: 'warn',
    read: readChoice(LOG_LEVELS),
  } satisfies Setting<LogLevel>,
  adminToken: HUB_SETTINGS.adminToken,
  authKeys: AGENT_SETTINGS.authKeys,
}

export interface UpConfig {
  dataDir: string
  workspace: string
  hub: HubSettings
  agent: AgentSettings
  bridge: BridgeSettings
}

/** The settings of all parts, or everything that is wrong with them. */
export function parseUpConfig(
  flags: Flags,
  env: Readonly<Record<string, string | undefined>>,
): { config: UpConfig; problems: string[] } {
  const { values, problems: own } = readSettings(UP_SETTINGS, flags, env)
  const { dataDir, logLevel } = values
  const workspace = values.workspace === '' ? join(dataDir, 'workspace') : values.workspace
  const hub = parseHubConfig(
    {
      addr: flags.hubAddr,
      simAddr: flags.simAddr,
      upstreamUrl: flags.upstreamUrl,
      upstreamToken: flags.upstreamToken,
      dataDir: join(dataDir, 'hub'),
      logLevel,
    },
    env,
  )
  const { model, allowNetwork, unsafeShell, name, showTools, planMode, ownFolders } = flags
  const agent = parseAgentConfig(
    {
      addr: flags.agentAddr,
      authKeys: flags.authKeys,
      workspace,
      dataDir: join(dataDir, 'agent'),
      logLevel,
      model,
      allowNetwork,
      unsafeShell,
    },
    env,
  )
  const bridge = parseBridgeConfig(
    { dataDir: join(dataDir, 'bridge'), logLevel, name, showTools, planMode, ownFolders },
    env,
  )
  const { addr, simAddr } = hub.settings
  const beside = { host: '127.0.0.1', port: addr.port === 0 ? 0 : addr.port + 1 }
  return {
    config: {
      dataDir,
      workspace,
      hub: { ...hub.settings, simAddr: simAddr ?? beside },
      agent: agent.settings,
      bridge: { ...bridge.settings, fallback: true },
    },
    // What two tables read is wrong once; --addr has another name here, under which it was told.
    problems: [...new Set([...own, ...hub.problems, ...agent.problems, ...bridge.problems])].filter(
      (problem) => !problem.startsWith('--addr '),
    ),
  }
}

function readFolder(text: string): string {
  if (text.trim() === '' || text.includes('\0')) throw new Error('must name a folder')
  return text
}
