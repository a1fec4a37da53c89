import type { Fit, Fitted } from './loop.ts'
import { type ContentBlock, type Message, NO_USAGE, usageOf } from './model.ts'
import { type Provider, ProviderError, type ToolDescription } from './provider/port.ts'
import { estimateTokens } from './provider/tokens.ts'
import { validMessages } from './request.ts'

export interface CompactionOptions {
  provider: Provider
  system: string
  tools: ToolDescription[]
  signal: AbortSignal
}

const PRUNE_AT = 0.6
const SUMMARISE_AT = 0.8
const KEEP_RECENT = 6
/** Where the newest messages are what fills the window, fewer of them are kept. */
const KEEP_AT_LEAST = 2
const PRUNED_CHARS = 400
const PRUNED_NOTE = '\n(… cut to save room; run the tool again if you need it)'
const PRUNED_LENGTH = PRUNED_CHARS + PRUNED_NOTE.length
const MOST_IN_A_ROW = 2
const ASK = [
  'Summarise this conversation for the one who goes on with it.',
  'Sections: the goal; what was done and found (with file names); decisions and their reasons; what is left.',
  'Only facts that stand in the conversation.',
].join(' ')

/** Makes a transcript fit the model: old tool output is cut first, then everything but the newest part becomes a summary. */
export function compaction({ provider, system, tools, signal }: CompactionOptions): Fit {
  let summaries = 0
  return async (messages, why) => {
    const window = provider.contextWindow
    if (window === null && why === 'estimate') return { messages, usage: NO_USAGE }
    const size = (list: Message[]) => estimateTokens(validMessages(list), system, tools)
    const limit = window ?? size(messages)
    const fits = { messages, usage: NO_USAGE }
    if (why === 'estimate' && size(messages) < PRUNE_AT * limit) {
      summaries = 0
      return fits
    }
    const pruned = pruneOutputs(messages, KEEP_RECENT)
    if (why === 'estimate' && size(pruned) < SUMMARISE_AT * limit) return { ...fits, messages: pruned }
    // What cannot be made shorter is still worth a try while it is thought to fit.
    const asItIs = why === 'estimate' && size(pruned) < limit ? { ...fits, messages: pruned } : null
    if (summaries >= MOST_IN_A_ROW) return asItIs
    summaries += 1
    const cut = cutPoint(messages, KEEP_RECENT)
    const keep = cut > 1 && size(messages.slice(cut)) < SUMMARISE_AT * limit ? KEEP_RECENT : KEEP_AT_LEAST
    const short = await summarise(provider, messages, keep, signal).catch((error: unknown) => {
      if (error instanceof ProviderError && error.kind === 'context_overflow') return null
      throw error
    })
    return short === null || size(short.messages) >= limit ? asItIs : short
  }
}

/** Long results that are not among the newest messages keep their beginning. The same transcript gives the same cuts. */
function pruneOutputs(messages: Message[], keep: number): Message[] {
  const from = messages.length - keep
  const isLong = (block: ContentBlock) => block.type === 'tool_result' && block.content.length > PRUNED_LENGTH
  if (!messages.slice(0, Math.max(0, from)).some(({ content }) => content.some(isLong))) return messages
  return messages.map((message, index) => {
    if (index >= from || message.role !== 'tool') return message
    const content = message.content.map((block) =>
      block.type === 'tool_result' && block.content.length > PRUNED_LENGTH
        ? { ...block, content: block.content.slice(0, PRUNED_CHARS) + PRUNED_NOTE }
        : block,
    )
    return { ...message, content }
  })
}

async function summarise(
  provider: Provider,
  transcript: Message[],
  keep: number,
  signal: AbortSignal,
): Promise<Fitted | null> {
  const cut = cutPoint(transcript, keep)
  const messages = pruneOutputs(transcript, transcript.length - cut)
  const [first] = messages
  if (cut <= 1 || first === undefined) return null
  const old = messages.slice(0, cut)
  const ask: Message = { ...first, role: 'user', content: [{ type: 'text', text: ASK }] }
  let text = ''
  let usage = NO_USAGE
  for await (const event of provider.stream(
    { system: ASK, messages: validMessages([...old, ask]), tools: [], toolChoice: 'none' },
    signal,
  )) {
    if (event.type === 'text') text += event.delta
    if (event.type === 'finish') usage = { ...usageOf(event, provider), totalSteps: 0 }
  }
  if (text.trim() === '') return null
  const summary: Message = {
    ...first,
    role: 'user',
    content: [{ type: 'text', text: `What happened so far:\n\n${text}` }],
    // An older summary stands for what it covers, and not for itself.
    covers: (first.covers ?? 0) + cut - (first.covers === undefined ? 0 : 1),
  }
  return { messages: [summary, ...messages.slice(cut)], usage, summary }
}

/** The conversation as the model sees it: the newest summary in the place of what it covers. */
export function afterSummaries(log: readonly Message[]): Message[] {
  const summary = log.findLast(({ covers }) => covers !== undefined)
  const spoken = withoutSummaries(log)
  return summary === undefined ? spoken : [summary, ...spoken.slice(summary.covers)]
}

/** The conversation as people see it. */
export function withoutSummaries(log: readonly Message[]): Message[] {
  return log.filter(({ covers }) => covers === undefined)
}

/** Where the newest part begins: never between a call and its results. */
function cutPoint(messages: Message[], keep: number): number {
  let cut = Math.max(0, messages.length - keep)
  while (cut > 0 && messages[cut]?.role === 'tool') cut -= 1
  return cut
}

/** How many entries of the log the first `count` messages of the conversation are. */
export function countWithSummaries(log: readonly Message[], count: number): number {
  let seen = 0
  for (const [index, { covers }] of log.entries()) {
    if (covers === undefined && seen === count) return index
    if (covers === undefined) seen += 1
  }
  return log.length
}
