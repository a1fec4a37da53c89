import { sharedDeadlines } from '../kit/deadlines.ts'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import { type Backoff, backoff } from '../kit/retry.ts'
import type { Composed } from './compose.ts'
import type { Lane } from './lane.ts'
import type { KnownSend, PendingSend, SendState } from './model.ts'
import type { SendBudget } from './send-budget.ts'
import type { HubStore, SendProgress } from './store/port.ts'
import { type Upstream, UpstreamError } from './upstream/port.ts'

/** A message from a client to a user. */
export interface SendOrder {
  clientId: number
  account: string
  userId: string
  message: Composed
}

export interface SendAnswer {
  /** Digits of the id the service gave; null when it gave none. */
  upstreamId: string | null
  state: 'accepted' | 'unconfirmed'
}

/** What leaves for the users. */
export interface Outbound {
  /** Resolves once the service has accepted the message; a repetition under the same key gets the first one's answer. */
  send(order: SendOrder): Promise<SendAnswer>
  /** Sends what is in the store already: the hub's own notices, and what a crash interrupted. */
  resume(sends: PendingSend[]): void
  /** Refuses everything new and what waits for its turn, unless a part of it has gone out. What is at the service may end. */
  stop(): void
}

export interface OutboundOptions {
  store: Pick<HubStore, 'sends' | 'conversations'>
  upstream: Pick<Upstream, 'send'>
  lane: Lane
  now: () => number
  log: Log
  budget: Pick<SendBudget, 'note' | 'waitMs'>
  /** The service holds sends back until then. */
  onThrottled: (untilMs: number) => void
  onAccepted: (send: { account: string; userId: string; clientId: number | null; state: SendState }) => void
  onFailed: (kind: string) => void
  patienceMs?: number
}

interface Flight {
  send: PendingSend
  next: number
  accepted: number
  upstreamId: string | null
  /** Nobody waits for the answer (any more): a link that is down is waited for. */
  detached: boolean
  cancelled: boolean
  call: AbortController | null
  /** Takes it out of the lane. */
  leave: () => void
  pause: Backoff
  resolve: (answer: SendAnswer) => void
  reject: (error: unknown) => void
}

const PATIENCE_MS = 10_000
const SAME_KEY_FOR_MS = 10 * 60_000
const RETRY_FOR_MS = 10 * 60_000
const MAX_WAITING_PER_SENDER = 1_000
const FIRST_SILENCE_MS = 1_000
const MOST_SILENCE_MS = 60_000

export function openOutbound(options: OutboundOptions): Outbound {
  const { store, upstream, lane, now, log } = options
  const underway = new Map<string, Promise<SendAnswer>>()
  const deadlines = sharedDeadlines(options.patienceMs ?? PATIENCE_MS)
  const silence = backoff({ firstMs: FIRST_SILENCE_MS, mostMs: MOST_SILENCE_MS, random: () => 1 })
  const waiting = new Set<Flight>()
  let silentUntil = 0
  let stopped = false

  return {
    send(order) {
      const { key, bodyHash } = order.message
      if (key === null) return attempt(order)
      // Entered before anything is awaited, so that two at once are one.
      const id = `${order.clientId}\0${key}\0${bodyHash}`
      const running = underway.get(id)
      if (running) return running
      const fresh = attemptOnce(order, key).finally(() => underway.delete(id))
      underway.set(id, fresh)
      return fresh
    },
    resume(sends) {
      for (const send of sends) {
        const flight = takeOff(
          send,
          () => {},
          () => {},
        )
        flight.detached = true
        flight.next = send.parts.findIndex(({ state }) => state === 'queued')
        flight.accepted = send.parts.filter(({ state }) => state === 'accepted' || state === 'unconfirmed').length
        flight.upstreamId = send.parts.find(({ upstreamId }) => upstreamId !== null)?.upstreamId ?? null
        if (flight.next !== -1) queue(flight)
      }
    },
    stop() {
      stopped = true
      for (const flight of waiting) if (flight.call === null) void giveUp(flight)
    },
  }

  async function attemptOnce(order: SendOrder, key: string): Promise<SendAnswer> {
    const known = await store.sends.find(order.clientId, key, order.message.bodyHash, now() - SAME_KEY_FOR_MS)
    const answer = known && earlierAnswer(known)
    return answer ?? attempt(order)
  }

  async function attempt({ clientId, account, userId, message }: SendOrder): Promise<SendAnswer> {
    if (stopped) throw notInTime('failed')
    if (silentUntil > now()) throw throttled(silentUntil - now(), null)
    if (lane.waiting(`client:${clientId}`) >= MAX_WAITING_PER_SENDER) {
      throw new AppError('too_many_sends', 'Too many messages of this client wait to be sent; slow down.', {
        retryAfterMs: 2_000,
      })
    }
    const { parts, text, key, bodyHash } = message
    const waitMs = options.budget.waitMs(account, parts.length)
    if (waitMs > 0) throw budgetUsed(waitMs)
    const send = await store.sends.begin({ clientId, account, userId, key, bodyHash, text, parts, now: now() })
    return new Promise((resolve, reject) => {
      const flight = takeOff(send, resolve, reject)
      const patience = { onDue: () => void giveUp(flight) }
      deadlines.add(patience)
      const settled = () => {
        deadlines.remove(patience)
        waiting.delete(flight)
      }
      flight.resolve = (answer) => {
        settled()
        resolve(answer)
      }
      flight.reject = (error) => {
        settled()
        reject(error)
      }
      waiting.add(flight)
      // It may have come while this was being stored.
      if (stopped) void giveUp(flight)
      else queue(flight)
    })
  }

  function queue(flight: Flight): void {
    const { clientId, account, userId } = flight.send
    const sender = clientId === null ? 'hub' : `client:${clientId}`
    flight.leave = lane.enqueue({
      sender,
      conversation: `${account}\0${userId.toLowerCase()}`,
      step: () => step(flight),
    })
  }

  /** Sends one part. True when there is another to send. */
  async function step(flight: Flight): Promise<boolean> {
    const { send } = flight
    const part = send.parts[flight.next]
    if (flight.cancelled || part === undefined) return false
    try {
      // `sending` is durable before the call; the first part of a client's message was stored so.
      if (part.state !== 'sending') await record(flight, 'sending')
      const conversation = await store.conversations.get(send.account, send.userId)
      if (flight.cancelled) return false
      flight.call = new AbortController()
      const message = {
        userId: conversation?.userId ?? send.userId,
        contextToken: conversation?.upstreamToken ?? null,
        body: part.body,
      }
      const { upstreamId } = await upstream.send(message, flight.call.signal)
      return await accepted(flight, upstreamId)
    } catch (error) {
      return await refused(flight, error)
    } finally {
      flight.call = null
    }
  }

  async function accepted(flight: Flight, upstreamId: string | null): Promise<boolean> {
    const { send } = flight
    silence.reset()
    flight.accepted += 1
    flight.upstreamId ??= upstreamId
    const state = upstreamId === null ? 'unconfirmed' : 'accepted'
    options.budget.note(send.account)
    options.onAccepted({ account: send.account, userId: send.userId, clientId: send.clientId, state })
    const last = flight.next === send.parts.length - 1
    // Not awaited inside the lane: the next message need not wait for this one's record.
    const written = record(flight, state, {
      upstreamId,
      ...(last ? { whole: acceptedState(flight) } : {}),
    })
    if (last) {
      written.then(() => flight.resolve(answerOf(flight)), flight.reject)
      return false
    }
    await written
    flight.next += 1
    return true
  }

  async function refused(flight: Flight, error: unknown): Promise<boolean> {
    if (flight.cancelled) return false
    const failure = error instanceof UpstreamError ? error : null
    if (failure === null) log.error('send failed unexpectedly', { sendId: flight.send.id, error })
    if (failure?.kind === 'throttled') beSilent()
    if (
      flight.detached &&
      // Not a thing arrived: the link is down, or the account waits for its login.
      ((failure?.kind === 'unreachable' && !failure.ambiguous) || failure?.kind === 'expired') &&
      now() - flight.send.createdAt < RETRY_FOR_MS
    ) {
      await record(flight, 'queued').catch(() => undefined)
      setTimeout(() => queue(flight), flight.pause.next()).unref()
      return false
    }
    const unknown =
      failure === null || (failure.ambiguous && failure.kind !== 'throttled' && failure.kind !== 'refused')
    const state = unknown ? 'unknown' : failure?.kind === 'throttled' ? 'throttled' : 'failed'
    options.onFailed(failure?.kind ?? 'internal')
    // What was told stands: a repetition must not send the accepted parts again.
    const begun = flight.accepted > 0
    const whole = begun ? (flight.detached ? acceptedState(flight) : 'unknown') : state
    await record(flight, state, { whole, dropRest: true }).catch((cause: unknown) => {
      log.error('the end of a send could not be stored', { sendId: flight.send.id, error: cause })
    })
    flight.reject(errorFor(failure, flight.accepted, silentUntil - now()))
    return false
  }

  /** The client has waited long enough. What was not tried is never sent later; what was begun is finished. */
  async function giveUp(flight: Flight): Promise<void> {
    if (flight.accepted > 0) return answerEarly(flight)
    flight.cancelled = true
    flight.leave()
    const state = flight.call === null ? 'failed' : 'unknown'
    flight.call?.abort()
    options.onFailed('slow')
    await record(flight, state, { whole: state, dropRest: true }).catch(() => undefined)
    flight.reject(notInTime(state))
  }

  /** Some of it is with the user, so the answer is yes and the rest follows. Stored first: a repetition gets the same answer. */
  async function answerEarly(flight: Flight): Promise<void> {
    flight.detached = true
    const answer = answerOf(flight)
    const update = { sendId: flight.send.id, parts: [], state: answer.state, answer: JSON.stringify(answer) }
    await store.sends.progress({ ...update, now: now() }).catch(() => undefined)
    flight.resolve(answer)
  }

  async function record(
    flight: Flight,
    state: SendState,
    { upstreamId, whole, dropRest = false }: { upstreamId?: string | null; whole?: SendState; dropRest?: boolean } = {},
  ): Promise<void> {
    const { send, next } = flight
    const part = send.parts[next]
    if (part) part.state = state
    const rest = dropRest
      ? send.parts.slice(next + 1).map(({ part: number }) => ({ part: number, state: 'failed' as const }))
      : []
    const update: SendProgress = {
      sendId: send.id,
      parts: [{ part: part?.part ?? next, state, ...(upstreamId === undefined ? {} : { upstreamId }) }, ...rest],
      ...(whole === undefined ? {} : { state: whole, answer: JSON.stringify({ upstreamId: flight.upstreamId }) }),
      now: now(),
    }
    await store.sends.progress(update)
  }

  function beSilent(): void {
    if (silentUntil > now()) return
    silentUntil = now() + silence.next()
    lane.holdUntil(silentUntil)
    options.onThrottled(silentUntil)
  }
}

function takeOff(send: PendingSend, resolve: Flight['resolve'], reject: Flight['reject']): Flight {
  const pause = backoff({ firstMs: 1_000, mostMs: 30_000 })
  return {
    send,
    next: 0,
    accepted: 0,
    upstreamId: null,
    detached: false,
    cancelled: false,
    call: null,
    leave: () => {},
    pause,
    resolve,
    reject,
  }
}

function answerOf(flight: Flight): SendAnswer {
  return { upstreamId: flight.upstreamId, state: acceptedState(flight) }
}

function acceptedState({ upstreamId }: Flight): 'accepted' | 'unconfirmed' {
  return upstreamId === null ? 'unconfirmed' : 'accepted'
}

/** What a repetition of an earlier send gets; null when that one failed for sure, so it may be tried again. */
function earlierAnswer({ state, answer }: KnownSend): SendAnswer | null {
  if (state === 'failed' || state === 'throttled') return null
  if (state === 'accepted' || state === 'unconfirmed') {
    const stored: unknown = JSON.parse(answer ?? '{}')
    const id = typeof stored === 'object' && stored !== null && 'upstreamId' in stored ? stored.upstreamId : null
    return { upstreamId: typeof id === 'string' ? id : null, state }
  }
  const text =
    'It is not known whether the messaging service took this message; it is not sent again. Use a new client_id to send it anew.'
  throw new AppError('upstream_down', text, { retryAfterMs: 60_000, details: { send_state: 'unknown' } })
}

const MAYBE_SENT = 'It is not known whether it took the message. Nothing is sent again by itself.'

function notInTime(state: SendState): AppError {
  const late = 'The messaging service did not answer in time.'
  const text =
    state === 'unknown'
      ? `${late} ${MAYBE_SENT}`
      : 'The message could not be sent in time and will not be sent later. Try again.'
  return new AppError('upstream_down', text, { retryAfterMs: 5_000, details: { send_state: state } })
}

function throttled(retryAfterMs: number, upstreamCode: number | null, acceptedParts = 0): AppError {
  const details = detailsOf(upstreamCode, acceptedParts, 'throttled')
  const text = 'The messaging service holds sends back for now; wait before the next one.'
  return new AppError('upstream_throttled', text, { retryAfterMs: Math.max(1_000, retryAfterMs), details })
}

function budgetUsed(retryAfterMs: number): AppError {
  const text = 'This account has sent all that --account-sends allows for now; wait before the next one.'
  return new AppError('send_budget_used', text, { retryAfterMs, details: { send_state: 'throttled' } })
}

/** A message of which a part is with the user is not begun anew, so what became of the whole is `unknown`. */
function detailsOf(upstreamCode: number | null, acceptedParts: number, state: SendState) {
  return {
    send_state: acceptedParts > 0 ? 'unknown' : state,
    ...(upstreamCode === null ? {} : { upstream_code: upstreamCode }),
    ...(acceptedParts > 0 ? { accepted_parts: acceptedParts } : {}),
  }
}

function errorFor(failure: UpstreamError | null, acceptedParts: number, silentMs: number): AppError {
  // The codes of an expired login never reach a client: it would stop, or throw its own credentials away.
  const code = failure === null || failure.kind === 'expired' ? null : failure.upstreamCode
  if (failure?.kind === 'throttled') return throttled(silentMs, code, acceptedParts)
  const isUnknown = failure?.kind !== 'refused' && (failure === null || failure.ambiguous)
  const details = detailsOf(code, acceptedParts, isUnknown ? 'unknown' : 'failed')
  if (failure?.kind === 'refused') {
    return new AppError(
      'upstream_refused',
      'The messaging service refused the message; sending it again will not help.',
      { details },
    )
  }
  const text = isUnknown
    ? `The line to the messaging service broke. ${MAYBE_SENT}`
    : 'The messaging service cannot be reached or needs a login; the message was not accepted. Try again later.'
  return new AppError('upstream_down', text, {
    retryAfterMs: 5_000,
    details,
    cause: failure ?? undefined,
  })
}
