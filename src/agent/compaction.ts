import type { Fit } from './loop.ts'
import { type Message, NO_USAGE, type Usage } from './model.ts'
import type { Provider, ToolDescription } from './provider/port.ts'
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
const PRUNED_CHARS = 400
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
    if (why === 'estimate' && size(messages) < PRUNE_AT * limit) return { messages, usage: NO_USAGE }

    const pruned = pruneOutputs(messages)
    if (why === 'estimate' && size(pruned) < SUMMARISE_AT * limit) return { messages: pruned, usage: NO_USAGE }
    if (summaries >= MOST_IN_A_ROW) return null
    summaries += 1
    const short = await summarise(provider, pruned, signal)
    if (short === null || size(short.messages) >= limit) return null
    return short
  }
}

/** Long results that are not among the newest messages keep their beginning. The same transcript gives the same cuts. */
function pruneOutputs(messages: Message[]): Message[] {
  const from = messages.length - KEEP_RECENT
  return messages.map((message, index) => {
    if (index >= from || message.role !== 'tool') return message
    const content = message.content.map((block) =>
      block.type === 'tool_result' && block.content.length > PRUNED_CHARS
        ? {
            ...block,
            content: `${block.content.slice(0, PRUNED_CHARS)}\n(… cut to save room; run the tool again if you need it)`,
          }
        : block,
    )
    return { ...message, content }
  })
}

async function summarise(
  provider: Provider,
  messages: Message[],
  signal: AbortSignal,
): Promise<{ messages: Message[]; usage: Usage } | null> {
  const cut = cutPoint(messages)
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
    if (event.type === 'finish') {
      const { inputTokens, outputTokens } = event
      usage = { ...NO_USAGE, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
    }
  }
  if (text.trim() === '') return null
  const summary: Message = {
    ...first,
    role: 'user',
    content: [{ type: 'text', text: `What happened so far:\n\n${text}` }],
  }
  return { messages: [summary, ...messages.slice(cut)], usage }
}

/** Where the newest part begins: never between a call and its results. */
function cutPoint(messages: Message[]): number {
  let cut = Math.max(0, messages.length - KEEP_RECENT)
  while (cut > 0 && messages[cut]?.role === 'tool') cut -= 1
  return cut
}
