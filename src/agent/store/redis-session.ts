import type { Claim } from '../../kit/lease.ts'
import { type Redis, textOf, textsOf } from '../../kit/redis/connect-redis.ts'
import type { Message, Run, Session, StoredEvent } from '../model.ts'
import type { StoreLimits } from './port.ts'
import { fenced, type KeptReceipt, noSession } from './records.ts'
import type { Keys } from './redis-keys.ts'
import { COMMIT } from './redis-scripts.ts'
import { fromSession, toSession } from './rows.ts'

/** What the parts of the store on Redis share. */
export interface RedisParts {
  redis: Redis
  keys: Keys
  limits: StoreLimits
  leaseMs: number
}

/** A session as it was read; a change made from it counts only if it still is so. */
export interface Loaded {
  version: string
  session: Session
  newest: number
}

/** What a step does. */
export interface Change {
  claim: Claim | 'grant' | 'none'
  /** Gives the claim back. */
  ends?: boolean
  events?: StoredEvent[]
  messages?: Message[]
  runs?: Run[]
  newRun?: string
  queue?: 'push' | 'first' | 'pop'
  receipt?: { key: string; kept: KeptReceipt }
}

export const RECEIPT_LIFE_MS = 24 * 60 * 60_000

export async function load({ redis, keys }: Pick<RedisParts, 'redis' | 'keys'>, id: string): Promise<Loaded | null> {
  const { state } = keys.session(id)
  const found = textsOf(await redis.send('HMGET', state, 'version', 'fixed', 'moving', 'newest'))
  const [version, fixed, moving, newest] = found
  if (!version || !fixed || !moving) return null
  return { version, session: toSession({ fixed, state: moving }), newest: Number(newest) }
}

export async function need(parts: RedisParts, id: string): Promise<Loaded> {
  const loaded = await load(parts, id)
  if (loaded === null) throw noSession(id)
  return loaded
}

export async function loadRun({ redis, keys }: RedisParts, sessionId: string, runId: string): Promise<Run | null> {
  const text = textOf(await redis.send('HGET', keys.session(sessionId).runs, runId))
  if (text === null) return null
  const run: Run = JSON.parse(text)
  return run
}

/**
 * Makes one step of a session: all of it, or nothing and `changed`. Fails with `fenced` and `not_found`. `claim` is the one
 * that was granted.
 */
export async function commit(
  { redis, keys, limits, leaseMs }: RedisParts,
  { version, session }: Loaded,
  change: Change,
): Promise<'changed' | { claim: Claim | null }> {
  const { events = [], messages = [], runs = [], receipt } = change
  const at = keys.session(session.id)
  const [claim, generation] = typeof change.claim === 'string' ? [change.claim, 0] : ['hold', change.claim.generation]
  const reply = await redis.run(
    COMMIT,
    [
      ...[at.state, at.lease, at.generation, at.events, at.transcript, at.runs, at.order, at.queue],
      // A name is needed where there is nothing to keep.
      at.receipt(receipt?.key ?? ''),
      at.segments,
    ],
    [
      ...[version, claim, generation, leaseMs],
      ...[change.ends ? 1 : 0, fromSession(session).state, mostOf(limits.maxLogEvents), mostOf(limits.maxLogBytes)],
      ...[change.newRun ?? '', change.queue ?? '', receipt ? JSON.stringify(receipt.kept) : '', RECEIPT_LIFE_MS],
      ...[events.length, ...events.flatMap(({ seq: _, data, ...about }) => [JSON.stringify(about), data])],
      ...[messages.length, ...messages.map((message) => JSON.stringify(message))],
      ...[runs.length, ...runs.flatMap((run) => [run.id, JSON.stringify(run)])],
    ],
  )
  const [outcome, granted] = textsOf(reply)
  if (outcome === 'gone') throw noSession(session.id)
  if (outcome === 'fenced') throw fenced()
  if (outcome === 'changed') return 'changed'
  return { claim: change.claim === 'grant' ? { key: session.id, generation: Number(granted) } : null }
}

/** No limit, as Lua reads it. */
function mostOf(limit: number): string {
  return Number.isFinite(limit) ? String(limit) : '1e300'
}
