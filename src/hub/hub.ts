import type { Doorbell } from '../kit/doorbell.ts'
import { AppError } from '../kit/errors.ts'
import type { Log } from '../kit/log.ts'
import type { Metrics } from '../kit/metrics.ts'
import { type RateLimit, rateLimit } from '../kit/rate.ts'
import { type Account, type Accounts, type AccountsOptions, DEFAULT_ACCOUNT, openAccounts } from './accounts.ts'
import { openBacklog } from './backlog.ts'
import type { BotLogin } from './credentials.ts'
import { type DeliveryDesk, openDelivery } from './delivery.ts'
import { createFigures, type Figures, observe } from './figures.ts'
import { freshDeliveries } from './fresh.ts'
import type { Intake } from './intake.ts'
import { openLine } from './line.ts'
import type { Link } from './link.ts'
import { type Logins, openLogins } from './logins.ts'
import type { HubMedia } from './media/relay.ts'
import { type Client, type DeathReason, type IngestBatch, type IngestResult, MAX_QUEUE_MESSAGES } from './model.ts'
import type { Outbound } from './outbound.ts'
import { openPairings, type Pairings } from './pairings.ts'
import { type NamedRecipient, type Recipient, recipientFinder } from './recipients.ts'
import { openRegistry, type Registry } from './registry.ts'
import { type BudgetLimits, openSendBudget, type SendBudget } from './send-budget.ts'
import type { HubStore } from './store/port.ts'
import { BACKLOG_BATCH } from './storing.ts'
import { createTraffic, type Traffic } from './traffic.ts'
import { type QrService, UpstreamError } from './upstream/port.ts'

export interface HubOptions {
  store: HubStore
  /** The logins there are at the start, by account. */
  logins: Map<string, BotLogin>
  /** How a login is used, and where the ones made later are kept. */
  accounts: Pick<AccountsOptions, 'connect' | 'vault' | 'configuredToken'>
  /** The messaging service: where QR logins begin, and where else it may send them. */
  service: { url: string; hosts: readonly string[]; qr: QrService; loginPauseMs?: number }
  doorbell: Doorbell
  metrics: Metrics
  log: Log
  now: () => number
  holdMs: number
  commandPrefix: string
  pacingMs: number
  maxParked: number
  requestsPerSecond: number
  upstreamHoldMs: number
  /** The service is not polled before this. */
  pollAfter?: Promise<unknown> | undefined
  /** Where media is uploaded, for answers that do not say it. */
  cdnUrl: string
  /** null: clients reach the service's file store themselves. */
  media?: HubMedia | null
  /** How long clients that pair are made to wait; for tests. */
  pairing?: { holdMs: number; pauseMs: number }
  /** What the service is said to allow. */
  budget?: BudgetLimits
  retry?: { firstRetryMs: number; mostRetryMs: number }
}

/** The relay hub, without its HTTP. */
export interface Hub {
  readonly store: HubStore
  readonly registry: Registry
  readonly delivery: DeliveryDesk
  readonly accounts: Accounts
  readonly logins: Logins
  readonly pairings: Pairings
  /** Sends from the account that the order names. */
  readonly outbound: Pick<Outbound, 'send'>
  /** The link of the account that is worst off. */
  readonly link: Pick<Link, 'view' | 'isUp'>
  readonly figures: Figures
  readonly rate: RateLimit
  readonly traffic: Traffic
  readonly now: () => number
  readonly cdnUrl: string
  readonly media: HubMedia | null
  readonly budget: SendBudget
  /** The user a context token (or, failing that, a user id this client has seen) speaks of; never a guess. */
  recipient(client: Client, named: NamedRecipient): Promise<Recipient>
  showTyping(client: Client, recipient: Recipient, on: boolean): Promise<void>
  stopTyping(client: Client): void
  /** An upload address for something that is to go to `userId`. */
  uploadUrl(client: Client, userId: string | null, body: string): Promise<string>
  /** Where a text from this user would go now; nothing is changed. */
  dryRun(account: string | undefined, ...said: Parameters<Intake['dryRun']>): ReturnType<Intake['dryRun']>
  /** A new client, with its queue, and its token. */
  addClient: Registry['register']
  removeClient(client: Client): Promise<number>
  /** False while what comes from the service cannot be stored. */
  readonly isStoring: boolean
  /** True until every account there was at the start has been tried. */
  readonly isStarting: boolean
  /** Stops polling upstream, answers every parked poll, and lets what is under way end. */
  drain(): Promise<void>
}

const EXPIRE_EVERY_MS = 60_000
const PRUNE_EVERY_MS = 60 * 60_000
const CALL_MS = 10_000
/** With more behind an upstream answer polls may wait this long, and get more at once. */
const BACKLOG_HOLD_MS = 20
const NO_LIMITS = { sendsPerContext: 0, replyWindowMs: 0, accountSends: 0, accountWindowMs: 300_000 }
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
  const { store, doorbell, metrics, log, now } = options
  const figures = createFigures(metrics)
  const traffic = createTraffic(now)
  const registry = await openRegistry(store.clients, now)
  const budget = openSendBudget(options.budget ?? NO_LIMITS, now)
  for (const { account, createdAt, parts } of (await store.sends.list({ limit: 1_000 })).reverse())
    for (const { state } of parts) if (state === 'accepted' || state === 'unconfirmed') budget.note(account, createdAt)
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
      accounts.resume(sends)
    },
  })
  registry.onRevoked(delivery.revoke)
  const backlog = openBacklog({
    holdMs: BACKLOG_HOLD_MS,
    // A client may have gone since its messages were stored; they are dead letters by now.
    tell: (positions, fresh) =>
      delivery.advance(
        positions.filter(({ clientId }) => registry.get(clientId) !== undefined),
        fresh,
      ),
  })
  const accounts = openAccounts({
    ...options.accounts,
    serviceUrl: options.service.url,
    log,
    openLine: (account) =>
      openLine({
        account,
        store,
        log,
        now,
        pacingMs: options.pacingMs,
        budget,
        upstreamHoldMs: options.upstreamHoldMs,
        pollAfter: options.pollAfter,
        retry: options.retry,
        intake: { registry, bounds: BOUNDS, prefix: options.commandPrefix, onStored: tell },
        onLink: ({ state }) => figures.linkChanges.inc({ link: state }),
        onAccepted({ state, clientId }) {
          figures.sends.inc({ outcome: state })
          if (clientId !== null) traffic.count(clientId, 'sent')
        },
        onFailed: (kind) => figures.sends.inc({ outcome: kind }),
      }),
  })
  const logins = openLogins({
    service: options.service.qr,
    hosts: { baseUrl: options.service.url, more: options.service.hosts },
    now,
    log,
    accept: accounts.accept,
    ...(options.service.loginPauseMs === undefined ? {} : { pauseMs: options.service.loginPauseMs }),
  })
  const pairings = openPairings({ now, ...options.pairing })
  observe(metrics, { registry, delivery, accounts: accounts.all, budget, deadLetters: store.deadLetters, now })
  // Before the first poll: what is under way from here on is none of the last run's.
  const left = await store.sends.recover(now())
  await accounts.start(options.logins)
  accounts.resume(left)
  let starting: readonly Account[] = accounts.all()
  const timers = [
    every(EXPIRE_EVERY_MS, 'expire', delivery.expire),
    every(PRUNE_EVERY_MS, 'prune', () => store.messages.prune(now())),
  ]

  return {
    store,
    registry,
    delivery,
    accounts,
    logins,
    pairings,
    outbound: { send: async (order) => lineOf(order.account).outbound.send(order) },
    link: { view: () => accounts.worst().view, isUp: accounts.isUp },
    figures,
    traffic,
    rate: rateLimit(options.requestsPerSecond, now),
    now,
    cdnUrl: options.cdnUrl,
    media: options.media ?? null,
    budget,
    get isStoring() {
      return accounts.all().every(({ line }) => line.isStoring)
    },
    get isStarting() {
      starting = starting.filter(({ line }) => line.link.view().state === 'connecting')
      return starting.length > 0
    },
    recipient: recipientFinder({ store, delivery, accounts: accounts.all, now }),
    async showTyping({ id }, { account, userId }, on) {
      const { typing } = lineOf(account)
      if (!on) return typing.stop({ account, userId })
      const conversation = await store.conversations.get(account, userId)
      const contextToken = conversation?.upstreamToken ?? null
      await orDown(typing.start({ clientId: id, account, userId: conversation?.userId ?? userId, contextToken }))
    },
    stopTyping: ({ id }) => {
      for (const { line } of accounts.all()) line.typing.stopClient(id)
    },
    async uploadUrl(client, userId, body) {
      const { upstream } = await uploadLine(client, userId)
      return orDown(upstream.uploadUrl(body, AbortSignal.timeout(CALL_MS)))
    },
    dryRun: (account, ...said) =>
      (account === undefined ? usual() : accounts.named(account)).line.intake.dryRun(...said),
    async addClient(name, how) {
      const added = await registry.register(name, how)
      delivery.position(added.client.id)
      return added
    },
    async removeClient({ id }) {
      const died = await registry.remove(id)
      delivery.forget(id)
      for (const { line } of accounts.all()) line.typing.stopClient(id)
      traffic.forget(id)
      if (died > 0) noteDead(id, 'client_removed', died)
      return died
    },
    async drain() {
      for (const timer of timers) clearInterval(timer)
      backlog.release()
      delivery.drain()
      pairings.close()
      await logins.close()
      await accounts.drain()
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
    backlog.stored(result.positions, freshDeliveries(batch, result), batch.entries.length >= BACKLOG_BATCH)
    accounts.resume(result.sends)
  }

  function lineOf(account: string) {
    const found = accounts.get(account)
    if (found) return found.line
    throw new AppError('upstream_down', `The bot account ${account} is logged out; log it in again.`, {
      retryAfterMs: 30_000,
    })
  }

  function usual(): Account {
    return accounts.get(DEFAULT_ACCOUNT) ?? accounts.all()[0] ?? accounts.named(DEFAULT_ACCOUNT)
  }

  /** The account that knows the user; any that the client may use will do where nobody knows him. */
  async function uploadLine(client: Client, userId: string | null) {
    const mine = accounts.all().filter(({ name }) => client.account === null || client.account === name)
    for (const { name, line } of mine)
      if (userId !== null && (await store.conversations.hasSeen(client.id, name, userId))) return line
    return (mine.find(({ line }) => line.link.isUp()) ?? mine[0] ?? usual()).line
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
