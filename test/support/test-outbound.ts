import { onTestFinished } from 'vitest'
import { type Composed, composeText } from '../../src/hub/compose.ts'
import { openLane } from '../../src/hub/lane.ts'
import { openOutbound, type SendOrder } from '../../src/hub/outbound.ts'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import type { HubStore } from '../../src/hub/store/port.ts'
import type { OutgoingMessage, SendReceipt } from '../../src/hub/upstream/port.ts'
import { silentLog } from '../../src/kit/log.ts'
import { parseLossless } from '../../src/kit/lossless-json.ts'

export const ACCOUNT = 'main'
export const USER = 'ann@im.wechat'

/** How the service answers the n-th call (from 1). */
export type Answers = (n: number, message: OutgoingMessage, signal: AbortSignal) => SendReceipt | Promise<SendReceipt>

export interface TestOutboundOptions {
  store?: HubStore
  answers?: Answers
  patienceMs?: number
  pacingMs?: number
}

/** The outbound side on a store, towards a service that answers as it is told. */
export async function startTestOutbound(options: TestOutboundOptions = {}) {
  const store = options.store ?? (await openMemoryStore())
  if (options.store === undefined) onTestFinished(() => store.close())
  let at = Date.now()
  const now = () => at
  const calls: OutgoingMessage[] = []
  const outcomes: string[] = []
  const silences: number[] = []
  const lane = openLane({ pacingMs: options.pacingMs ?? 0, maxInFlight: 32, now })
  onTestFinished(() => void lane.stop())
  const told = {
    answers:
      options.answers ?? ((n: number): SendReceipt => ({ upstreamId: String(7_000_000_000_000_000_000n + BigInt(n)) })),
  }
  const outbound = openOutbound({
    store,
    upstream: {
      async send(message, signal) {
        calls.push(message)
        return told.answers(calls.length, message, signal)
      },
    },
    lane,
    now,
    log: silentLog,
    onThrottled: (until) => silences.push(until - now()),
    budget: { note: () => {}, waitMs: () => 0 },
    onAccepted: ({ state }) => outcomes.push(state),
    onFailed: (kind) => outcomes.push(kind),
    ...(options.patienceMs === undefined ? {} : { patienceMs: options.patienceMs }),
  })

  return {
    store,
    lane,
    outbound,
    calls,
    outcomes,
    silences,
    now,
    /** Moves the clock, which stands still otherwise. */
    advance(ms: number) {
      at += ms
    },
    /** From here on the service answers so. */
    answer(answers: Answers) {
      told.answers = answers
    },
    send: (text: string, more: Partial<Omit<SendOrder, 'message'>> & Partial<Pick<Composed, 'key'>> = {}) => {
      const { key = null, ...who } = more
      const message = { ...composeText(text, 'context'), key }
      return outbound.send({ clientId: 1, account: ACCOUNT, userId: USER, ...who, message })
    },
    /** The texts that reached the service, in order. */
    texts: () => calls.map(textOf),
  }
}

/** The user says something, so that there is a conversation with an upstream token. */
export async function hear(
  store: HubStore,
  id: string,
  { userId = USER, token = 'upstream-token', now = Date.now() } = {},
) {
  await store.messages.ingest({
    account: ACCOUNT,
    cursor: null,
    now,
    bounds: { maxMessages: 100, maxBytes: 1_000_000, overflowNotice: { kind: 'overflow', onceMs: 0, text: 'full' } },
    entries: [
      {
        upstreamId: id,
        fingerprint: null,
        userId,
        upstreamToken: token,
        spec: '{}',
        raw: '{}',
        state: 'command',
        reason: 'command:help',
        deliveries: [],
        notices: [],
      },
    ],
  })
}

function textOf({ body }: OutgoingMessage): string {
  const message = parseLossless(body)
  const found = /"text":("(?:[^"\\]|\\.)*")/.exec(JSON.stringify(message))
  return found?.[1] === undefined ? '' : String(JSON.parse(found[1]))
}
