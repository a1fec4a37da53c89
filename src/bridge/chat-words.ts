/** What a user can tell the bridge itself, in the chat. */
export type ChatCommand = { name: 'new' } | { name: 'stop' } | { name: 'model'; model: string | null }

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

/** A text without the mention that brought it here. */
export function withoutMention(text: string, name: string): string {
  const mention = `@${name}`
  if (!text.toLowerCase().startsWith(mention.toLowerCase())) return text
  const rest = text.slice(mention.length)
  return rest === '' || /^[\s,:;.!?\u2005，：；。！？]/.test(rest)
    ? rest.replace(/^[\s,:;.!?\u2005，：；。！？]+/, '')
    : text
}
