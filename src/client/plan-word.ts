/** A person's word on a plan. */
export interface PlanWord {
  decision: 'approve' | 'reject'
  /** The plan as the person wants it. */
  plan?: string
  feedback?: string
}

/**
 * `approve` (also with a colon and nothing after it), `approve: the plan with changes`, `reject`, `reject: why`. Any other words are what the person has to say
 * about the plan: the agent hears them as the reason why it is not carried out as it stands.
 */
export function planWord(text: string): PlanWord {
  const said = text.trim()
  if (/^(approved?|yes|ok(ay)?|go( ahead)?|👍)[.!]*$|^approve\s*[:：]$/i.test(said)) return { decision: 'approve' }
  if (/^(reject(ed)?|no|👎)[.!]*$/i.test(said)) return { decision: 'reject' }
  const edited = /^(?:approve|edit)\s*[:：]\s*([\s\S]+)$/i.exec(said)?.[1]
  if (edited !== undefined) return { decision: 'approve', plan: edited }
  const why = /^(?:reject|no)\s*[:：,，]\s*([\s\S]+)$/i.exec(said)?.[1]
  return { decision: 'reject', feedback: why ?? said }
}
