import { LOG_LEVELS, type LogLevel } from '../kit/log.ts'
import type { BucketAddress } from '../kit/s3/bucket.ts'
import {
  readAddress,
  readChoice,
  readHttpUrl,
  readInteger,
  readSettings,
  readSwitch,
  type Setting,
} from '../kit/settings.ts'
import { DEFAULT_LIMITS } from './workspace/limits.ts'

/** Every setting of the agent server, with its default, once. */
export const AGENT_SETTINGS = {
  addr: {
    flag: '--addr',
    placeholder: '<host:port>',
    env: 'AGENT_ADDR',
    help: 'where the server listens',
    fallback: { host: '127.0.0.1', port: 3000 },
    fallbackText: '127.0.0.1:3000',
    read: readAddress,
  },
  workspace: {
    flag: '--workspace',
    placeholder: '<folder>',
    env: 'AGENT_WORKSPACE',
    help: 'the folder that sessions work in, and cannot leave; made if it is not there',
    fallback: '.',
    fallbackText: 'the current folder',
    read: readFolder,
  },
  authKeys: {
    flag: '--auth-keys',
    placeholder: '<keys>',
    env: 'AGENT_AUTH_KEYS',
    help: 'accepted API keys, comma-separated (better in the environment: flags show in process lists)',
    fallback: null,
    fallbackText: 'none: open to this machine only',
    read: readKeys,
  } satisfies Setting<string[] | null>,
  model: {
    flag: '--model',
    placeholder: '<provider:model>',
    env: 'AGENT_MODEL',
    help: 'who answers: openai, anthropic, google, openai-compatible with a model name, scripted with a file, or demo',
    fallback: null,
    fallbackText: 'by the key that is set, else demo',
    read: (text: string) => text,
  } satisfies Setting<string | null>,
  mcpConfig: {
    flag: '--mcp-config',
    placeholder: '<file>',
    env: 'AGENT_MCP_CONFIG',
    help: 'a JSON file with MCP servers whose tools agents get',
    fallback: null,
    read: readFolder,
  } satisfies Setting<string | null>,
  allowNetwork: {
    flag: '--allow-network',
    env: 'AGENT_ALLOW_NETWORK',
    help: 'let tools reach the network',
    fallback: false,
    read: readSwitch,
  },
  unsafeShell: {
    flag: '--unsafe-shell',
    env: 'AGENT_UNSAFE_SHELL',
    help: 'run commands without a sandbox where bubblewrap does not work',
    fallback: false,
    read: readSwitch,
  },
  shellProcesses: {
    flag: '--shell-max-processes',
    placeholder: '<n>',
    env: 'AGENT_SHELL_MAX_PROCESSES',
    help: 'processes and threads that one command may have, in the sandbox; not held to when the server runs as root',
    fallback: DEFAULT_LIMITS.processes,
    read: readInteger(8, 4_194_304),
  },
  shellMemoryMb: {
    flag: '--shell-max-memory-mb',
    placeholder: '<MiB>',
    env: 'AGENT_SHELL_MAX_MEMORY_MB',
    help: 'memory that one process of a command may use',
    fallback: DEFAULT_LIMITS.memoryMb,
    read: readInteger(16, 16_777_216),
  },
  shellFileMb: {
    flag: '--shell-max-file-mb',
    placeholder: '<MiB>',
    env: 'AGENT_SHELL_MAX_FILE_MB',
    help: 'the largest file that a command may write',
    fallback: DEFAULT_LIMITS.fileMb,
    read: readInteger(1, 16_777_216),
  },
  insecure: {
    flag: '--insecure',
    env: 'AGENT_INSECURE',
    help: 'leave the API open to every caller when no keys are set',
    fallback: false,
    read: readSwitch,
  },
  allowedHosts: {
    flag: '--allowed-host',
    placeholder: '<names>',
    env: 'AGENT_ALLOWED_HOST',
    help: 'names (comma-separated) under which the open API may be reached, beside localhost',
    fallback: [],
    fallbackText: 'none',
    read: (text: string) =>
      text
        .split(',')
        .map((name) => name.trim().toLowerCase())
        .filter((name) => name !== ''),
  } satisfies Setting<string[]>,
  dataDir: {
    flag: '--data-dir',
    placeholder: '<folder>',
    env: 'AGENT_DATA_DIR',
    help: 'where sessions, transcripts and events are kept over a restart; never visible to tools',
    fallback: null,
    fallbackText: 'none: kept in memory',
    read: readFolder,
  } satisfies Setting<string | null>,
  redisUrl: {
    flag: '--redis-url',
    placeholder: '<url>',
    env: 'AGENT_REDIS_URL',
    help: 'Redis or Valkey that several servers share their sessions in (a password better in the environment)',
    fallback: null,
    fallbackText: 'none: one server alone',
    read: readRedisUrl,
  } satisfies Setting<string | null>,
  s3Url: {
    flag: '--s3-url',
    placeholder: '<url>',
    env: 'AGENT_S3_URL',
    help: 'a bucket that keeps all sessions of one server or, with --redis-url, older ones of several: s3://bucket?endpoint=https://host&region=name',
    fallback: null,
    fallbackText: 'none',
    read: readS3Url,
  } satisfies Setting<BucketAddress | null>,
  archiveAfterMs: {
    flag: '--archive-after-ms',
    placeholder: '<ms>',
    env: 'AGENT_ARCHIVE_AFTER_MS',
    help: 'with --redis-url and --s3-url: how long after its last run a session stays in Redis',
    fallback: 10 * 60_000,
    read: readInteger(0, 30 * 24 * 60 * 60_000),
  },
  leaseMs: {
    flag: '--lease-ms',
    placeholder: '<ms>',
    env: 'AGENT_LEASE_MS',
    help: 'with --redis-url or --s3-url: how long a server may be silent before another takes over',
    fallback: 15_000,
    read: readInteger(500, 300_000),
  },
  maxSessions: {
    flag: '--max-sessions',
    placeholder: '<n>',
    env: 'AGENT_MAX_SESSIONS',
    help: 'sessions that may exist at once',
    fallback: 100_000,
    read: readInteger(1, 10_000_000),
  },
  maxLogEvents: {
    flag: '--max-log-events',
    placeholder: '<n>',
    env: 'AGENT_MAX_LOG_EVENTS',
    help: 'events of a session that can still be read; the oldest go, the transcript stays',
    fallback: 20_000,
    read: readInteger(100, 10_000_000),
  },
  maxLogBytes: {
    flag: '--max-log-bytes',
    placeholder: '<bytes>',
    env: 'AGENT_MAX_LOG_BYTES',
    help: 'bytes of events of a session, likewise',
    fallback: 16 * 1024 * 1024,
    read: readInteger(65_536, 1024 * 1024 * 1024),
  },
  maxRuns: {
    flag: '--max-runs',
    placeholder: '<n>',
    env: 'AGENT_MAX_RUNS',
    help: 'session runs that may be under way at once',
    fallback: 1_000,
    read: readInteger(1, 1_000_000),
  },
  maxQueue: {
    flag: '--max-queue',
    placeholder: '<n>',
    env: 'AGENT_MAX_QUEUE',
    help: 'runs that may wait in one session',
    fallback: 16,
    read: readInteger(0, 10_000),
  },
  requestsPerSecond: {
    flag: '--requests-per-second',
    placeholder: '<n>',
    env: 'AGENT_REQUESTS_PER_SECOND',
    help: 'calls that one API key (or one address) may make; 0 sets no limit',
    fallback: 500,
    read: readInteger(0, 1_000_000),
  },
  maxSteps: {
    flag: '--max-steps',
    placeholder: '<n>',
    env: 'AGENT_MAX_STEPS',
    help: 'turns of the model in a run that does not say how many it may have',
    fallback: 50,
    read: readInteger(1, 1000),
  },
  maxTokens: {
    flag: '--max-tokens',
    placeholder: '<n>',
    env: 'AGENT_MAX_TOKENS',
    help: 'tokens that a run may use',
    fallback: null,
    fallbackText: 'no limit',
    read: readInteger(1, 1_000_000_000_000),
  } satisfies Setting<number | null>,
  maxCost: {
    flag: '--max-cost',
    placeholder: '<dollars>',
    env: 'AGENT_MAX_COST',
    help: 'US dollars that a run may cost, where the price of the model is known',
    fallback: null,
    fallbackText: 'no limit',
    read: readDollars,
  } satisfies Setting<number | null>,
  wallClockMs: {
    flag: '--wall-clock-ms',
    placeholder: '<ms>',
    env: 'AGENT_WALL_CLOCK_MS',
    help: 'how long a run may work',
    fallback: 30 * 60_000,
    read: readInteger(100, 24 * 60 * 60_000),
  },
  firstByteMs: {
    flag: '--model-first-byte-ms',
    placeholder: '<ms>',
    env: 'AGENT_MODEL_FIRST_BYTE_MS',
    help: 'how long a model may be silent before its first sign of life',
    fallback: 90_000,
    read: readInteger(10, 3_600_000),
  },
  betweenChunksMs: {
    flag: '--model-silence-ms',
    placeholder: '<ms>',
    env: 'AGENT_MODEL_SILENCE_MS',
    help: 'how long a model may be silent in the middle of its answer',
    fallback: 120_000,
    read: readInteger(10, 3_600_000),
  },
  wholeTurnMs: {
    flag: '--model-turn-ms',
    placeholder: '<ms>',
    env: 'AGENT_MODEL_TURN_MS',
    help: 'how long one answer of a model may take in all',
    fallback: 600_000,
    read: readInteger(10, 24 * 3_600_000),
  },
  modelTries: {
    flag: '--model-tries',
    placeholder: '<n>',
    env: 'AGENT_MODEL_TRIES',
    help: 'how often a model is asked for one answer when it fails in a way that may pass',
    fallback: 5,
    read: readInteger(1, 100),
  },
  allowedOrigins: {
    flag: '--allow-origin',
    placeholder: '<origins>',
    env: 'AGENT_ALLOW_ORIGIN',
    help: 'sites (comma-separated, such as https://app.example) whose pages may call the API from a browser',
    fallback: [],
    fallbackText: 'none',
    read: readOrigins,
  } satisfies Setting<string[]>,
  logLevel: {
    flag: '--log-level',
    placeholder: '<level>',
    env: 'AGENT_LOG_LEVEL',
    help: LOG_LEVELS.join(', '),
    fallback: 'info',
    read: readChoice(LOG_LEVELS),
  } satisfies Setting<LogLevel>,
}

/** The agent server's configuration as it was asked for. */
export type AgentSettings = ReturnType<typeof readSettings<typeof AGENT_SETTINGS>>['values']

/** The settings, or everything that is wrong with them. */
export function parseAgentConfig(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
): { settings: AgentSettings; problems: string[] } {
  const { values, problems } = readSettings(AGENT_SETTINGS, flags, env)
  if (values.redisUrl !== null && values.dataDir !== null)
    problems.push('--redis-url and --data-dir exclude each other; sessions are kept in one of them')
  if (values.s3Url !== null && values.redisUrl === null && values.dataDir !== null)
    problems.push('--s3-url and --data-dir exclude each other; sessions are kept in one of them')
  return { settings: values, problems }
}

/** Never repeated in the problem: it may hold a password. */
function readRedisUrl(text: string): string {
  if (!URL.canParse(text) || !/^rediss?:$/.test(new URL(text).protocol))
    throw new Error('must be an address such as redis://host:6379')
  return text
}

/** `s3://bucket/prefix?endpoint=…&region=…`; credentials come from the environment alone. */
function readS3Url(text: string): BucketAddress {
  const form = 'such as s3://bucket?endpoint=https://host&region=name'
  if (!URL.canParse(text) || new URL(text).protocol !== 's3:') throw new Error(`must be an address ${form}`)
  const { hostname, pathname, searchParams, username, password } = new URL(text)
  if (username !== '' || password !== '')
    throw new Error('must not hold credentials; they are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
  if (hostname === '') throw new Error(`must name a bucket, ${form}`)
  const unknown = [...searchParams.keys()].find((name) => name !== 'endpoint' && name !== 'region')
  if (unknown !== undefined) throw new Error(`has ${unknown}, and knows only endpoint and region`)
  const given = searchParams.get('endpoint')
  const endpoint = given === null ? null : readHttpUrl(given)
  const prefix = pathname.replace(/^\/+|\/+$/g, '')
  const region = searchParams.get('region') ?? (endpoint === null ? null : 'us-east-1')
  return { bucket: hostname, prefix: prefix === '' ? '' : `${prefix}/`, endpoint, region }
}

function readFolder(text: string): string {
  if (text.trim() === '' || text.includes('\0')) throw new Error('must not be empty')
  return text
}

/** An empty list would be an open server by mistake. */
function readKeys(text: string): string[] {
  const keys = text
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
  if (keys.length === 0) throw new Error('is set but holds no key; give one, or leave it out')
  if (keys.some((key) => /[^\x21-\x7e]/.test(key)))
    throw new Error('must hold keys of printable ASCII, as they travel in a header')
  return keys
}

function readDollars(text: string): number {
  const value = /^\d{1,9}(\.\d{1,9})?$/.test(text.trim()) ? Number(text) : Number.NaN
  if (!(value > 0)) throw new Error(`must be an amount of dollars such as 0.50, not "${text}"`)
  return value
}

function readOrigins(text: string): string[] {
  const origins = text
    .split(',')
    .map((one) => one.trim().toLowerCase())
    .filter((one) => one !== '')
  for (const one of origins)
    if (!URL.canParse(one) || new URL(one).origin !== one)
      throw new Error(`must hold origins such as https://app.example, not "${one}"`)
  return origins
}
