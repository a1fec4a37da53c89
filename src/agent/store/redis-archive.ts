import { AppError } from '../../kit/errors.ts'
import { textOf, textsOf } from '../../kit/redis/connect-redis.ts'
import { type Bucket, removeAll } from '../../kit/s3/bucket.ts'
import type { Message, StoredEvent } from '../model.ts'
import { toEvent } from './redis-events.ts'
import { ARCHIVE } from './redis-scripts.ts'
import { load, type RedisParts } from './redis-session.ts'

/** Old events and messages as objects that never change. Each is written before Redis forgets what it holds. */
export interface Archive {
  /** Moves what a session has in Redis so far into objects. It may be at work meanwhile. */
  move(sessionId: string): Promise<void>
  /** Events after a number, from the object that holds the next one; none when no object does. */
  events(sessionId: string, afterSeq: number, limit: number): Promise<StoredEvent[]>
  /** The messages that objects hold, given as the session's list of them. */
  messages(objects: readonly string[]): Promise<Message[]>
  /** Removes everything of a session that is gone. */
  forget(sessionId: string): Promise<void>
}

/** An object, as the session's list of them tells it: its first and last number. */
interface Piece {
  name: string
  from: number
  to: number
}

const DIGITS = 12
/** Readers take an object in many small batches. */
const REMEMBERED = 8

export function redisArchive(parts: Pick<RedisParts, 'redis' | 'keys'>, bucket: Bucket): Archive {
  const { redis, keys } = parts
  const eventsOf = lineReader<StoredEvent>(bucket)
  const messagesOf = lineReader<Message>(bucket)

  return {
    async move(sessionId) {
      const at = keys.session(sessionId)
      const [generation, kept, found, texts] = await Promise.all([
        redis.send('GET', at.generation),
        redis.send('HGET', at.state, 'kept'),
        redis.send('XRANGE', at.events, '-', '+'),
        redis.send('LRANGE', at.transcript, '0', '-1'),
      ])
      const events = Array.isArray(found) ? found.map(toEvent) : []
      const all = textsOf(texts).flatMap((text) => text ?? [])
      // Read after the lists: a run that begins from here on is not in them.
      const messages = all.slice(0, await startOfActive(sessionId, all))
      const before = Number(kept ?? 0)
      const put = (kind: string, from: number, lines: string[]) =>
        putPiece(`${folderOf(sessionId)}${kind}/`, from, lines, textOf(generation) ?? '0')
      const lines = events.map((event) => JSON.stringify(event))
      const segment = await put('events', events[0]?.seq ?? 0, lines)
      const chunk = await put('transcript', before + 1, messages)
      if (segment === null && chunk === null) return
      const bytes = events.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0)
      const done = await redis.run(
        ARCHIVE,
        [at.state, at.events, at.transcript, at.segments, at.chunks],
        [
          ...[segment ? JSON.stringify(segment) : '', segment?.from ?? 0, segment?.to ?? 0, bytes],
          ...[chunk ? JSON.stringify(chunk) : '', before, messages.length],
        ],
      )
      // Deleted meanwhile: whoever did it could not see what was written just now.
      if (done === 'gone') await removeAll(bucket, folderOf(sessionId))
    },
    async events(sessionId, afterSeq, limit) {
      const list = textsOf(await redis.send('LRANGE', keys.session(sessionId).segments, '0', '-1'))
      const piece = list.map(toPiece).find(({ from, to }) => from <= afterSeq + 1 && to > afterSeq)
      if (piece === undefined) return []
      const events = await eventsOf(piece.name)
      const start = afterSeq + 1 - piece.from
      return events.slice(start, start + limit)
    },
    async messages(objects) {
      const all = await Promise.all(objects.map((text) => messagesOf(toPiece(text).name)))
      return all.flat()
    },
    forget: (sessionId) => removeAll(bucket, folderOf(sessionId)),
  }

  /** What an active run has added stays at hand: whoever has to end it may not reach the objects. */
  async function startOfActive(sessionId: string, messages: string[]): Promise<number> {
    const runId = (await load(parts, sessionId))?.session.activeRunId ?? null
    const start = runId === null ? -1 : messages.findIndex((text) => runOf(text) === runId)
    return start === -1 ? messages.length : start
  }

  /** The name holds the generation: what one who was taken over writes late is never taken for the successor's. */
  async function putPiece(folder: string, from: number, lines: string[], generation: string): Promise<Piece | null> {
    if (lines.length === 0) return null
    const to = from + lines.length - 1
    const name = `${folder}${padded(from)}-${padded(to)}.${generation}.ndjson`
    const isOurs = await bucket.create(name, Buffer.from(`${lines.join('\n')}\n`))
    return isOurs ? { name, from, to } : null
  }
}

/** Reads objects of JSON lines; the last few stay parsed. */
function lineReader<T>(bucket: Bucket): (name: string) => Promise<T[]> {
  const remembered = new Map<string, Promise<T[]>>()
  return (name) => {
    const known = remembered.get(name)
    if (known !== undefined) return known
    const fresh = readLines(name)
    fresh.catch(() => remembered.delete(name))
    remembered.set(name, fresh)
    const [oldest] = remembered.keys()
    if (remembered.size > REMEMBERED && oldest !== undefined) remembered.delete(oldest)
    return fresh
  }

  async function readLines(name: string): Promise<T[]> {
    const body = await bucket.get(name)
    if (body === null) throw new AppError('store_failed', `The object ${name} is missing in the object store.`)
    return String(body)
      .split('\n')
      .filter((line) => line !== '')
      .map((line): T => JSON.parse(line))
  }
}

function runOf(text: string): string {
  const { runId }: Message = JSON.parse(text)
  return runId
}

function folderOf(sessionId: string): string {
  return `agent/${encodeURIComponent(sessionId)}/`
}

function padded(seq: number): string {
  return String(seq).padStart(DIGITS, '0')
}

function toPiece(text: string | null): Piece {
  return JSON.parse(text ?? '{}')
}
