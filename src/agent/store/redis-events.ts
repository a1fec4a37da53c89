import { type Reply, textsOf } from '../../kit/redis/connect-redis.ts'
import type { StoredEvent } from '../model.ts'

/** An entry of the stream: its id, then names and values in the order they were written. */
export function toEvent(entry: Reply): StoredEvent {
  const [id, fields] = Array.isArray(entry) ? entry : []
  const [, about, , data] = textsOf(fields ?? null)
  return { seq: Number.parseInt(String(id), 10), ...JSON.parse(about ?? '{}'), data: data ?? '' }
}
