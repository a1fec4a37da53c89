/** Where everything of one session is kept: one hash tag, so that a cluster keeps it together and a script may touch it. */
export interface SessionKeys {
  /** Hash: `version` (grows with every change), `fixed` and `moving` (the session), `newest`, `oldest`, `bytes` of the log. */
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
  /** The newest time given in the two above. */
  clock: string
  /** What was made by `POST /sessions` under an idempotency key; for a day. */
  receipt(key: string): string
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
        receipt: (key) => `${tag}receipt:${key}`,
      }
    },
    index: `${prefix}{index}:sessions`,
    active: `${prefix}{index}:active`,
    clock: `${prefix}{index}:clock`,
    receipt: (key) => `${prefix}receipt:{${key}}`,
    secret: `${prefix}secret`,
  }
}
