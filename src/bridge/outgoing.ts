import type { CursorRelay } from '../client/cursor-relay.ts'
import { HubClientError } from '../client/hub-client.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep, timeLimit } from '../kit/retry.ts'
import { TEXTS } from './texts.ts'

/** One message to a user. */
export interface OutgoingText {
  user: string
  contextToken: string
  text: string
  /** The same id and text is sent once, however often it is tried. */
  clientId: string
}

/** Sends texts, as often as it takes. */
export interface Outgoing {
  /** Resolves when the messaging service has the text, or surely never will; rejects only when `signal` aborts. */
  send(message: OutgoingText, signal: AbortSignal): Promise<void>
}

export interface OutgoingOptions {
  relay: CursorRelay
  /** The newest context of a user: an old one may be good no more. */
  contextOf: (user: string) => string | undefined
  log: Log
  firstRetryMs?: number
}

const FIRST_RETRY_MS = 500
const MOST_RETRY_MS = 15_000
const CALL_MS = 60_000
/** The service may be broken for minutes; each copy may be one too many, so there are few and they take their time. */
const MOST_COPIES = 8
const MOST_COPY_PAUSE_MS = 60_000

/** What to do about a send that failed. */
type Verdict = 'retry' | 'copy' | 'other-context' | 'give-up'

export function openOutgoing({ relay, contextOf, log, firstRetryMs = FIRST_RETRY_MS }: OutgoingOptions): Outgoing {
  return {
    async send(message, signal) {
      const pause = backoff({ firstMs: firstRetryMs, mostMs: MOST_RETRY_MS })
      const copyPause = backoff({ firstMs: 2 * firstRetryMs, mostMs: MOST_COPY_PAUSE_MS })
      let sent = message
      for (let copies = 0; ; ) {
        signal.throwIfAborted()
        try {
          await relay.send(sent, timeLimit(CALL_MS, signal))
          return
        } catch (error) {
          signal.throwIfAborted()
          const verdict = judge(error, sent.contextToken, contextOf(message.user))
          if (verdict === 'give-up' || (verdict === 'copy' && copies === MOST_COPIES)) return giveUp(error)
          if (verdict === 'other-context') sent = { ...sent, contextToken: contextOf(message.user) ?? '' }
          if (verdict === 'copy') {
            copies += 1
            sent = { ...sent, ...copyOf(message, copies) }
            await sleep(copyPause.next(), signal)
          }
          const askedMs = error instanceof HubClientError ? (error.retryAfterMs ?? 0) : 0
          if (verdict === 'retry') await sleep(Math.max(askedMs, pause.next()), signal)
        }
      }
    },
  }

  function giveUp(error: unknown): void {
    const status = error instanceof HubClientError ? error.status : null
    log.error('an answer could not be sent and is given up; it is in the session of the agent', { status, error })
  }
}

/** The service may have the first one or not; the user is told of both. */
function copyOf({ text, clientId }: OutgoingText, copies: number): Pick<OutgoingText, 'text' | 'clientId'> {
  return { text: `${TEXTS.perhapsTwice}\n${text}`, clientId: `${clientId}-copy${copies}` }
}

function judge(error: unknown, contextToken: string, newest: string | undefined): Verdict {
  // A call of ours that took too long has no answer either; its id makes a repetition harmless.
  if (!(error instanceof HubClientError)) return 'retry'
  const { status, details } = error
  if (details?.send_state === 'unknown') return 'copy'
  if (status === null || status === 401 || status === 429 || status >= 500) return 'retry'
  if (status === 404 && newest !== undefined && newest !== contextToken) return 'other-context'
  return 'give-up'
}
