import type { CursorRelay } from '../client/cursor-relay.ts'

/** "Is typing…" for the conversations whose agent works, all on one timer. */
export interface TypingSigns {
  /** Shows it and keeps it up. */
  show(user: string, contextToken: string): void
  /** The hub ends it by itself with each text that is sent. */
  ended(user: string): void
  /** Ends it, if it shows. */
  hide(user: string): void
  close(): void
}

// The hub keeps a sign up for a minute after the last call.
const RENEW_MS = 30_000
const CALL_MS = 20_000

export function typingSigns(relay: Pick<CursorRelay, 'typing'>, renewMs = RENEW_MS): TypingSigns {
  const showing = new Map<string, string>()
  let timer: NodeJS.Timeout | undefined
  return {
    show(user, contextToken) {
      if (showing.get(user) === contextToken) return
      showing.set(user, contextToken)
      timer ??= setInterval(renew, renewMs).unref()
      tell(contextToken, true)
    },
    ended(user) {
      showing.delete(user)
    },
    hide(user) {
      const contextToken = showing.get(user)
      if (contextToken === undefined) return
      showing.delete(user)
      tell(contextToken, false)
    },
    close() {
      clearInterval(timer)
      showing.clear()
    },
  }

  function renew(): void {
    for (const contextToken of showing.values()) tell(contextToken, true)
    if (showing.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  /** Not worth a turn: a sign that cannot be shown is left out. */
  function tell(contextToken: string, on: boolean): void {
    relay.typing(contextToken, on, AbortSignal.timeout(CALL_MS)).catch(() => undefined)
  }
}
