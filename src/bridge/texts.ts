import type { RelayMessage } from '../client/cursor-relay.ts'
import type { Taken } from './state.ts'

/** What users are told by the bridge itself, a plain sentence each. */
export const TEXTS = {
  stopped: 'Stopped.',
  nothingToStop: 'Nothing is running.',
  newConversation: 'A new conversation starts; what came before is left behind.',
  model: (model: string | null) =>
    model === null ? "You talk to the agent's own model." : `From your next message on the model is ${model}.`,
  modelRefused: (why: string) => `${oneSentence(why)} The model stays as it was.`,
  empty: 'That message was empty; write what the agent is to do.',
  silent: 'The agent had nothing to say to that.',
  away: 'The agent cannot be reached right now; your message is kept and answered when it is back.',
  again: 'The agent was interrupted while it worked on this, and starts again.',
  interrupted: 'The agent was interrupted several times while it worked on this; please ask once more.',
  forgotten: 'The agent was restarted and no longer knows what we spoke of; it starts afresh.',
  perhapsTwice: '(You may have this twice: the line broke while it was being sent.)',
  decidedAlready: 'That plan was decided already.',
  bridgeFailed: 'Something went wrong on the way to the agent; please ask once more.',
  failed: (why: string) => `The agent could not finish this: ${oneSentence(why)}`,
} as const

const ENDINGS: Record<string, string> = {
  BudgetExceeded: 'The agent stopped here, as it has used up what one answer may take; say "go on" to let it continue.',
  Stuck: 'The agent stopped, as it was going round in circles; try to ask in another way.',
  ContextOverflow: 'This conversation has become too long for the model; /new starts a new one.',
  WallClockExceeded: 'The agent stopped, as this took longer than one answer may take.',
  ProviderStop: 'The model stopped before it had finished.',
}

/** What to say of a run that did not end by itself; null when its answer says all. */
export function endingText(finishReason: string): string | null {
  return ENDINGS[finishReason] ?? null
}

/** How a plan is put to the user. */
export function planText(plan: string): string {
  return `${plan.trim()}\n\nAnswer "approve", "approve: <the plan as you want it>" or "reject: <why>".`
}

/** What the agent is asked: the messages of a turn, one after the other. */
export function goalText(messages: readonly Taken[], attempt: number): string {
  const goal = messages.map(({ text, beside }) => (beside === '' ? text : `${text}\n${beside}`)).join('\n\n')
  if (attempt === 1) return goal
  return `(You were interrupted while you worked on what follows. See what is done already before you go on.)\n\n${goal}`
}

/** What came with a text, told to an agent that cannot see it; empty when there is nothing to tell. */
export function besideText({ text, attachments, quote }: Pick<RelayMessage, 'text' | 'attachments' | 'quote'>): string {
  const isLabel = /^\[(image|voice|video|file|message)(: [^\]]*)?\]$/.test(text)
  const unseen = [...(isLabel ? [text] : []), ...attachments]
  return [
    ...(quote === null ? [] : [`(This answers: ${oneSentence(quote)})`]),
    ...(unseen.length === 0 ? [] : [`(Sent by the user, and not to be opened from here: ${unseen.join(' ')})`]),
  ].join('\n')
}

const SENTENCE_CHARS = 300

/** The first line of a text, short enough to be read in a chat, with an end. */
function oneSentence(text: string): string {
  const line = text.trim().split('\n', 1)[0]?.trim() ?? ''
  const letters = [...line]
  const short = letters.length > SENTENCE_CHARS ? `${letters.slice(0, SENTENCE_CHARS).join('')}…` : line
  return /[.!?…]$/.test(short) ? short : `${short}.`
}
