import type { Log } from '../kit/log.ts'
import { type Upstream, UpstreamError } from './upstream/port.ts'

/** "Is typing…" in a user's chat, kept alive while wanted and always ended. */
export interface Typing {
  /** Shows it; lasts until `stop`, or a minute after the last call. Fails when the service does. */
  start(who: TypingTarget): Promise<void>
  /** Ends it if it shows. Never fails: it is not worth a turn. */
  stop(who: Pick<TypingTarget, 'account' | 'userId'>): void
  /** Ends what a client shows. */
  stopClient(clientId: number): void
  /** Ends all that shows; resolves when the service was told. */
  close(): Promise<void>
}

export interface TypingTarget {
  clientId: number
  account: string
  userId: string
  contextToken: string | null
}

export interface TypingOptions {
  upstream: Pick<Upstream, 'typing' | 'typingTicket'>
  now: () => number
  log: Log
  lastsMs?: number
  renewMs?: number
}

interface Shown {
  who: TypingTarget
  until: number
}

const LASTS_MS = 60_000
const RENEW_MS = 5_000 // as often as the service's own client does
const TICKET_LASTS_MS = 9 * 60_000 // the service's own tickets live ten minutes
const CALL_MS = 10_000

export function openTyping({ upstream, now, log, lastsMs = LASTS_MS, renewMs = RENEW_MS }: TypingOptions): Typing {
  const tickets = new Map<string, { ticket: string; at: number }>()
  const showing = new Map<string, Shown>()
  const calls = new Map<string, Promise<unknown>>()
  let timer: NodeJS.Timeout | undefined

  return {
    async start(who) {
      const key = keyOf(who)
      const before = showing.get(key)
      const mine = { who, until: now() + lastsMs }
      // Noted first: a reply that comes while the call is under way must find it and end it.
      showing.set(key, mine)
      timer ??= setInterval(renew, renewMs).unref()
      try {
        await tell(who, true)
      } catch (error) {
        if (showing.get(key) === mine) undo(key, before, error)
        throw error
      }
    },
    stop(who) {
      const shown = showing.get(keyOf(who))
      if (shown) end(shown.who)
    },
    stopClient(clientId) {
      for (const { who } of [...showing.values()]) if (who.clientId === clientId) end(who)
    },
    async close() {
      clearInterval(timer)
      for (const { who } of [...showing.values()]) end(who)
      await Promise.all(calls.values())
    },
  }

  function renew(): void {
    for (const { who, until } of [...showing.values()]) {
      if (until <= now()) end(who)
      // Behind a call that hangs, renewals would only hold up the end.
      else if (!calls.has(keyOf(who))) void tell(who, true).catch(() => undefined)
    }
    for (const [key, { at }] of tickets) if (now() - at > TICKET_LASTS_MS) tickets.delete(key)
    if (showing.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  /** A start failed. What shows, or may show all the same, is still to be ended. */
  function undo(key: string, before: Shown | undefined, error: unknown): void {
    const shown = showing.get(key)
    if (before) showing.set(key, before)
    else if (shown && error instanceof UpstreamError && error.ambiguous) end(shown.who)
    else showing.delete(key)
  }

  function end(who: TypingTarget): void {
    showing.delete(keyOf(who))
    void tell(who, false).catch(() => log.debug('typing could not be ended', { account: who.account }))
  }

  /** Calls for one user go out one after the other, so that an end cannot overtake a start. */
  function tell(who: TypingTarget, on: boolean): Promise<void> {
    const key = keyOf(who)
    const told = (calls.get(key) ?? Promise.resolve()).then(() => call(who, on))
    const settled = told.catch(() => undefined).finally(() => calls.get(key) === settled && calls.delete(key))
    calls.set(key, settled)
    return told
  }

  async function call(who: TypingTarget, on: boolean): Promise<void> {
    const ticket = await ticketFor(who)
    try {
      await upstream.typing({ userId: who.userId, ticket, on }, AbortSignal.timeout(CALL_MS))
    } catch (error) {
      tickets.delete(keyOf(who))
      throw error
    }
  }

  async function ticketFor(who: TypingTarget): Promise<string> {
    const known = tickets.get(keyOf(who))
    if (known && now() - known.at < TICKET_LASTS_MS) return known.ticket
    const ticket = await upstream.typingTicket(who, AbortSignal.timeout(CALL_MS))
    tickets.set(keyOf(who), { ticket, at: now() })
    return ticket
  }
}

function keyOf({ account, userId }: Pick<TypingTarget, 'account' | 'userId'>): string {
  return `${account}\0${userId.toLowerCase()}`
}
