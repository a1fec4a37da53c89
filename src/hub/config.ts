import { LOG_LEVELS, type LogLevel } from '../kit/log.ts'
import {
  readAddress,
  readChoice,
  readHttpUrl,
  readInteger,
  readSecret,
  readSettings,
  readSwitch,
  type Setting,
} from '../kit/settings.ts'
import { readKey } from './key-text.ts'

/** Every setting of the hub, with its default, once. */
export const HUB_SETTINGS = {
  addr: {
    flag: '--addr',
    placeholder: '<host:port>',
    env: 'RELAY_ADDR',
    help: 'where the hub listens',
    fallback: { host: '127.0.0.1', port: 8765 },
    fallbackText: '127.0.0.1:8765',
    read: readAddress,
  },
  dataDir: {
    flag: '--data-dir',
    placeholder: '<folder>',
    env: 'RELAY_DATA_DIR',
    help: 'where messages are kept; made if it is not there',
    fallback: '.switchboard',
    read: readFolder,
  },
  databaseUrl: {
    flag: '--database-url',
    placeholder: '<url>',
    env: 'RELAY_DATABASE_URL',
    help: 'a Postgres database that several hubs share; messages are then kept there (better in the environment)',
    fallback: null,
    fallbackText: 'none: one hub, in its data directory',
    read: readDatabaseUrl,
  } satisfies Setting<string | null>,
  nodeUrl: {
    flag: '--node-url',
    placeholder: '<url>',
    env: 'RELAY_NODE_URL',
    help: 'where the other hubs of the same database reach this one',
    fallback: null,
    fallbackText: 'the address it listens on',
    read: readHttpUrl,
  } satisfies Setting<string | null>,
  leaseMs: {
    flag: '--lease-ms',
    placeholder: '<ms>',
    env: 'RELAY_LEASE_MS',
    help: 'how long a hub that leads may be silent before another takes over',
    fallback: 15_000,
    read: readInteger(1_000, 600_000),
  },
  upstreamUrl: {
    flag: '--upstream-url',
    placeholder: '<url>',
    env: 'RELAY_UPSTREAM_URL',
    help: 'the messaging service; without it the hub starts a simulated one beside itself',
    fallback: null,
    fallbackText: 'the sim',
    read: readHttpUrl,
  } satisfies Setting<string | null>,
  upstreamToken: {
    flag: '--upstream-token',
    placeholder: '<token>',
    env: 'RELAY_UPSTREAM_TOKEN',
    help: 'the bot token at that service (better in the environment: flags show in process lists)',
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
  upstreamHosts: {
    flag: '--upstream-hosts',
    placeholder: '<names>',
    env: 'RELAY_UPSTREAM_HOSTS',
    help: "further hosts (comma-separated) to which the service may move a login, beside its own domain's",
    fallback: [],
    fallbackText: 'none',
    read: readNames,
  } satisfies Setting<string[]>,
  credentialsKeyFile: {
    flag: '--credentials-key-file',
    placeholder: '<file>',
    env: 'RELAY_CREDENTIALS_KEY_FILE',
    help: 'the key that stored bot logins are encrypted with',
    fallback: null,
    fallbackText: 'one that the hub makes in its data directory',
    read: readFile,
  } satisfies Setting<string | null>,
  forgetLogins: {
    flag: '--forget-logins',
    env: 'RELAY_FORGET_LOGINS',
    help: 'delete all stored bot logins at the start; for when their key is lost',
    fallback: false,
    read: readSwitch,
  },
  cdnUrl: {
    flag: '--cdn-url',
    placeholder: '<url>',
    env: 'RELAY_CDN_URL',
    help: 'where media is uploaded, for services whose answers do not say it',
    fallback: null,
    fallbackText: "the service's own",
    read: readHttpUrl,
  } satisfies Setting<string | null>,
  mediaRelay: {
    flag: '--media-relay',
    env: 'RELAY_MEDIA_RELAY',
    help: 'pass media through the hub (/c2c/upload, /c2c/download) for clients that can reach nothing else',
    fallback: false,
    read: readSwitch,
  },
  publicUrl: {
    flag: '--public-url',
    placeholder: '<url>',
    env: 'RELAY_PUBLIC_URL',
    help: "the hub's own address as clients know it",
    fallback: null,
    fallbackText: 'the one a client calls',
    read: readHttpUrl,
  } satisfies Setting<string | null>,
  simAddr: {
    flag: '--sim-addr',
    placeholder: '<host:port>',
    env: 'RELAY_SIM_ADDR',
    help: 'where the simulated service listens',
    fallback: null,
    fallbackText: "the hub's port + 1, or any free one",
    read: readAddress,
  } satisfies Setting<{ host: string; port: number } | null>,
  pollHoldMs: {
    flag: '--poll-hold-ms',
    placeholder: '<ms>',
    env: 'RELAY_POLL_HOLD_MS',
    help: 'how long an empty poll waits',
    fallback: 30_000,
    read: readInteger(10, 600_000),
  },
  pacingMs: {
    flag: '--pacing-ms',
    placeholder: '<ms>',
    env: 'RELAY_PACING_MS',
    help: 'least time between two messages to the service',
    fallback: null,
    fallbackText: '1500, or 0 when the service is on this machine',
    read: readInteger(0, 600_000),
  } satisfies Setting<number | null>,
  sendsPerContext: {
    flag: '--sends-per-context',
    placeholder: '<n>',
    env: 'RELAY_SENDS_PER_CONTEXT',
    help: 'messages the service takes for each message of a user, for what is shown as left; 0: no limit',
    fallback: 10,
    read: readInteger(0, 1_000_000),
  },
  replyWindowMs: {
    flag: '--reply-window-ms',
    placeholder: '<ms>',
    env: 'RELAY_REPLY_WINDOW_MS',
    help: 'how long after their last message users can be reached, for what is shown as left; 0: no limit',
    fallback: 86_400_000,
    read: readInteger(0, 31_536_000_000),
  },
  accountSends: {
    flag: '--account-sends',
    placeholder: '<n>',
    env: 'RELAY_ACCOUNT_SENDS',
    help: 'messages an account may send within its window before clients are told to wait; 0: no limit',
    fallback: 0,
    read: readInteger(0, 1_000_000),
  },
  accountWindowMs: {
    flag: '--account-window-ms',
    placeholder: '<ms>',
    env: 'RELAY_ACCOUNT_WINDOW_MS',
    help: 'the window of --account-sends',
    fallback: 300_000,
    read: readInteger(1_000, 86_400_000),
  },
  commandPrefix: {
    flag: '--command-prefix',
    placeholder: '<text>',
    env: 'RELAY_COMMAND_PREFIX',
    help: "what the hub's chat commands start with",
    fallback: '/',
    read: readPrefix,
  },
  requestsPerSecond: {
    flag: '--requests-per-second',
    placeholder: '<n>',
    env: 'RELAY_REQUESTS_PER_SECOND',
    help: 'calls a second per client before it is told to slow down; 0 sets no limit',
    fallback: 1_000,
    read: readInteger(0, 1_000_000),
  },
  maxPolls: {
    flag: '--max-polls',
    placeholder: '<n>',
    env: 'RELAY_MAX_POLLS',
    help: 'polls that may wait at once',
    fallback: 20_000,
    read: readInteger(1, 1_000_000),
  },
  allowedHosts: {
    flag: '--allowed-host',
    placeholder: '<names>',
    env: 'RELAY_ALLOWED_HOST',
    help: 'names (comma-separated) under which the open panel may be reached, beside localhost',
    fallback: [],
    fallbackText: 'none',
    read: readNames,
  } satisfies Setting<string[]>,
  insecure: {
    flag: '--insecure',
    env: 'RELAY_INSECURE',
    help: 'leave administration open to every caller when no admin token is set',
    fallback: false,
    read: readSwitch,
  },
  logLevel: {
    flag: '--log-level',
    placeholder: '<level>',
    env: 'RELAY_LOG_LEVEL',
    help: LOG_LEVELS.join(', '),
    fallback: 'info',
    read: readChoice(LOG_LEVELS),
  } satisfies Setting<LogLevel>,
  adminToken: {
    env: 'RELAY_ADMIN_TOKEN',
    help: 'with it, every /hub/* call needs "Authorization: Bearer <this>"',
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
  credentialsKey: {
    env: 'RELAY_CREDENTIALS_KEY',
    help: 'that key itself: 64 hex digits, or 32 bytes in base64',
    fallback: null,
    read: readCredentialsKey,
  } satisfies Setting<Buffer | null>,
  metricsToken: {
    env: 'RELAY_METRICS_TOKEN',
    help: 'with it, /metrics needs "Authorization: Bearer <this>"',
    fallback: null,
    read: readSecret,
  } satisfies Setting<string | null>,
}

/** The hub's configuration as it was asked for. */
export type HubSettings = ReturnType<typeof readSettings<typeof HUB_SETTINGS>>['values']

/** What {@link startHub} needs: the settings, with an upstream that is there. */
export interface HubConfig extends HubSettings {
  upstream: {
    url: string
    /** null: a person logs in by QR code. */
    token: string | null
    /** Which cursor belongs to it, where that does not follow from the address and the bot. */
    source?: string
  }
  /** The service is not polled before this: for a client that starts beside the hub and is to get the first message. */
  pollAfter?: Promise<unknown> | undefined
}

/** The settings, or everything that is wrong with them. */
export function parseHubConfig(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
): { settings: HubSettings; problems: string[] } {
  const { values, problems } = readSettings(HUB_SETTINGS, flags, env)
  const said = (name: 'upstreamUrl' | 'upstreamToken') =>
    flags[name] !== undefined || env[HUB_SETTINGS[name].env] !== undefined
  if (said('upstreamToken') && !said('upstreamUrl'))
    problems.push('--upstream-url (or RELAY_UPSTREAM_URL) is missing; --upstream-token is of no use without it')
  if (values.databaseUrl !== null && values.upstreamUrl === null)
    problems.push('--upstream-url (or RELAY_UPSTREAM_URL) is missing; hubs that share a database share a service too')
  return { settings: values, problems }
}

/** The text is never repeated in the problem: it may hold a password. */
function readDatabaseUrl(text: string): string {
  if (!URL.canParse(text) || !/^postgres(ql)?:$/.test(new URL(text).protocol))
    throw new Error('must be an address such as postgres://user:password@host:5432/database')
  return text
}

function readFolder(text: string): string {
  if (text.trim() === '' || text.includes('\0')) throw new Error('must name a folder')
  return text
}

function readFile(text: string): string {
  if (text.trim() === '' || text.includes('\0')) throw new Error('must name a file')
  return text
}

/** The text is never repeated in the problem: it is a secret. */
function readCredentialsKey(text: string): Buffer {
  const key = readKey(text)
  if (key === null)
    throw new Error('must be 64 hex digits, or 32 bytes in base64 ("openssl rand -base64 32" makes one)')
  return key
}

function readPrefix(text: string): string {
  if (text === '' || text.length > 8 || /[\s@\p{L}\p{N}]/u.test(text))
    throw new Error('must be 1 to 8 signs such as / or !, no letters, digits, spaces or @')
  return text
}

function readNames(text: string): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '')
  if (names.some((name) => !/^[\p{L}\p{N}._-]+$/u.test(name)))
    throw new Error(`must be names such as hub.example, without port or path, not "${text}"`)
  return names
}
