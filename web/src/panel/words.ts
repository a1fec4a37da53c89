import type { Tone } from '../shared/ui.tsx'
import type { LinkView } from './types.ts'

const ROUTES: Record<string, string> = {
  mention: 'The text names this client with @.',
  quote: 'It quotes an answer of this client.',
  chosen: 'The user chose this client with /use.',
  default: 'This is the default client, and the user chose nobody.',
  first_online: 'The first client that is online; there is no default.',
  fallback_online: 'Only a fallback client is online.',
  first_registered: 'Nobody is online, so the client registered first keeps it.',
  broadcast: 'A broadcast: it goes to every client.',
  nobody: 'No client is registered.',
  bot_echo: 'The service sent back what the bot said itself.',
}

/** Why a message went where it went, in a sentence. */
export function why(reason: string): string {
  const known = ROUTES[reason]
  if (known !== undefined) return known
  const [kind = '', rest = ''] = reason.split(/:\s*(.*)/s)
  if (kind === 'command') return `The command ${rest}: the hub answered it itself.`
  if (kind === 'passthrough') return `The command ${rest}, which this client wants to see itself.`
  if (kind === 'malformed') return `It cannot be read: ${rest}.`
  return reason
}

const DEATHS: Record<string, string> = {
  overflow: 'The queue was full',
  expired: 'It waited too long',
  undeliverable: 'It was handed out too often and never received',
  client_removed: 'Its client was deleted',
  no_client: 'No client was registered',
}

/** Why a message became a dead letter. */
export function death(reason: string): string {
  return DEATHS[reason] ?? reason
}

export const STATES: Record<string, { text: string; tone: Tone }> = {
  routed: { text: 'routed', tone: 'accent' },
  command: { text: 'command', tone: '' },
  unrouted: { text: 'for nobody', tone: 'bad' },
  suppressed: { text: 'left out', tone: '' },
  quarantined: { text: 'unreadable', tone: 'warn' },
}

export const DELIVERIES: Record<string, { text: string; tone: Tone }> = {
  queued: { text: 'waiting', tone: 'warn' },
  sent: { text: 'handed out', tone: 'accent' },
  acked: { text: 'received', tone: 'good' },
  acked_assumed: { text: 'received', tone: 'good' },
  dead: { text: 'dead letter', tone: 'bad' },
  expired: { text: 'expired', tone: 'bad' },
}

/** The state of the line in a word, and how bad it is. */
export function lineState(state: LinkView['state']): { text: string; tone: Tone } {
  switch (state) {
    case 'connected':
      return { text: 'Connected', tone: 'good' }
    case 'throttled':
      return { text: 'Connected, held back', tone: 'warn' }
    case 'connecting':
      return { text: 'Connecting', tone: 'warn' }
    case 'reconnecting':
      return { text: 'Reconnecting', tone: 'warn' }
    case 'needs_login':
      return { text: 'Login needed', tone: 'bad' }
    case 'misconfigured':
      return { text: 'Wrong address', tone: 'bad' }
  }
}
