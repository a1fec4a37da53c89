import type { Claim } from '../../kit/lease.ts'
import { NO_USAGE, type PendingPlan, type RunEvent } from '../model.ts'
import type { AgentStore, LogEntry, Receipt } from './port.ts'

export const DAY_MS = 24 * 60 * 60_000
export const DONE: RunEvent = { type: 'done', finishReason: 'NoMoreToolCalls', usage: NO_USAGE }
export const IDLE = { status: 'idle', activeRunId: null, pendingPlan: null } as const
export const REFUSE = { receipt: null, whenBusy: 'refuse' } as const
export const ENQUEUE = { receipt: null, whenBusy: 'enqueue' } as const
export const PLAN: PendingPlan = {
  planId: 'p',
  runId: 'r1',
  plan: '1. do',
  proposedAt: 1,
  expiresAt: 2,
  toolUseId: 'c',
  step: 3,
}

/** A claim on a session that nobody works on. */
export async function claimed(store: AgentStore, id = 's1'): Promise<Claim> {
  const claim = await store.leases.claim(id)
  if (claim === null) throw new Error(`${id} is claimed already`)
  return claim
}

/** The claim that came with an admission. */
export function given(claim: Claim | null | undefined): Claim {
  if (!claim) throw new Error('no claim was given')
  return claim
}

export function entry(shape: Partial<LogEntry>): LogEntry {
  return { now: 5_000, runId: 'r1', events: [], messages: [], ...shape }
}

/** The end of a run. */
export function ended(runId: string): LogEntry {
  return entry({ runId, events: [DONE], session: IDLE, run: { status: 'finished' } })
}

/** The moment a run begins to wait. */
export function proposed(plan: PendingPlan): LogEntry {
  const session = { status: 'awaiting_plan', activeRunId: plan.runId, pendingPlan: plan } as const
  return entry({ runId: plan.runId, session, run: { status: 'awaiting_plan' } })
}

export function partial(text: string): RunEvent {
  return { type: 'partial_message', text, step: 1 }
}

export function receipt(bodyHash: string, now: number): Receipt {
  return { key: 'key', bodyHash, now }
}

export function ids(list: { id: string }[]): string[] {
  return list.map(({ id }) => id)
}

export function seqs(list: { seq: number }[]): number[] {
  return list.map(({ seq }) => seq)
}
