import type { PlanDecision } from './model.ts'

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
