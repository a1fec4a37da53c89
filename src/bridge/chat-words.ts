/** What a user can tell the bridge itself, in the chat. */
export type ChatCommand = { name: 'new' } | { name: 'stop' } | { name: 'model'; model: string | null }

/** A person's word on a plan. */
export interface PlanWord {
  decision: 'approve' | 'reject'
  /** The plan as the person wants it. */
  plan?: string
  feedback?: string
}

/** `/new`, `/stop`, `/model <name>`; null for everything else, also for other words that start with a slash. */
export function chatCommand(text: string): ChatCommand | null {
  const found = /^\/(new|stop|model)(?:\s+(\S.*))?$/is.exec(text.trim())
  const argument = found?.[2]?.trim() ?? null
  switch (found?.[1]?.toLowerCase()) {
    case 'new':
      return argument === null ? { name: 'new' } : null
    case 'stop':
      return argument === null ? { name: 'stop' } : null
    case 'model':
      return argument === null || /^\S+$/.test(argument) ? { name: 'model', model: argument } : null
    default:
      return null
  }
}

/**
 * `approve`, `approve: the plan with changes`, `reject`, `reject: why`. Any other words are what the person has to say
 * about the plan: the agent hears them as the reason why it is not carried out as it stands.
 */
export function planWord(text: string): PlanWord {
  const said = text.trim()
  if (/^(approved?|yes|ok(ay)?|go( ahead)?|👍)[.!]*$/i.test(said)) return { decision: 'approve' }
  if (/^(reject(ed)?|no|👎)[.!]*$/i.test(said)) return { decision: 'reject' }
  const edited = /^(?:approve|edit)\s*[:：]\s*([\s\S]+)$/i.exec(said)?.[1]
  if (edited !== undefined) return { decision: 'approve', plan: edited }
  const why = /^(?:reject|no)\s*[:：,，]\s*([\s\S]+)$/i.exec(said)?.[1]
  return { decision: 'reject', feedback: why ?? said }
}

/** A text without the mention that brought it here. */
export function withoutMention(text: string, name: string): string {
  const mention = `@${name}`
  if (!text.toLowerCase().startsWith(mention.toLowerCase())) return text
  const rest = text.slice(mention.length)
  return rest === '' || /^[\s,:;.!?\u2005，：；。！？]/.test(rest)
    ? rest.replace(/^[\s,:;.!?\u2005，：；。！？]+/, '')
    : text
}
