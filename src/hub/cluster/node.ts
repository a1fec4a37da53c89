import { AppError, errorText } from '../../kit/errors.ts'
import type { Claim } from '../../kit/lease.ts'
import type { Log } from '../../kit/log.ts'
import type { Sql } from '../../kit/postgres/connect.ts'
import type { PostgresLease } from '../../kit/postgres/lease.ts'
import { aborted, backoff, sleep } from '../../kit/retry.ts'
import type { HubStore } from '../store/port.ts'
import type { Replica } from '../store/replica.ts'
import { LEADER } from './database.ts'
import { beginTenure, type Tenure } from './tenure.ts'

/** One node among several: it leads, or keeps its copy up to date until it may. */
export interface ClusterNode {
  readonly role: 'leading' | 'following'
  /** Where the leader is reached, as this node knows it; waits for one until the signal aborts, then null. */
  leader(signal: AbortSignal): Promise<string | null>
  /** Null when its copy is there and a leader is known. */
  whyNotReady(): string | null
  appliedSeq(): number
  /**
   * Gives the lead to another, in order, and does not take it again; it still knows who leads. Resolves when every node
   * knows that it does not: until then they pass calls on to it, and need an answer.
   */
  resign(): Promise<void>
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
  /** Opens the hub on the store of a leader, which asks `holds` before it does what the store cannot refuse. */
  serve(store: HubStore, holds: () => boolean): Promise<LeadingService>
  onRole(role: 'leading' | 'following', leader: string | null): void
}

/** What nodes listen to: that there is something in the log, or another leader. */
const CHANNEL = 'switchboard'
const LOOK_AGAIN_MS = 1_000
const LOOK_TAKES_MS = 1_000
const SNAPSHOT_EVERY_MS = 60_000
const NO_ANSWER = 'the database does not answer'

/** Starts taking part: resolves once this node has a copy, and goes on until it is stopped. */
export async function joinCluster(options: ClusterOptions): Promise<ClusterNode> {
  const { sql, lease, openReplica, logger, serve, onRole } = options
  const stopping = new AbortController()
  const resigning = new AbortController()
  /** From the claim until it is given back; others pass calls on to this node all that time. */
  let leading: Promise<void> | null = null
  let role: ClusterNode['role'] = 'following'
  let known: string | null = null
  let lookedAt = performance.now()
  let trouble: string | null = null
  let isBehind = false
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
    whyNotReady() {
      // Who follows looks every second. A question that is never answered says as much as an error.
      const isLate = role === 'following' && performance.now() - lookedAt > options.leaseMs
      if (trouble !== null || isLate) return trouble ?? NO_ANSWER
      return known === null ? 'no node leads just now' : null
    },
    appliedSeq: () => replica.appliedSeq,
    async resign() {
      resigning.abort()
      if (leading === null) return
      await leading.catch(() => undefined)
      await sleep(LOOK_AGAIN_MS + LOOK_TAKES_MS)
    },
    async stop() {
      resigning.abort()
      stopping.abort()
      wake()
      await living
      await unlisten().catch(() => undefined)
      await replica.close()
    },
  }

  async function live(): Promise<void> {
    const pause = backoff({ firstMs: 200, mostMs: LOOK_AGAIN_MS })
    while (!stopping.signal.aborted) {
      try {
        if (isBehind) await renewCopy()
        await replica.catchUp()
        const tenure = resigning.signal.aborted ? null : await beginTenure(LEADER, options)
        if (tenure) {
          leading = lead(tenure).finally(() => {
            leading = null
          })
          await leading
        } else setKnown((await lease.holder(LEADER))?.address ?? null)
        lookedAt = performance.now()
        trouble = null
        pause.reset()
        if (tenure === null) await rung(LOOK_AGAIN_MS)
      } catch (error) {
        if (stopping.signal.aborted) return
        logger.warn('this node cannot take part just now', { reason: errorText(error) })
        isBehind ||= error instanceof AppError && error.code === 'replica_behind'
        trouble = error instanceof AppError ? error.message : NO_ANSWER
        setKnown(null)
        await sleep(pause.next(), stopping.signal)
      }
    }
  }

  /** A copy that the log no longer reaches is made anew from the snapshot. */
  async function renewCopy(): Promise<void> {
    await replica.close()
    replica = await openReplica()
    isBehind = false
  }

  async function lead({ claim, ...tenure }: Tenure): Promise<void> {
    logger.info('this node leads', { generation: claim.generation })
    try {
      if (resigning.signal.aborted) return
      const store = await replica.lead(claim)
      const service = await serve(store, tenure.holds)
      role = 'leading'
      trouble = null
      setKnown(options.address)
      ring()
      const timer = setInterval(() => void snapshot(claim), SNAPSHOT_EVERY_MS)
      await aborted(AbortSignal.any([tenure.over, resigning.signal]))
      clearInterval(timer)
      lookedAt = performance.now()
      role = 'following'
      setKnown(null)
      await service.stop()
      await store
        .close()
        .catch((error: unknown) => logger.warn('not everything could be written', { reason: errorText(error) }))
    } finally {
      role = 'following'
      await tenure.end()
      await lease.release(claim).catch(() => undefined)
      ring()
      logger.info('this node no longer leads', { generation: claim.generation })
    }
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
