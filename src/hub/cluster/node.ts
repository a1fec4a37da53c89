import { AppError, errorText } from '../../kit/errors.ts'
import type { Claim } from '../../kit/lease.ts'
import type { Log } from '../../kit/log.ts'
import type { Sql } from '../../kit/postgres/connect.ts'
import type { PostgresLease } from '../../kit/postgres/lease.ts'
import { backoff, sleep } from '../../kit/retry.ts'
import type { HubStore } from '../store/port.ts'
import type { Replica } from '../store/replica.ts'
import { LEADER } from './database.ts'

/** One node among several: it leads, or keeps its copy up to date until it may. */
export interface ClusterNode {
  readonly role: 'leading' | 'following'
  /** Where the leader is reached, as this node knows it; waits for one until the signal aborts, then null. */
  leader(signal: AbortSignal): Promise<string | null>
  /** Its copy is there and a leader is known. */
  isReady(): boolean
  appliedSeq(): number
  /** Gives the lead to another, in order, and stops. */
  stop(): Promise<void>
}

/** The hub, while this node leads. */
export interface LeadingService {
  /** Finishes what is under way; the store is still open. */
  stop(): Promise<void>
}

export interface ClusterOptions {
  sql: Sql
  lease: PostgresLease
  /** Opens this node's copy, made anew where it is too old. */
  openReplica(): Promise<Replica>
  /** Where other nodes reach this one. */
  address: string
  /** How long the lead lasts without a word; it is renewed three times as often. */
  leaseMs: number
  logger: Log
  /** Opens the hub on the store of a leader. */
  serve(store: HubStore): Promise<LeadingService>
  onRole(role: 'leading' | 'following', leader: string | null): void
}

/** What nodes listen to: that there is something in the log, or another leader. */
const CHANNEL = 'switchboard'
const LOOK_AGAIN_MS = 1_000
const SNAPSHOT_EVERY_MS = 60_000

/** Starts taking part: resolves once this node has a copy, and goes on until it is stopped. */
export async function joinCluster(options: ClusterOptions): Promise<ClusterNode> {
  const { sql, lease, openReplica, logger, serve, onRole } = options
  const stopping = new AbortController()
  let role: ClusterNode['role'] = 'following'
  let known: string | null = null
  let wake = () => {}
  const waiters = new Set<() => void>()
  let replica: Replica = await openReplica()
  const { unlisten } = await sql.listen(CHANNEL, () => wake())
  const living = live()

  return {
    get role() {
      return role
    },
    async leader(signal) {
      while (known === null && !signal.aborted && !stopping.signal.aborted) await changed(signal)
      return known
    },
    isReady: () => known !== null,
    appliedSeq: () => replica.appliedSeq,
    async stop() {
      stopping.abort()
      wake()
      await living
      await unlisten().catch(() => undefined)
      await replica.close()
    },
  }

  async function live(): Promise<void> {
    const pause = backoff({ firstMs: 200, mostMs: 5_000 })
    while (!stopping.signal.aborted) {
      try {
        await replica.catchUp()
        const claim = await lease.claim(LEADER)
        if (claim) await lead(claim)
        else {
          setKnown((await lease.holder(LEADER))?.address ?? null)
          await rung(LOOK_AGAIN_MS)
        }
        pause.reset()
      } catch (error) {
        if (stopping.signal.aborted) return
        logger.warn('this node cannot take part just now', { reason: errorText(error) })
        setKnown(null)
        await renewCopy(error)
        await sleep(pause.next(), stopping.signal)
      }
    }
  }

  /** A copy that the log no longer reaches is made anew from the snapshot. */
  async function renewCopy(error: unknown): Promise<void> {
    if (!(error instanceof AppError && error.code === 'replica_behind')) return
    await replica.close()
    replica = await openReplica()
  }

  async function lead(claim: Claim): Promise<void> {
    logger.info('this node leads', { generation: claim.generation })
    const over = new AbortController()
    const renewing = renew(claim, over)
    try {
      const store = await replica.lead(claim)
      const service = await serve(store)
      role = 'leading'
      setKnown(options.address)
      ring()
      const timer = setInterval(() => void snapshot(claim), SNAPSHOT_EVERY_MS)
      await aborted(AbortSignal.any([over.signal, stopping.signal]))
      clearInterval(timer)
      role = 'following'
      setKnown(null)
      await service.stop()
      await store
        .close()
        .catch((error: unknown) => logger.warn('not everything could be written', { reason: errorText(error) }))
    } finally {
      role = 'following'
      over.abort()
      await renewing
      await lease.release(claim).catch(() => undefined)
      ring()
      logger.info('this node no longer leads', { generation: claim.generation })
    }
  }

  /** Until the lease is lost, or may be: then another leads, or soon will. */
  async function renew(claim: Claim, over: AbortController): Promise<void> {
    const renewEveryMs = options.leaseMs / 3
    let renewedAt = performance.now()
    while (!over.signal.aborted) {
      await sleep(renewEveryMs, over.signal)
      if (over.signal.aborted) return
      try {
        const attempt = lease.renew([claim])
        const lost = await Promise.race([attempt, sleep(renewEveryMs).then(() => null)])
        if (lost !== null && lost.length > 0) break
        if (lost !== null) renewedAt = performance.now()
      } catch (error) {
        logger.warn('the lease could not be renewed', { reason: errorText(error) })
      }
      // Without an answer from the database for this long another may lead already.
      if (performance.now() - renewedAt > 2 * renewEveryMs) break
    }
    over.abort()
  }

  async function snapshot(claim: Claim): Promise<void> {
    try {
      if (await replica.snapshotIfDue(claim)) logger.info('the log has a new snapshot', {})
    } catch (error) {
      logger.warn('there is no new snapshot', { reason: errorText(error) })
    }
  }

  function setKnown(address: string | null): void {
    if (known === address) return
    known = address
    onRole(role, known)
    for (const tell of [...waiters]) tell()
  }

  /** Tells the other nodes to look. Lost ones cost a second. */
  function ring(): void {
    void sql.notify(CHANNEL, '').catch(() => undefined)
  }

  function rung(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  function changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        waiters.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      waiters.add(done)
      signal.addEventListener('abort', done, { once: true })
    })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
