import { sleep } from '../../kit/retry.ts'
import type { ContentBlock, Message } from '../model.ts'
import { cancelled } from './cancelled.ts'
import { lastUserText } from './last-user-text.ts'
import type { Provider, ProviderRequest, ToolDescription, TurnEvent } from './port.ts'
import { estimateTokens, textTokens } from './tokens.ts'

/**
 * An offline model of a few rules, so that everything can be seen with no account: it streams text and really calls tools.
 * The same request always gets the same answer.
 */
export function demoProvider({ deltaMs = 0 }: { deltaMs?: number } = {}): Provider {
  return {
    name: 'demo',
    contextWindow: null,
    price: null,
    stream: (request, signal) => answer(request, signal, deltaMs),
  }
}

async function* answer(
  request: ProviderRequest,
  signal: AbortSignal,
  deltaMs: number,
): AsyncGenerator<TurnEvent, void, undefined> {
  const { messages, system, tools } = request
  const inputTokens = estimateTokens(messages, system, tools)
  if (signal.aborted) throw cancelled(signal)
  const call = chooseCall(request)
  if (call !== null) {
    yield call
    const outputTokens = textTokens(JSON.stringify(call))
    yield { type: 'finish', reason: 'tool_calls', inputTokens, outputTokens }
    return
  }
  const text = words(request)
  for (const [index, delta] of deltas(text).entries()) {
    if (deltaMs > 0 && index > 0) await sleep(deltaMs, signal)
    if (signal.aborted) throw cancelled(signal)
    yield { type: 'text', delta }
  }
  yield { type: 'finish', reason: 'stop', inputTokens, outputTokens: Math.max(1, textTokens(text)) }
}

/** What it understands: the words, the tool, and the values of the tool's input. */
const RULES: readonly { words: RegExp; tool: string; values: (found: readonly string[]) => Record<string, string> }[] =
  [
    { words: /^run:\s*(.+)$/is, tool: 'shell', values: ([, command = '']) => ({ command }) },
    { words: /^plan:\s*(.+)$/is, tool: 'propose_plan', values: ([, plan = '']) => ({ plan }) },
    {
      words: /^write (?:the file |file )?(\S+?):\s?(.*)$/is,
      tool: 'write_file',
      values: ([, path = '', content = '']) => ({ path, content }),
    },
    { words: /^read (?:the file |file )?(\S+?)[.?!]?$/i, tool: 'read_file', values: ([, path = '']) => ({ path }) },
    { words: /^(?:search|grep) for (.+?)[.?!]?$/i, tool: 'grep', values: ([, pattern = '']) => ({ pattern }) },
    {
      words: /\b(?:list|show)\b.*?\bfiles?\b(?: (?:in|of|under) (\S+?))?[.?!]?$/i,
      tool: 'list_dir',
      values: ([, path = '.']) => ({ path }),
    },
  ]

const HELP =
  'I can really use tools: try "list files", "read README.md", "write hello.txt: hi", "search for TODO", "run: ls" or "plan: tidy up".'

type Call = Extract<TurnEvent, { type: 'tool_call' }>

/** The call that the user's words ask for, if they were not followed by its result yet and the tool may be called. */
function chooseCall({ messages, tools, toolChoice }: ProviderRequest): Call | null {
  if (toolChoice === 'none' || messages.at(-1)?.role !== 'user') return null
  const wish = readWish(lastUserText(messages).text)
  const tool = tools.find(({ name }) => name === wish?.tool)
  if (wish === null || tool === undefined) return null
  return { type: 'tool_call', id: newId(messages), name: tool.name, input: named(wish.values, tool) }
}

function readWish(text: string): { tool: string; values: Record<string, string> } | null {
  const asked = withoutNotes(text).replace(/^please,?\s+/i, '')
  for (const { words: pattern, tool, values } of RULES) {
    const found = pattern.exec(asked)
    if (found) return { tool, values: values(found) }
  }
  return null
}

/** A line in parentheses before the goal tells how it came about, and is not what is asked for. */
function withoutNotes(text: string): string {
  return text.trim().replace(/^(?:\([^()\n]*\)[ \t\r]*\n\s*)+/, '')
}

/** Names that a tool may have for a value. */
const SYNONYMS: Record<string, readonly string[]> = {
  path: ['file_path', 'file', 'directory', 'dir'],
  content: ['text', 'contents'],
  command: ['cmd', 'script'],
  pattern: ['query', 'regex', 'text'],
  plan: ['text', 'markdown'],
}

/** The values under the names that the tool's own schema has. */
function named(values: Record<string, string>, { parameters }: ToolDescription): Record<string, string> {
  const known = new Set(Object.keys(isRecord(parameters.properties) ? parameters.properties : {}))
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const names = [name, ...(SYNONYMS[name] ?? [])]
      return [names.find((candidate) => known.has(candidate)) ?? name, value]
    }),
  )
}

function newId(messages: readonly Message[]): string {
  const used = new Set(messages.flatMap(({ content }) => content.map((block) => ('id' in block ? block.id : ''))))
  let number = messages.filter(({ role }) => role === 'assistant').length + 1
  while (used.has(`demo_${number}`)) number++
  return `demo_${number}`
}

function words({ messages, tools }: ProviderRequest): string {
  const last = messages.at(-1)
  if (last?.role === 'tool') return last.content.map((block) => tellResult(block, messages)).join(' ')
  const text = withoutNotes(lastUserText(messages).text)
  const wish = readWish(text)
  if (wish !== null) return `That needs the tool ${wish.tool}, which I may not call now. ${offer(tools)}`
  return `This is the demo model, which knows only a few rules. You said: "${shorten(text, 200)}". ${HELP}`
}

function offer(tools: readonly ToolDescription[]): string {
  return tools.length === 0 ? 'No tool is offered.' : `Offered are ${tools.map(({ name }) => name).join(', ')}.`
}

function tellResult(block: ContentBlock, messages: readonly Message[]): string {
  if (block.type !== 'tool_result') return ''
  const name = toolOf(block.toolUseId, messages)
  const text = block.content.trim()
  if (block.isError) return `That did not work: ${shorten(text, 300) || 'the tool said nothing.'}`
  if (text === '') return `${name} is done and had nothing to say.`
  if (name === 'list_dir' && text === '(The folder is empty.)') return 'The folder is empty.'
  const lines = text.split('\n')
  if (name === 'grep' && text.startsWith('No line match')) return `I found nothing. ${shorten(lines.join(' '), 300)}`
  const one = lines.length === 1
  const entries = one ? 'is 1 entry' : `are ${lines.length} entries`
  const count = one ? '1 line' : `${lines.length} lines`
  if (name === 'list_dir') return `There ${entries} here: ${shorten(lines.join(', '), 300)}.`
  if (name === 'grep') return `I found ${count}: ${shorten(lines.join(' | '), 300)}`
  if (name === 'read_file') return `The file has ${count}. It reads: ${shorten(text, 300)}`
  if (name === 'propose_plan') return `About the plan I was told: ${shorten(text, 300)}`
  return `${name} is done. It says: ${shorten(text, 300)}`
}

function toolOf(id: string, messages: readonly Message[]): string {
  const calls = messages.flatMap(({ content }) => content.filter((block) => block.type === 'tool_use'))
  return calls.findLast((call) => call.id === id)?.name ?? 'The tool'
}

/** Some words at a time, two pieces at least. */
function deltas(text: string): string[] {
  const pieces = text.match(/(?:\S+\s*){1,3}/g) ?? [text]
  if (pieces.length > 1) return pieces
  const letters = [...text]
  const middle = Math.ceil(letters.length / 2)
  return [letters.slice(0, middle).join(''), letters.slice(middle).join('')].filter((piece) => piece !== '')
}

function shorten(text: string, most: number): string {
  const letters = [...text.trim()]
  return letters.length > most ? `${letters.slice(0, most).join('')}…` : letters.join('')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
