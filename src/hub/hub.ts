import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import type { Metrics } from '../kit/metrics.ts'
import { type RateLimit, rateLimit } from '../kit/rate.ts'
import { sleep } from '../kit/retry.ts'
import { type DeliveryDesk, openDelivery } from './delivery.ts'
import { createFigures, type Figures, observe } from './figures.ts'
import { freshDeliveries } from './fresh.ts'
import { createIntake, type Intake } from './intake.ts'
import { openLane } from './lane.ts'
import { type Link, linkText, openLink } from './link.ts'
import type { HubMedia } from './media/relay.ts'
import { type Client, type DeathReason, type IngestBatch, type IngestResult, MAX_QUEUE_MESSAGES } from './model.ts'
import { type Outbound, openOutbound } from './outbound.ts'
import { pollUpstream } from './poller.ts'
import { openRegistry, type Registry } from './registry.ts'
import type { HubStore } from './store/port.ts'
import { createTraffic, type Traffic } from './traffic.ts'
import { openTyping } from './typing.ts'
import { type Upstream, UpstreamError } from './upstream/port.ts'

export interface HubOptions {
  store: HubStore
  upstream: Upstream
  doorbell: Doorbell
  metrics: Metrics
  log: Log
  now: () => number
  account: string
  /** Names the service and the bot behind `upstream`, so that a cursor is never shown to another. */
  cursorSource: string
  holdMs: number
  commandPrefix: string
  pacingMs: number
  maxParked: number
  requestsPerSecond: number
  upstreamHoldMs: number
  /** Where media is uploaded, for answers that do not say it. */
  cdnUrl: string
  /** null: clients reach the service's file store themselves. */
  media?: HubMedia | null
  retry?: { firstRetryMs: number; mostRetryMs: number }
}

/** How a client says whom it means. */
interface NamedRecipient {
  contextToken?: string | undefined
  userId?: string | undefined
  /** The field the user's id came in, for an error that names it. */
  userField: string
}

/** Whom a client's message is for. */
export interface Recipient {
  account: string
  userId: string
}

/** The relay hub, without its HTTP. */
export interface Hub {
  readonly store: HubStore
  readonly registry: Registry
  readonly delivery: DeliveryDesk
  readonly outbound: Outbound
  readonly intake: Intake
  readonly link: Link
  readonly figures: Figures
  readonly rate: RateLimit
  readonly traffic: Traffic
  readonly now: () => number
  readonly cdnUrl: string
  readonly media: HubMedia | null
  /** The user a context token (or, failing that, a user id this client has seen) speaks of; never a guess. */
  recipient(client: Client, named: NamedRecipient): Promise<Recipient>
  showTyping(client: Client, recipient: Recipient, on: boolean): Promise<void>
  stopTyping(client: Client): void
  uploadUrl(body: string): Promise<string>
  /** A new client, with its queue, and its token. */
  addClient: Registry['register']
  removeClient(client: Client): Promise<number>
  /** False while what comes from the service cannot be stored. */
  readonly isStoring: boolean
  /** Stops polling upstream, answers every parked poll, and lets what is under way end. */
  drain(): Promise<void>
}

const CONTEXT_LASTS_MS = 7 * 24 * 60 * 60_000
const EXPIRE_EVERY_MS = 60_000
const PRUNE_EVERY_MS = 60 * 60_000
const CALL_MS = 10_000
const GOODBYE_MS = 1_500
const LAST_CALLS_MS = 5_000
const MAX_SENDS_IN_FLIGHT = 32
const BOUNDS = {
  maxMessages: MAX_QUEUE_MESSAGES,
  maxBytes: 64 * 1024 * 1024,
  overflowNotice: {
    kind: 'overflow',
    onceMs: 10 * 60_000,
    text: '{client} has more messages waiting than it can take; the oldest ones are kept for the operator.',
  },
}

/** Opens the hub on its store and starts polling upstream. */
export async function openHub(options: HubOptions): Promise<Hub> {
  const { store, upstream, doorbell, metrics, log, now, account } = options
  const stopping = new AbortController()
  const figures = createFigures(metrics)
  const traffic = createTraffic(now)
  const registry = await openRegistry(store.clients, now)
  const link = openLink({ now, log, silentAfterMs: 2 * options.upstreamHoldMs })
  link.onChange(({ state }) => figures.linkChanges.inc({ link: state }))
  const lane = openLane({ pacingMs: options.pacingMs, maxInFlight: MAX_SENDS_IN_FLIGHT, now })
  const typing = openTyping({ upstream, now, log })
  const outbound = openOutbound({
    store,
    upstream,
    lane,
    now,
    log,
    onThrottled: link.throttled,
    onAccepted: (send) => {
      figures.sends.inc({ outcome: send.state })
      if (send.clientId !== null) traffic.count(send.clientId, 'sent')
      typing.stop(send)
    },
    onFailed: (kind) => figures.sends.inc({ outcome: kind }),
  })
  let isStoring = true
  const onStoring = (works: boolean) => {
    isStoring = works
  }
  const noteDead = (clientId: number, reason: DeathReason, count: number) => {
    log.warn('messages became dead letters', { clientId, count, reason })
    figures.died.inc({ reason }, count)
  }
  const delivery = await openDelivery({
    store: store.deliveries,
    doorbell,
    hubId: store.hubId,
    holdMs: options.holdMs,
    maxParked: options.maxParked,
    now,
    onBuried(clientId, count, reason, sends) {
      noteDead(clientId, reason, count)
      outbound.resume(sends)
    },
  })
  registry.onRevoked(delivery.revoke)
  const intake = createIntake({
    store,
    registry,
    account,
    cursorSource: options.cursorSource,
    bounds: BOUNDS,
    prefix: options.commandPrefix,
    linkText: () => linkText(link),
    now,
    onStored: tell,
  })
  observe(metrics, { registry, delivery, lane, link, deadLetters: store.deadLetters, now })

  outbound.resume(await store.sends.recover(now()))
  const cursor = await store.messages.cursor(account, options.cursorSource)
  const polling = pollUpstream(
    { upstream, link, keep: intake.take, cursor, now, log, onStoring, ...options.retry },
    stopping.signal,
  )
  const timers = [
    every(EXPIRE_EVERY_MS, 'expire', delivery.expire),
    every(PRUNE_EVERY_MS, 'prune', () => store.messages.prune(now())),
  ]

  return {
    store,
    registry,
    delivery,
    outbound,
    intake,
    link,
    figures,
    traffic,
    rate: rateLimit(options.requestsPerSecond, now),
    now,
    cdnUrl: options.cdnUrl,
    media: options.media ?? null,
    get isStoring() {
      return isStoring
    },
    recipient,
    async showTyping({ id }, { account, userId }, on) {
      if (!on) return typing.stop({ account, userId })
      const conversation = await store.conversations.get(account, userId)
      const contextToken = conversation?.upstreamToken ?? null
      await orDown(typing.start({ clientId: id, account, userId: conversation?.userId ?? userId, contextToken }))
    },
    stopTyping: ({ id }) => typing.stopClient(id),
    uploadUrl: (body) => orDown(upstream.uploadUrl(body, AbortSignal.timeout(CALL_MS))),
    async addClient(name, how) {
      const added = await registry.register(name, how)
      delivery.position(added.client.id)
      return added
    },
    async removeClient({ id }) {
      const died = await registry.remove(id)
      delivery.forget(id)
      typing.stopClient(id)
      traffic.forget(id)
      if (died > 0) noteDead(id, 'client_removed', died)
      return died
    },
    async drain() {
      for (const timer of timers) clearInterval(timer)
      delivery.drain()
      stopping.abort()
      outbound.stop()
      // A call that hangs is left behind: its send is `unknown` after the restart.
      const ended = new AbortController()
      const lastCalls = Promise.race([
        Promise.all([lane.stop(), typing.close()]),
        sleep(LAST_CALLS_MS, ended.signal),
      ]).finally(() => ended.abort())
      await Promise.all([polling, lastCalls])
      await upstream
        .notify('stop', AbortSignal.timeout(GOODBYE_MS))
        .catch(() => log.debug('the service did not take the goodbye'))
    },
  }

  /** After the commit: counts, wakes the polls, sends the notices. */
  function tell(result: IngestResult, batch: IngestBatch): void {
    for (const { state } of result.entries) figures.messages.inc({ state })
    for (const { clientId } of result.queued) traffic.count(clientId, 'received')
    for (const { clientId, reason, count } of result.died) noteDead(clientId, reason, count)
    const quarantined = result.entries.filter(({ state }) => state === 'quarantined')
    if (quarantined.length > 0)
      log.warn('messages could not be read and were set aside', { count: quarantined.length, account: batch.account })
    delivery.advance(result.positions, freshDeliveries(batch, result))
    outbound.resume(result.sends)
  }

  async function recipient(client: Client, { contextToken, userId, userField }: NamedRecipient): Promise<Recipient> {
    if (contextToken) {
      const owner = await store.deliveries.resolveContext(contextToken)
      if (owner === null || owner.clientId !== client.id || now() - owner.createdAt > CONTEXT_LASTS_MS)
        throw unknownContext()
      if (userId && userId.toLowerCase() !== owner.userId.toLowerCase()) {
        throw new AppError('bad_request', `${userField} is not the user that context_token speaks of; leave it out.`, {
          details: { field: userField },
        })
      }
      delivery.used(owner)
      return { account: owner.account, userId: owner.userId }
    }
    if (userId && (await store.conversations.hasSeen(client.id, account, userId))) return { account, userId }
    throw unknownContext()
  }

  function every(ms: number, what: string, work: () => Promise<unknown>): NodeJS.Timeout {
    let running = false
    const run = async () => {
      if (running) return
      running = true
      try {
        await work()
      } catch (error) {
        log.error('housekeeping failed', { what, error })
      } finally {
        running = false
      }
    }
    return setInterval(() => void run(), ms).unref()
  }
}

/** The same text for an unknown, an expired and somebody else's token: nothing can be learnt by trying. */
function unknownContext(): AppError {
  return new AppError(
    'unknown_context',
    'This context_token is not known for this client, or has expired; use the one of a recent message.',
  )
}

/** Calls that are worth nothing later: what the service says no to, and what does not reach it. */
async function orDown<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    if (error.kind === 'throttled')
      throw new AppError('upstream_throttled', 'The messaging service holds calls back for now.', {
        retryAfterMs: 5_000,
      })
    if (error.kind === 'refused') {
      const details = { upstream_code: error.upstreamCode }
      throw new AppError('upstream_refused', 'The messaging service refused the call.', { details, cause: error })
    }
    throw new AppError('upstream_down', 'The messaging service cannot be reached or needs a login.', {
      retryAfterMs: 5_000,
      cause: error,
    })
  }
}
