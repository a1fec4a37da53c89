import type { LinkView } from '../link.ts'

/** An empty body is an empty object: on most calls every field is optional. */
export function bodyOf(request: { body: unknown }): unknown {
  return request.body === undefined ? {} : request.body
}

/** A time as the answers show it. */
export function iso(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** The state of a link with what a person needs to know. */
export function linkDetail({ state, reason, since, nextRetryAt, action, lastPollAt }: LinkView) {
  return {
    state,
    reason,
    since: iso(since),
    next_retry_at: nextRetryAt === null ? null : iso(nextRetryAt),
    action,
    last_poll_at: lastPollAt === null ? null : iso(lastPollAt),
  }
}
