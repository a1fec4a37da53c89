import { LOG_LEVELS, type LogLevel } from '../kit/log.ts'
import {
  readChoice,
  readHttpUrl,
  readInteger,
  readSecret,
  readSettings,
  readSwitch,
  type Setting,
} from '../kit/settings.ts'

const SYSTEM_PROMPT =
  'You talk with a person in a messenger. Answer in short plain text that reads well on a phone. ' +
  'Several messages may come as one, separated by blank lines: answer all of them. ' +
  'You cannot send or open pictures and files of the chat; say so when it matters.'

/** Every setting of the bridge, with its default, once. */
export const BRIDGE_SETTINGS = {
  name: {
    flag: '--name',
    placeholder: '<name>',
    env: 'BRIDGE_NAME',
    help: 'what the agent is called at the hub; users reach it as @name',
    fallback: 'agent',
    read: readName,
  },
  hubUrl: {
    flag: '--hub-url',
    placeholder: '<url>',
    env: 'BRIDGE_HUB_URL',
    help: 'the hub whose users are answered',
    fallback: 'http://127.0.0.1:8765',
    read: readHttpUrl,
  },
  agentUrl: {
    flag: '--agent-url',
    placeholder: '<url>',
    env: 'BRIDGE_AGENT_URL',
    help: 'the agent session server that answers',
    fallback: 'http://127.0.0.1:3000',
    read: readHttpUrl,
  },
  dataDir: {
    flag: '--data-dir',
    placeholder: '<folder>',
    env: 'BRIDGE_DATA_DIR',
    help: 'where it remembers conversations and what is answered; made if it is not there',
    fallback: null,
    fallbackText: '.switchboard/bridge-<name>',
    read: readFolder,
  } satisfies Setting<string | null>,
  maxTurns: {
    flag: '--max-turns',
    placeholder: '<n>',
    env: 'BRIDGE_MAX_TURNS',
    help: 'conversations that are answered at once; the others wait their turn',
    fallback: 200,
    read: readInteger(1, 100_000),
  },
  showTools: {
    flag: '--show-tools',
    env: 'BRIDGE_SHOW_TOOLS',
    help: 'tell users in a short line which tools are used',
    fallback: false,
    read: readSwitch,
  },
  planMode: {
    flag: '--plan-mode',
    env: 'BRIDGE_PLAN_MODE',
    help: 'the agent has to have a plan approved in the chat before it changes anything',
    fallback: false,
    read: readSwitch,
  },
  ownFolders: {
    flag: '--own-folders',
    env: 'BRIDGE_OWN_FOLDERS',
    help: "each conversation works in a folder of its own inside the agent's workspace",
    fallback: false,
    read: readSwitch,
  },
  systemPrompt: {
    flag: '--system-prompt',
    placeholder: '<text>',
    env: 'BRIDGE_SYSTEM_PROMPT',
    help: 'what the agent is told about its place',
    fallback: SYSTEM_PROMPT,
    fallbackText: 'that it talks with a person in a messenger',
    read: (text: string) => text,
  },
  fallback: {
    flag: '--fallback',
    env: 'BRIDGE_FALLBACK',
    help: 'register as a client that is taken only when no other is online',
    fallback: false,
    read: readSwitch,
  },
  logLevel: {
    flag: '--log-level',
    placeholder: '<level>',
    env: 'BRIDGE_LOG_LEVEL',
    help: LOG_LEVELS.join(', '),
    fallback: 'info',
    read: readChoice(LOG_LEVELS),
  } satisfies Setting<LogLevel>,
  token: {
    env: 'BRIDGE_TOKEN',
    help: 'the token of this client at the hub; without it the bridge registers itself and keeps its token',
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
  adminToken: {
    env: 'RELAY_ADMIN_TOKEN',
    help: "the hub's admin token, where it has one, for registering",
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
  agentKey: {
    env: 'BRIDGE_AGENT_KEY',
    help: 'a key of the agent server, where it wants one',
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
}

/** The bridge's configuration as it was asked for. */
export type BridgeSettings = ReturnType<typeof readSettings<typeof BRIDGE_SETTINGS>>['values']

/** The settings, or everything that is wrong with them. */
export function parseBridgeConfig(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
): { settings: BridgeSettings; problems: string[] } {
  const { values, problems } = readSettings(BRIDGE_SETTINGS, flags, env)
  return { settings: values, problems }
}

/** Where a bridge keeps its data when nothing is said. */
export function bridgeFolder({ dataDir, name }: Pick<BridgeSettings, 'dataDir' | 'name'>): string {
  return dataDir ?? `.switchboard/bridge-${encodeURIComponent(name.toLowerCase())}`
}

function readName(text: string): string {
  const name = text.trim()
  if (name === '' || name.length > 64) throw new Error('must have 1 to 64 characters')
  return name
}

function readFolder(text: string): string {
  if (text.trim() === '' || text.includes('\0')) throw new Error('must name a folder')
  return text
}
