import { randomUUID } from 'node:crypto'
import { type Doorbell, type Listener, listenBy, memoryDoorbell } from '../doorbell.ts'
import { type Redis, textsOf } from './connect-redis.ts'

export interface RedisDoorbellOptions {
  redis: Redis
  /** Channel and stream are named after it. */
  prefix: string
  sweepEveryMs?: number
}

/** A doorbell that is heard on every node. */
export interface RedisDoorbell extends Doorbell {
  close(): void
}

const SWEEP_EVERY_MS = 1_000
/** Sweeps of all nodes that can still be looked up; who has missed more rings for everything. */
const KEPT_SWEEPS = 1_000

/**
 * Rings go out at once over pub/sub, those of one moment together, and are heard here without the detour. Pub/sub forgets
 * what nobody hears, so each node also writes down once a second what it rang, in one stream for all, and reads there what
 * the others did: one look a second for a node, however many listen.
 */
export async function redisDoorbell(options: RedisDoorbellOptions): Promise<RedisDoorbell> {
  const { redis, prefix, sweepEveryMs = SWEEP_EVERY_MS } = options
  const channel = `${prefix}bell`
  const stream = `${prefix}rings`
  const node = randomUUID()
  const here = memoryDoorbell()
  const listened = new Map<string, Set<Listener>>()
  const toSend = new Set<string>()
  const toNote = new Set<string>()
  let isSending = false
  let isSweeping = false
  let mustRingAll = false
  let readUpTo = await newest()

  await redis.subscribe(channel, hear, () => {
    mustRingAll = true
  })
  const timer = setInterval(() => void sweep(), sweepEveryMs).unref()

  return {
    ring(key) {
      here.ring(key)
      toNote.add(key)
      toSend.add(key)
      if (isSending) return
      isSending = true
      setImmediate(() => void send())
    },
    listen: (key, onRing) => listenBy({ add, remove }, key, onRing),
    add,
    remove,
    close: () => clearInterval(timer),
  }

  function add(key: string, listener: Listener): void {
    const there = listened.get(key)
    if (there === undefined) listened.set(key, new Set([listener]))
    else there.add(listener)
    here.add(key, listener)
  }

  function remove(key: string, listener: Listener): void {
    const there = listened.get(key)
    if (there?.delete(listener) && there.size === 0) listened.delete(key)
    here.remove(key, listener)
  }

  function hear(text: string): void {
    const [from, ...keys] = readKeys(text)
    if (from !== node) for (const key of keys) here.ring(key)
  }

  /** One message at a time: what is rung meanwhile goes with the next. */
  async function send(): Promise<void> {
    while (toSend.size > 0) {
      const text = JSON.stringify([node, ...toSend])
      toSend.clear()
      // What could not be sent is noted, and found by the others' sweep.
      await redis.send('PUBLISH', channel, text).catch(() => undefined)
    }
    isSending = false
  }

  async function sweep(): Promise<void> {
    if (isSweeping || !redis.isUp) return
    isSweeping = true
    const noted = [...toNote]
    toNote.clear()
    try {
      if (noted.length > 0) {
        const text = JSON.stringify([node, ...noted])
        await redis.send('XADD', stream, 'MAXLEN', '~', `${KEPT_SWEEPS}`, '*', 'k', text)
      }
      await lookBack()
      if (mustRingAll) ringAll()
    } catch {
      // Redis went away: what was noted is noted again, and nobody knows what was missed.
      for (const key of noted) toNote.add(key)
      mustRingAll = true
    } finally {
      isSweeping = false
    }
  }

  async function lookBack(): Promise<void> {
    const entries = await redis.send('XRANGE', stream, `(${readUpTo}`, '+')
    if (!Array.isArray(entries) || entries.length === 0) return
    const oldest = idOf(await redis.send('XRANGE', stream, '-', '+', 'COUNT', '1'))
    if (isAfter(oldest, readUpTo)) mustRingAll = true
    for (const entry of entries) {
      if (!Array.isArray(entry)) continue
      readUpTo = String(entry[0])
      hear(textsOf(entry[1] ?? null)[1] ?? '[]')
    }
  }

  function ringAll(): void {
    mustRingAll = false
    for (const key of [...listened.keys()]) here.ring(key)
  }

  async function newest(): Promise<string> {
    return idOf(await redis.send('XREVRANGE', stream, '+', '-', 'COUNT', '1'))
  }
}

/** The id of the first entry of an answer. */
function idOf(entries: Awaited<ReturnType<Redis['send']>>): string {
  const first = Array.isArray(entries) ? entries[0] : null
  return Array.isArray(first) ? String(first[0]) : '0-0'
}

/** Whether the stream begins after the place that was read up to: then something in between has gone. */
function isAfter(id: string, place: string): boolean {
  if (place === '0-0') return false
  const [time = 0, count = 0] = id.split('-').map(Number)
  const [placeTime = 0, placeCount = 0] = place.split('-').map(Number)
  return time > placeTime || (time === placeTime && count > placeCount)
}

function readKeys(text: string): string[] {
  const keys: unknown = JSON.parse(text)
  return Array.isArray(keys) ? keys.map(String) : []
}
