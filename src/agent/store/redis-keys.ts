/** Where everything of one session is kept: one hash tag, so that a cluster keeps it together and a script may touch it. */
export interface SessionKeys {
  /**
   * Hash: `version` (grows with every change), `fixed` and `moving` (the session); `newest` and `oldest` event that can be
   * read, `hot` the first that is in Redis, `bytes` of those; `kept`: messages that are in objects.
   */
  state: string
  /** The generation of who works on it; goes away when it is not renewed. */
  lease: string
  /** The newest generation given. */
  generation: string
  /** Stream of events, `<seq>-0`: `a` about it (run, time, type), `d` its payload. */
  events: string
  /** List of messages as JSON. */
  transcript: string
  /** Hash of runs as JSON, by id. */
  runs: string
  /** List of the ids of all runs, in the order they were accepted. */
  order: string
  /** List of the ids of runs that wait. */
  queue: string
  /** List of the objects that hold older events: name, first and last number, as JSON. */
  segments: string
  /** List of the objects that hold older messages, likewise. */
  chunks: string
  /** What was made under an idempotency key; for a day. */
  receipt(key: string): string
}

/** Names of keys; all begin with `prefix`. */
export interface Keys {
  session(id: string): SessionKeys
  /** Sorted set of session ids by the time they were made (microseconds, never twice). */
  index: string
  /** Sorted set of sessions that may be unfinished, by the time of the last run. */
  active: string
  /** Sorted set of sessions that have something in Redis to be archived, by the time of the last run. */
  warm: string
  /** The newest time given in those above. */
  clock: string
  /** What was made by `POST /sessions` under an idempotency key; for a day. */
  receipt(key: string): string
  /** Set of deleted sessions whose objects are still to be removed. */
  garbage: string
  /** Whose turn it is to archive. */
  archiver: string
  /** What stream tickets are signed with. */
  secret: string
}

export function redisKeys(prefix: string): Keys {
  return {
    session(id) {
      // An id comes from a caller's URL; a brace in it would end the tag early.
      const tag = `${prefix}{${encodeURIComponent(id)}}:`
      return {
        state: `${tag}state`,
        lease: `${tag}lease`,
        generation: `${tag}generation`,
        events: `${tag}events`,
        transcript: `${tag}transcript`,
        runs: `${tag}runs`,
        order: `${tag}order`,
        queue: `${tag}queue`,
        segments: `${tag}segments`,
        chunks: `${tag}chunks`,
        receipt: (key) => `${tag}receipt:${key}`,
      }
    },
    index: `${prefix}{index}:sessions`,
    active: `${prefix}{index}:active`,
    warm: `${prefix}{index}:warm`,
    clock: `${prefix}{index}:clock`,
    garbage: `${prefix}{index}:garbage`,
    archiver: `${prefix}{index}:archiver`,
    receipt: (key) => `${prefix}receipt:{${key}}`,
    secret: `${prefix}secret`,
  }
}
