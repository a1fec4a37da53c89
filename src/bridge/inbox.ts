import type { CursorRelay, RelayMessage } from '../client/cursor-relay.ts'
import { HubClientError } from '../client/hub-client.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep, timeLimit } from '../kit/retry.ts'
import { withoutMention } from './chat-words.ts'
import { type BridgeRecord, type BridgeState, conversationName, type Taken } from './state.ts'
import { besideText } from './texts.ts'

export interface InboxOptions {
  relay: CursorRelay
  state: BridgeState
  append: (record: BridgeRecord) => Promise<void>
  /** The name users mention. */
  name: string
  attend: (user: string) => void
  /** Messages that are not answered yet: with too many of them the hub keeps the rest. */
  pending: () => number
  log: Log
}

const MOST_PENDING = 10_000
const CHECK_ROOM_MS = 1_000
const POLL_MS = 90_000
const DISPLACED_MS = 5_000

/**
 * Takes messages from the hub until `signal` aborts. They are in the journal, with the cursor behind them, before the
 * next poll acknowledges them: killed in between, the bridge gets them again, and never twice.
 */
export async function takeMessages(options: InboxOptions, signal: AbortSignal): Promise<void> {
  const { relay, state, append, attend, log } = options
  const pause = backoff({ firstMs: 250, mostMs: 10_000 })
  while (!signal.aborted) {
    if (options.pending() >= MOST_PENDING) {
      await sleep(CHECK_ROOM_MS, signal)
      continue
    }
    try {
      const { messages, cursor } = await relay.poll(state.cursor, timeLimit(POLL_MS, signal))
      if (pause.failures > 0) log.info('the hub answers again')
      pause.reset()
      const batch = takenOf(messages)
      if (batch.length > 0 || cursor !== state.cursor) await append({ t: 'took', cursor, messages: batch })
      for (const user of new Set(batch.map((message) => message.user))) attend(user)
    } catch (error) {
      if (signal.aborted) return
      await sleep(pauseAfter(error), signal)
    }
  }

  function takenOf(messages: RelayMessage[]): Taken[] {
    const claimed = new Map<string, string>()
    return messages.map(({ id, user, account, contextToken, text, ...rest }, index) => ({
      n: state.n + 1 + index,
      id,
      user: conversationName(state, { user, account }, claimed),
      ...(account === null ? {} : { account }),
      contextToken,
      text: withoutMention(text, options.name),
      beside: besideText({ text, ...rest }),
    }))
  }

  function pauseAfter(error: unknown): number {
    const status = error instanceof HubClientError ? error.status : null
    if (status === 409) {
      log.warn('another program polls with the token of this bridge; run one bridge per token')
      return DISPLACED_MS
    }
    if (pause.failures === 0) log.warn('the hub cannot be polled; it is tried again', { status })
    if (status === 401 && pause.failures === 0) log.error('the hub refuses the token of this bridge; was it rotated?')
    const askedMs = error instanceof HubClientError ? (error.retryAfterMs ?? 0) : 0
    return Math.max(askedMs, pause.next())
  }
}
