import { createHash } from 'node:crypto'
import { sharedDeadlines } from '../deadlines.ts'
import { AppError, errorText } from '../errors.ts'
import type { Log } from '../log.ts'

/** What Redis answers, as plain data. */
export type Reply = string | number | null | Reply[]

/** A Lua script: Redis runs it as one step, nothing in between. */
export interface Script {
  readonly text: string
  readonly sha: string
}

/**
 * A connection to Redis (or Valkey) that comes back by itself. While it is down every call fails at once with
 * `store_failed`; whether a call that was under way has been done is not known then.
 */
export interface Redis {
  send(...command: string[]): Promise<Reply>
  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply>
  /** Hears a channel on a connection of its own. `onAgain` is called when that one was lost and is back. */
  subscribe(channel: string, onMessage: (text: string) => void, onAgain: () => void): Promise<void>
  readonly isUp: boolean
  close(): Promise<void>
}

export interface RedisOptions {
  /** `redis://` or `rediss://`, may hold a user name and password: never shown. */
  url: string
  log: Log
  /** How long an answer may take before the connection is given up and made anew. */
  answerWithinMs?: number
  /** How long the first connection may take. */
  startWithinMs?: number
}

const ANSWER_WITHIN_MS = 5_000
const START_WITHIN_MS = 10_000
const PING_EVERY_MS = 5_000
const RECONNECT_MS = { first: 50, most: 1_000 }
/** What Redis says while it cannot serve; everything else it refuses is a mistake of ours. */
const CANNOT_NOW =
  /^(OOM|READONLY|LOADING|MASTERDOWN|MISCONF|BUSY|UNKILLABLE|TRYAGAIN|CLUSTERDOWN|NOREPLICAS|NOPROTO)\b/

/** Connects, and makes sure that nothing is ever evicted. Fails with `redis_unreachable`, `redis_refused` or `redis_evicts`. */
export async function connectRedis(options: RedisOptions): Promise<Redis> {
  const { url, log, answerWithinMs = ANSWER_WITHIN_MS, startWithinMs = START_WITHIN_MS } = options
  const { createClient, ErrorReply } = await import('redis')
  const late = sharedDeadlines(answerWithinMs)
  const startedAt = performance.now()
  const subscribers = new Set<{ destroy(): void }>()
  let wasUp = false
  let isClosed = false
  let isTroubled = false

  const made = () => {
    const client = createClient({
      url,
      disableOfflineQueue: true,
      pingInterval: PING_EVERY_MS,
      socket: {
        connectTimeout: answerWithinMs,
        reconnectStrategy(tries, cause) {
          const mayWait = !(cause instanceof ErrorReply) && performance.now() - startedAt < startWithinMs
          return wasUp || mayWait ? pauseMs(tries) : cause
        },
      },
    })
    client.on('error', (error: unknown) => {
      if (isTroubled || isClosed || !wasUp) return
      isTroubled = true
      log.warn('Redis cannot be reached; trying again', { error: errorText(error) })
    })
    client.on('ready', () => {
      if (isTroubled) log.info('Redis is reached again')
      isTroubled = false
    })
    return client
  }
  let client = made()
  try {
    await client.connect()
    wasUp = true
    await checkPolicy(async () => String(await client.sendCommand(['INFO', 'memory'])))
  } catch (error) {
    if (client.isOpen) client.destroy()
    throw startError(error, url)
  }

  /** A line that is dead without a word is noticed only by its silence. */
  const replace = (silent: typeof client) => {
    if (isClosed || client !== silent) return
    client = made()
    client.connect().catch(() => undefined)
    silent.destroy()
  }

  const send = async (...command: string[]): Promise<Reply> => {
    const used = client
    let isLate = false
    const patience = {
      onDue() {
        isLate = true
        replace(used)
      },
    }
    late.add(patience)
    try {
      return toReply(await used.sendCommand(command))
    } catch (error) {
      if (error instanceof ErrorReply && !CANNOT_NOW.test(error.message)) throw error
      throw cannotNow(error, isLate)
    } finally {
      late.remove(patience)
    }
  }

  return {
    send,
    async run({ text, sha }, keys, args) {
      const rest = [String(keys.length), ...keys, ...args.map(String)]
      try {
        return await send('EVALSHA', sha, ...rest)
      } catch (error) {
        if (!(error instanceof ErrorReply && error.message.startsWith('NOSCRIPT'))) throw error
        return send('EVAL', text, ...rest)
      }
    },
    async subscribe(channel, onMessage, onAgain) {
      const own = made()
      subscribers.add(own)
      await own.connect()
      await own.subscribe(channel, onMessage)
      own.on('ready', onAgain)
    },
    get isUp() {
      return client.isReady
    },
    async close() {
      isClosed = true
      for (const one of [client, ...subscribers]) if (!('isOpen' in one) || one.isOpen) one.destroy()
      subscribers.clear()
    },
  }
}

/** A script with the name Redis knows it by. */
export function luaScript(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** The texts of a list; what is not there is null. */
export function textsOf(reply: Reply): (string | null)[] {
  if (!Array.isArray(reply)) return []
  return reply.map((one) => (one === null || Array.isArray(one) ? null : String(one)))
}

/** A text, or null. */
export function textOf(reply: Reply): string | null {
  return reply === null || Array.isArray(reply) ? null : String(reply)
}

function toReply(value: unknown): Reply {
  if (typeof value === 'string' || typeof value === 'number') return value
  if (Array.isArray(value)) return value.map(toReply)
  if (value instanceof Error) throw value
  return value === null || value === undefined || value === false ? null : String(value)
}

function pauseMs(tries: number): number {
  const stepMs = Math.min(RECONNECT_MS.most, RECONNECT_MS.first * 2 ** Math.min(tries, 10))
  return Math.round(stepMs / 2 + (stepMs / 2) * Math.random())
}

/** A cache that forgets by itself would lose leases and events. */
async function checkPolicy(memory: () => Promise<string>): Promise<void> {
  const policy = /^maxmemory_policy:(.*?)\s*$/m.exec(await memory())?.[1]
  if (policy === undefined || policy === 'noeviction') return
  throw new AppError(
    'redis_evicts',
    `This Redis throws keys away when it is full (maxmemory-policy ${policy}), and sessions with them; set maxmemory-policy to noeviction.`,
  )
}

function cannotNow(error: unknown, isLate: boolean): AppError {
  const why = isLate ? 'it does not answer' : error instanceof Error && CANNOT_NOW.exec(error.message)?.[1]
  return new AppError('store_failed', `Redis cannot be used now${why ? ` (${why})` : ''}; try again shortly.`, {
    cause: error,
    retryAfterMs: 1_000,
  })
}

function startError(error: unknown, url: string): AppError {
  if (error instanceof AppError) return error
  const at = URL.canParse(url) ? new URL(url).host : 'the given address'
  const isRefusal = error instanceof Error && /^(NOAUTH|WRONGPASS|NOPERM|ERR)\b/.test(error.message)
  if (isRefusal)
    return new AppError('redis_refused', `Redis at ${at} refuses us (${errorText(error)}); check --redis-url.`, {
      cause: error,
    })
  return new AppError(
    'redis_unreachable',
    `Redis at ${at} cannot be reached (${errorText(error)}); start it, or check --redis-url.`,
    { cause: error },
  )
}
