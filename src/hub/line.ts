import type { Log } from '../kit/log.ts'
import { sleep } from '../kit/retry.ts'
import { createIntake, type Intake, type IntakeOptions } from './intake.ts'
import { openLane } from './lane.ts'
import { type Link, linkText, openLink } from './link.ts'
import { type Outbound, type OutboundOptions, openOutbound } from './outbound.ts'
import { pollUpstream } from './poller.ts'
import type { HubStore, InboxStore } from './store/port.ts'
import type { AccountInbox } from './storing.ts'
import { openTyping, type Typing } from './typing.ts'
import { type Upstream, UpstreamError } from './upstream/port.ts'

/** All that one bot account has of its own: its link, its polls, its way out, what it shows as typing. */
export interface Line {
  readonly account: string
  readonly link: Link
  readonly intake: Pick<Intake, 'dryRun'>
  readonly outbound: Outbound
  readonly typing: Typing
  /** The service as this account is logged in there now; every call fails with `expired` while it is not. */
  readonly upstream: Upstream
  /** Sends that wait for their turn. */
  readonly waiting: number
  /** False while what comes from the service cannot be stored. */
  readonly isStoring: boolean
  /** Polls and sends over this login from here on, after what the one before was storing is stored. */
  connect(upstream: Upstream, source: string): Promise<void>
  /** No login (any more): says why, and waits for one. */
  disconnect(reason: string): Promise<void>
  /** Refuses what is new, lets what is under way end, says goodbye. */
  drain(): Promise<void>
}

export interface LineOptions {
  account: string
  store: HubStore
  log: Log
  now: () => number
  pacingMs: number
  budget: OutboundOptions['budget']
  /** How long the service holds a poll. */
  upstreamHoldMs: number
  /** The service is not polled before this. */
  pollAfter?: Promise<unknown> | undefined
  retry?: { firstRetryMs: number; mostRetryMs: number } | undefined
  intake: Omit<IntakeOptions, 'account' | 'cursorSource' | 'linkText' | 'store' | 'now'>
  onLink: Parameters<Link['onChange']>[0]
  onAccepted: OutboundOptions['onAccepted']
  onFailed: OutboundOptions['onFailed']
}

const MAX_SENDS_IN_FLIGHT = 32
const GOODBYE_MS = 1_500
const LAST_CALLS_MS = 5_000

/** A line that is not connected yet. */
export function openLine(options: LineOptions): Line {
  const { account, store, log, now } = options
  const link = openLink({ account, now, log, silentAfterMs: 2 * options.upstreamHoldMs })
  link.onChange(options.onLink)
  let current: Upstream | null = null
  let polling: { stop: AbortController; ended: Promise<void> } | null = null
  let isStoring = true
  const upstream = passOn(() => current)
  const lane = openLane({ pacingMs: options.pacingMs, maxInFlight: MAX_SENDS_IN_FLIGHT, now })
  const typing = openTyping({ upstream, now, log })
  const outbound = openOutbound({
    store,
    upstream,
    lane,
    budget: options.budget,
    now,
    log,
    onThrottled: link.throttled,
    onAccepted(send) {
      options.onAccepted(send)
      typing.stop(send)
    },
    onFailed: options.onFailed,
  })
  const intakeFor = (cursorSource: string) =>
    createIntake({ ...options.intake, store, account, cursorSource, now, linkText: () => linkText(link) })

  return {
    account,
    link,
    intake: intakeFor(''),
    outbound,
    typing,
    upstream,
    get waiting() {
      return lane.size
    },
    get isStoring() {
      return isStoring
    },
    async connect(to, source) {
      await stopPolling()
      current = to
      const cursor = await store.messages.cursor(account, source)
      const stop = new AbortController()
      const onStoring = (works: boolean) => {
        isStoring = works
      }
      const ended = pollUpstream(
        {
          upstream: to,
          link,
          intake: intakeFor(source),
          inbox: inboxOf(store.inbox, account, source),
          cursor,
          after: options.pollAfter,
          now,
          log,
          onStoring,
          ...options.retry,
        },
        stop.signal,
      )
      polling = { stop, ended }
    },
    async disconnect(reason) {
      await stopPolling()
      const before = current
      current = null
      link.failed('needs_login', reason, null)
      await sayGoodbye(before)
    },
    async drain() {
      outbound.stop()
      // A call that hangs is left behind: its send is `unknown` after the restart.
      const ended = new AbortController()
      const lastCalls = Promise.race([
        Promise.all([lane.stop(), typing.close()]),
        sleep(LAST_CALLS_MS, ended.signal),
      ]).finally(() => ended.abort())
      await Promise.all([stopPolling(), lastCalls])
      await sayGoodbye(current)
    },
  }

  async function stopPolling(): Promise<void> {
    polling?.stop.abort()
    await polling?.ended
    polling = null
    isStoring = true
  }

  async function sayGoodbye(to: Upstream | null): Promise<void> {
    await to
      ?.notify('stop', AbortSignal.timeout(GOODBYE_MS))
      .catch(() => log.debug('the service did not take the goodbye', { account }))
  }
}

function inboxOf(inbox: InboxStore | null, account: string, source: string): AccountInbox | null {
  if (inbox === null) return null
  return {
    keep: (entry) => inbox.keep(account, { ...entry, source }),
    due: (cursor) => inbox.due(account, source, cursor),
    clear: () => inbox.clear(account, source),
  }
}

/** Whatever the account is logged in with at the moment of a call. */
function passOn(current: () => Upstream | null): Upstream {
  const now = () => {
    const upstream = current()
    if (upstream === null) throw new UpstreamError('expired', 'the account is not logged in')
    return upstream
  }
  return {
    poll: async (...given) => now().poll(...given),
    notify: async (...given) => now().notify(...given),
    send: async (...given) => now().send(...given),
    typing: async (...given) => now().typing(...given),
    typingTicket: async (...given) => now().typingTicket(...given),
    uploadUrl: async (...given) => now().uploadUrl(...given),
  }
}
