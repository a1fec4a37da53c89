import { AppError } from '../kit/errors.ts'
import { PROPOSE_PLAN } from './loop.ts'
import type { Message, PendingPlan, PlanDecision, Session } from './model.ts'
import type { LogEntry } from './store/port.ts'
import { preview } from './tool-turn.ts'

/** The plan that a person means: the one that waits, by its id or without. */
export function waitingPlan({ pendingPlan }: Session, planId: string | null): PendingPlan | null {
  return pendingPlan !== null && (planId === null || planId === pendingPlan.planId) ? pendingPlan : null
}

/**
 * The plan that was decided in just this way before: a decision that is given again is answered again. Without an id it is
 * the last one, as long as its run goes on. Fails with `plan_decided` for another decision, with `no_plan` for no such plan.
 */
export function decidedBefore(
  { decidedPlan, activeRunId, pendingPlan }: Session,
  planId: string | null,
  { decision, feedback, plan }: PlanDecision,
): { planId: string; runId: string } {
  const isMeant =
    decidedPlan !== undefined &&
    (planId === null ? pendingPlan === null && decidedPlan.runId === activeRunId : decidedPlan.planId === planId)
  if (!isMeant) throw new AppError('no_plan', 'No such plan waits for a decision in this session.')
  const before = decidedPlan.decision
  if (before.decision === decision && before.feedback === feedback && before.plan === plan) return decidedPlan
  throw new AppError('plan_decided', 'Another decision on this plan came first; the run goes on with that one.', {
    details: { plan_id: decidedPlan.planId, decision: before.decision },
  })
}

/** What the log gets with a decision: the answer to the call that proposed the plan. */
export function decisionEntry(plan: PendingPlan, decision: PlanDecision, now: number): LogEntry {
  const { toolUseId, runId, step } = plan
  const success = decision.decision === 'approve'
  const text = decisionText(plan.plan, decision)
  const answer: Message = {
    role: 'tool',
    content: [{ type: 'tool_result', toolUseId, content: text, isError: !success }],
    runId,
    step,
    createdAt: now,
  }
  return {
    now,
    runId: plan.runId,
    events: [
      { type: 'plan_decided', planId: plan.planId, decision: decision.decision },
      { type: 'tool_result', id: toolUseId, name: PROPOSE_PLAN, success, output: preview(text), step },
    ],
    messages: [answer],
    session: { status: 'running', activeRunId: plan.runId, pendingPlan: null },
    run: { status: 'running' },
  }
}

/** What the agent is told of a person's decision. */
export function decisionText(proposed: string, { decision, feedback, plan }: PlanDecision): string {
  const said = feedback === null || feedback.trim() === '' ? '' : `\n\nThe person said: ${feedback}`
  if (decision === 'reject')
    return `The plan was rejected.${said}\n\nDo not carry it out. Propose another one, or answer.`
  const changed = plan !== null && plan.trim() !== '' && plan !== proposed
  const text = changed
    ? `The plan was approved with changes. Carry out this one:\n\n${plan}`
    : 'The plan was approved. Carry it out.'
  return text + said
}
