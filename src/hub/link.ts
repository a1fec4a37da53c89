import type { Log } from '../kit/log.ts'

/** How the hub stands with the messaging service. */
export type LinkState = 'connecting' | 'connected' | 'throttled' | 'reconnecting' | 'needs_login' | 'misconfigured'

export interface LinkView {
  state: LinkState
  /** Why, in a few words. */
  reason: string
  /** Since when it is in this state. */
  since: number
  nextRetryAt: number | null
  /** What a person has to do; null when it mends itself. */
  action: string | null
  /** When a poll was last answered, with messages or without. */
  lastPollAt: number | null
}

/** The state of the link, from what happens to the polls and sends. Knows nothing of the protocol. */
export interface Link {
  view(): LinkView
  /** What `/health` calls connected. */
  isUp(): boolean
  connected(reason: string): void
  pollCompleted(): void
  failed(state: 'reconnecting' | 'needs_login' | 'misconfigured', reason: string, nextRetryAt: number | null): void
  /** Sends are held back until then; the polls go on. */
  throttled(untilMs: number): void
  onChange(listener: (view: LinkView) => void): void
}

export interface LinkOptions {
  /** The bot account it is the link of. */
  account: string
  now: () => number
  log: Log
  /** With no completed poll for this long the link counts as broken, whatever it says. */
  silentAfterMs: number
}

/** What a person has to do. */
function actionFor(state: LinkState, account: string): string | null {
  if (state === 'needs_login')
    return `The bot login is missing or has expired. Log in again: "switchboard login ${account}", or in the panel at /hub/ui.`
  if (state === 'misconfigured') return 'Check --upstream-url: what answers there does not speak the bot protocol.'
  return null
}

/** Starts as `connecting`. */
export function openLink({ account, now, log, silentAfterMs }: LinkOptions): Link {
  const listeners: ((view: LinkView) => void)[] = []
  let state: LinkState = 'connecting'
  let reason = 'starting'
  let since = now()
  let nextRetryAt: number | null = null
  let lastPollAt: number | null = null
  let throttledUntil = 0
  let throttledSince = since

  const link: Link = {
    view() {
      const shown = current()
      const silent = shown === 'reconnecting' && state === 'connected'
      return {
        state: shown,
        reason: silent
          ? 'no poll was answered for too long'
          : shown === 'throttled'
            ? 'sends are held back by the service'
            : reason,
        since: silent ? lastAnswerAt() + silentAfterMs : shown === 'throttled' ? throttledSince : since,
        nextRetryAt: shown === 'throttled' ? throttledUntil : nextRetryAt,
        action: actionFor(shown, account),
        lastPollAt,
      }
    },
    isUp: () => ['connected', 'throttled'].includes(current()),
    connected: (why) => change('connected', why, null),
    pollCompleted() {
      lastPollAt = now()
      change('connected', 'polling', null)
    },
    failed: change,
    throttled(untilMs) {
      if (throttledUntil <= now()) throttledSince = now()
      throttledUntil = Math.max(throttledUntil, untilMs)
      log.warn('upstream throttles sends', { account, forMs: throttledUntil - now() })
    },
    onChange: (listener) => void listeners.push(listener),
  }
  return link

  function current(): LinkState {
    if (state !== 'connected') return state
    if (now() - lastAnswerAt() > silentAfterMs) return 'reconnecting'
    return throttledUntil > now() ? 'throttled' : 'connected'
  }

  function lastAnswerAt(): number {
    return Math.max(lastPollAt ?? since, since)
  }

  function change(to: LinkState, why: string, retryAt: number | null): void {
    nextRetryAt = retryAt
    if (to === state) {
      if (to !== 'connected') reason = why
      return
    }
    const level = actionFor(to, account) === null ? 'info' : 'warn'
    log[level]('upstream link changed', { account, from: state, to, reason: why })
    state = to
    reason = why
    since = now()
    for (const listener of listeners) listener(link.view())
  }
}

/** One sentence for a user. */
export function linkText(link: Link): string {
  return link.isUp() ? 'The line to the messenger is fine.' : 'The line to the messenger is being restored.'
}
