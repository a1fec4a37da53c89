import { textOf, textsOf } from '../../kit/redis/connect-redis.ts'
import type { Run, Session } from '../model.ts'
import type { Admission, AdmitOptions, LogEntry, PlanSettlement, RunStore, Settled, Started } from './port.ts'
import { acceptRun, applyEntry, type KeptReceipt, madeUnder, startRun, storedEvents } from './records.ts'
import type { Marked, MarkedSet, SessionIndex } from './redis-index.ts'
import { type Change, commit, load, loadRun, need, type RedisParts } from './redis-session.ts'

export interface RedisRunsOptions {
  parts: RedisParts
  index: SessionIndex
  /** Sessions that may be unfinished. */
  active: MarkedSet
  /** Told the mark under which a claim was given. */
  onClaimed: (sessionId: string, mark: string) => void
  /** Told of a session that was left marked though it is finished: its last ring may have been lost with its owner. */
  onLeftMarked: (sessionId: string) => void
}

/** What is being done elsewhere in this moment is not repaired. */
const LEFT_ALONE_MS = 60_000

export function redisRuns({ parts, index, active, onClaimed, onLeftMarked }: RedisRunsOptions): RunStore {
  const { redis, keys } = parts
  return {
    async admit(run, options) {
      // Marked before it is accepted: should we die in between, somebody looks in vain, and not nobody.
      const mark = await active.mark(run.sessionId)
      for (;;) {
        const admission = await tryToAdmit(run, options)
        if (admission === 'changed') continue
        if (admission.claim !== null) onClaimed(run.sessionId, mark)
        return admission
      }
    },
    get: (sessionId, runId) => loadRun(parts, sessionId, runId),
    async list(sessionId) {
      const at = keys.session(sessionId)
      const ids = textsOf(await redis.send('LRANGE', at.order, '0', '-1')).flatMap((id) => id ?? [])
      if (ids.length === 0) return []
      const found = textsOf(await redis.send('HMGET', at.runs, ...ids))
      return found.flatMap((text): Run[] => (text === null ? [] : [JSON.parse(text)]))
    },
    async next(sessionId, now) {
      for (;;) {
        const next = await tryNext(sessionId, now)
        if (next !== 'changed') return next
      }
    },
    async settlePlan(sessionId, planId, entry, decision) {
      for (;;) {
        const settled = await trySettle(sessionId, planId, entry, decision)
        if (settled !== 'changed') return settled
      }
    },
    async unfinished() {
      const [marked, some] = [await active.oldest(null), await index.someOfAll()]
      const known = new Set(marked.map(({ id }) => id))
      for (const one of some) if (!known.has(one.id)) await repair(one)
      const looked = await Promise.all(marked.map(async (one) => ({ ...one, session: await unfinishedOne(one.id) })))
      for (const { id, mark, ageMs, session } of looked) {
        if (session !== null || ageMs < LEFT_ALONE_MS) continue
        onLeftMarked(id)
        await active.unmark(id, mark)
      }
      return looked.flatMap(({ session }) => session ?? [])
    },
  }

  async function tryToAdmit(run: Run, options: AdmitOptions): Promise<Admission | 'changed'> {
    const { sessionId } = run
    const { receipt } = options
    const at = keys.session(sessionId)
    // The session first: whatever changes after it was read makes the step be worked out again.
    const [loaded, queued, kept] = await Promise.all([
      need(parts, sessionId),
      redis.send('LLEN', at.queue),
      receipt === null ? null : redis.send('GET', at.receipt(receipt.key)),
    ])
    const known: KeptReceipt | undefined = kept === null ? undefined : JSON.parse(String(kept))
    const made = madeUnder(receipt, known)
    const earlier = made === null ? null : await loadRun(parts, sessionId, made)
    if (earlier !== null) return { run: earlier, repeated: true, claim: null, activeRunId: null }
    const admitted: Run = { ...run }
    const { activeRunId } = loaded.session
    acceptRun(loaded.session, admitted, { ...options, newest: loaded.newest, queued: Number(queued) })
    const starts = admitted.status === 'running'
    const change: Change = {
      claim: starts ? 'grant' : 'none',
      runs: [admitted],
      newRun: admitted.id,
      ...(starts ? {} : { queue: admitted.ahead ? ('first' as const) : ('push' as const) }),
      ...(receipt === null
        ? {}
        : { receipt: { key: receipt.key, kept: { bodyHash: receipt.bodyHash, made: run.id, at: receipt.now } } }),
    }
    const done = await commit(parts, loaded, change)
    if (done === 'changed') return done
    return { run: admitted, repeated: false, claim: done.claim, activeRunId: starts ? null : activeRunId }
  }

  async function tryNext(sessionId: string, now: number): Promise<Started | null | 'changed'> {
    const [loaded, first] = await Promise.all([
      load(parts, sessionId),
      redis.send('LINDEX', keys.session(sessionId).queue, '0'),
    ])
    const runId = textOf(first)
    if (loaded === null || runId === null || loaded.session.status !== 'idle') return null
    const [mark, run] = [await active.mark(sessionId), await loadRun(parts, sessionId, runId)]
    if (run === null) return 'changed'
    startRun(loaded.session, run, loaded.newest, now)
    const done = await commit(parts, loaded, { claim: 'grant', runs: [run], queue: 'pop' })
    if (done === 'changed') return done
    onClaimed(sessionId, mark)
    return done.claim === null ? null : { run, claim: done.claim }
  }

  async function trySettle(
    sessionId: string,
    planId: string,
    entry: LogEntry,
    decision: PlanSettlement,
  ): Promise<Settled | 'changed'> {
    const [loaded, run] = await Promise.all([need(parts, sessionId), loadRun(parts, sessionId, entry.runId)])
    const { session } = loaded
    if (session.pendingPlan?.planId !== planId) return { settled: false }
    const events = storedEvents(entry, loaded.newest)
    applyEntry(session, run ?? undefined, entry)
    if (decision !== null) session.decidedPlan = decision
    const done = await commit(parts, loaded, {
      claim: session.status === 'running' ? 'grant' : 'none',
      events,
      messages: entry.messages,
      runs: run === null ? [] : [run],
    })
    return done === 'changed' ? done : { settled: true, claim: done.claim }
  }

  /** The session, if there is something left to do in it. */
  async function unfinishedOne(id: string): Promise<Session | null> {
    const [loaded, queued] = await Promise.all([load(parts, id), redis.send('LLEN', keys.session(id).queue)])
    return loaded !== null && (loaded.session.status !== 'idle' || Number(queued) > 0) ? loaded.session : null
  }

  /** What a node that died in the middle left in the index: an entry without a session, a session without its mark. */
  async function repair({ id, ageMs }: Marked): Promise<void> {
    if (ageMs < LEFT_ALONE_MS) return
    if ((await load(parts, id)) === null) await index.drop(id)
    else if ((await unfinishedOne(id)) !== null) await active.mark(id)
  }
}
