import { once } from 'node:events'
import type { Log } from '../kit/log.ts'
import { backoff, sleep, timeLimit } from '../kit/retry.ts'
import type { Link } from './link.ts'
import { openStoring, type StoringOptions } from './storing.ts'
import { type Upstream, type UpstreamBatch, UpstreamError } from './upstream/port.ts'

export interface PollerOptions {
  upstream: Pick<Upstream, 'poll' | 'notify'>
  link: Link
  intake: StoringOptions['intake']
  inbox?: StoringOptions['inbox']
  cursor: string
  /** Nothing is asked of the service before this. */
  after?: Promise<unknown> | undefined
  now: () => number
  log: Log
  onStoring?: StoringOptions['onStoring']
  firstRetryMs?: number
  mostRetryMs?: number
}

const FIRST_RETRY_MS = 1_000
const MOST_RETRY_MS = 30_000
const NOTIFY_TIMEOUT_MS = 10_000
/** After a failure a poll that has been open this long counts as a link that works. */
const IN_FLIGHT_MEANS_UP_MS = 1_500
/** An answer without news should have been held; one that comes at once is slowed down when it repeats. */
const QUICK_ANSWER_MS = 250
const MOST_QUICK_PAUSE_MS = 1_000

/** Polls the service until `signal` aborts: one poll at a time, each after what came before it is safe. Never throws. */
export async function pollUpstream(
  { upstream, link, intake, inbox, cursor: start, after, now, log, onStoring, ...retry }: PollerOptions,
  signal: AbortSignal,
): Promise<void> {
  const pause = backoff({ firstMs: retry.firstRetryMs ?? FIRST_RETRY_MS, mostMs: retry.mostRetryMs ?? MOST_RETRY_MS })
  const storing = openStoring({ intake, inbox, link, now, log, onStoring }, signal)
  let cursor = start
  let loginRetried = false
  let quickAnswers = 0
  let announce = true
  /** Only a poll that is answered shows that all is well again. */
  let mustAnswer = false
  /** After a failure an open poll counts once it has outlived the one that failed. */
  let openMeansUpMs = IN_FLIGHT_MEANS_UP_MS
  let pollStartedAt = now()
  /** The last call was never answered: that the next one is open shows nothing. */
  let timedOut = false

  cursor = await storing.recover(start)
  if (after && !signal.aborted) await Promise.race([after, once(signal, 'abort')])
  while (!signal.aborted) {
    try {
      if (announce) await greet()
      announce = false
      pollStartedAt = now()
      const batch = await pollOnce()
      link.pollCompleted()
      mustAnswer = false
      timedOut = false
      openMeansUpMs = IN_FLIGHT_MEANS_UP_MS
      pause.reset()
      loginRetried = false
      if (batch.messages.length > 0 || (batch.cursor !== null && batch.cursor !== cursor))
        await storing.take(batch, cursor)
      else await storing.rest()
      const isNews = batch.messages.length > 0 && batch.cursor !== null && batch.cursor !== cursor
      quickAnswers = !isNews && now() - pollStartedAt < QUICK_ANSWER_MS ? quickAnswers + 1 : 0
      if (quickAnswers > 1) await sleep(Math.min(MOST_QUICK_PAUSE_MS, 25 * 2 ** Math.min(quickAnswers, 10)), signal)
      cursor = batch.cursor ?? cursor
    } catch (error) {
      if (signal.aborted) break
      await recover(error)
    }
  }
  await storing.ended()

  /** Says that the bot is there. What the service answers to it matters little; that it answers shows a link. */
  async function greet(): Promise<void> {
    try {
      await upstream.notify('start', timeLimit(NOTIFY_TIMEOUT_MS, signal))
    } catch (error) {
      if (signal.aborted) throw error
      // With nobody there a poll is of no use. All else the poll decides: some services have no such call.
      if (error instanceof UpstreamError && error.kind === 'unreachable' && !error.ambiguous) throw error
      if (error instanceof UpstreamError && error.timedOut) timedOut = true
      if (!saidNo(error)) return
    }
    // After a poll that the service answered with an error, or an expired login, only a poll shows that all is well.
    if (!mustAnswer) link.connected('the service answered')
  }

  async function pollOnce(): Promise<UpstreamBatch> {
    const open = setTimeout(() => {
      if (!signal.aborted && !timedOut && !link.isUp()) link.connected('a poll is open')
    }, openMeansUpMs)
    try {
      return await upstream.poll(cursor, signal)
    } finally {
      clearTimeout(open)
    }
  }

  async function recover(error: unknown): Promise<void> {
    announce = true
    if (error instanceof UpstreamError && error.kind === 'expired' && !loginRetried) {
      // Users report that saying hello again often revives a login: one more try before a person is called.
      loginRetried = true
      return
    }
    const delayMs = pause.next()
    const state = stateAfter(error)
    const failure = error instanceof UpstreamError ? error : null
    timedOut = failure?.timedOut === true
    mustAnswer =
      failure !== null && (failure.timedOut || failure.kind !== 'unreachable' || failure.upstreamCode !== null)
    openMeansUpMs = Math.max(IN_FLIGHT_MEANS_UP_MS, 2 * (now() - pollStartedAt))
    link.failed(state, reasonOf(error), now() + delayMs)
    if (state === 'reconnecting') log.warn('upstream poll failed', { reason: reasonOf(error), retryInMs: delayMs })
    if (!(error instanceof UpstreamError)) log.error('upstream poll failed unexpectedly', { error })
    await sleep(delayMs, signal)
  }
}

function stateAfter(error: unknown): 'reconnecting' | 'needs_login' | 'misconfigured' {
  if (!(error instanceof UpstreamError)) return 'reconnecting'
  if (error.kind === 'expired') return 'needs_login'
  // A status such as 404 does not mend itself; a garbled body may.
  return error.kind === 'bad_answer' && error.upstreamCode !== null ? 'misconfigured' : 'reconnecting'
}

/** The service answered in its own protocol, if only to refuse. */
function saidNo(error: unknown): boolean {
  return error instanceof UpstreamError && (error.kind === 'refused' || error.kind === 'throttled')
}

function reasonOf(error: unknown): string {
  return error instanceof UpstreamError ? error.message : 'internal error'
}
