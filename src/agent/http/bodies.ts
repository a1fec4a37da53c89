import { AppError } from '../../kit/errors.ts'
import { wireBlock, wireUsage } from '../event-data.ts'
import type { Message, Run, RunLimits, Session } from '../model.ts'

/** Times as the API shows them. */
export function iso(atMs: number): string {
  return new Date(atMs).toISOString()
}

/** A transcript entry in the contract's spelling. */
export function messageBody({ role, content, runId, step, createdAt }: Message) {
  return { role, content: content.map(wireBlock), run_id: runId, step, created_at: iso(createdAt) }
}

export function sessionSummary({ id, createdAt, lastActive, title, status, turnCount }: Session) {
  return {
    session_id: id,
    created_at: iso(createdAt),
    last_active: iso(lastActive),
    title,
    status,
    turn_count: turnCount,
  }
}

export function sessionDetails(session: Session, transcript: Message[], model: string) {
  const { activeRunId, pendingPlan, usage, systemPrompt, workspace, title } = session
  return {
    ...sessionSummary(session),
    transcript: transcript.map(messageBody),
    active_run_id: activeRunId,
    pending_plan: pendingPlan && {
      plan_id: pendingPlan.planId,
      plan: pendingPlan.plan,
      run_id: pendingPlan.runId,
      expires_at: iso(pendingPlan.expiresAt),
    },
    usage: wireUsage(usage),
    system_prompt: systemPrompt,
    workspace,
    title,
    model,
  }
}

export function runBody(run: Run) {
  const { id, goal, status, finishReason, error, usage, createdAt, startedAt, finishedAt } = run
  return {
    run_id: id,
    goal,
    status,
    finish_reason: finishReason,
    error,
    usage: wireUsage(usage),
    created_at: iso(createdAt),
    started_at: startedAt === null ? null : iso(startedAt),
    finished_at: finishedAt === null ? null : iso(finishedAt),
  }
}

/** The text of a run, under any of the names it goes by. */
export function goalOf(body: { goal?: string; message?: string; content?: string }): string {
  const goal = body.goal ?? body.message ?? body.content
  if (goal === undefined || goal.trim() === '')
    throw new AppError('bad_request', 'goal is missing; say what the agent is to do.', { details: { field: 'goal' } })
  return goal
}

/** A plan as its reader wants it; null when none is given. Blank words are no plan. */
export function editedPlan(plan: string | undefined, field: string): string | null {
  if (plan?.trim() === '')
    throw new AppError('bad_request', `${field} must not be empty; leave it out to approve the plan as it is.`, {
      details: { field },
    })
  return plan ?? null
}

/** What a caller lets a run use up, the steps apart. */
export function limitsOf(body: { max_tokens?: number; max_cost?: number; wall_clock_ms?: number }): RunLimits {
  const { max_tokens: maxTokens = null, max_cost: maxCost = null, wall_clock_ms: wallClockMs = null } = body
  return { maxTokens, maxCost, wallClockMs }
}
