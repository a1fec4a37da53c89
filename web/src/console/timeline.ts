import type { Item, RunEvent } from './types.ts'

/** What a person sees of a session: its events, folded. Live and replayed ones alike. */
export interface Timeline {
  add(event: RunEvent): void
  /** A new list whenever something was added; what has not changed is the same object. */
  readonly items: readonly Item[]
}

/** An empty timeline. */
export function createTimeline(): Timeline {
  let items: Item[] = []
  const places = new Map<string, number>()

  return {
    add({ name, data, id }) {
      if (name === 'done') closeRun(text(data.run_id))
      if (name === 'plan_decided') closeProposal(text(data.run_id))
      const item = itemOf(name, data, id)
      if (item !== null) put(item)
    },
    get items() {
      return items
    },
  }

  function itemOf(name: string, data: Record<string, unknown>, id: number): Item | null {
    const run = text(data.run_id)
    const key = keyOf(name, data, id)
    const before = at(key)
    switch (name) {
      case 'run_started':
        return { kind: 'goal', key, text: text(data.goal) }
      case 'partial_message':
        return { kind: 'text', key, text: (before?.kind === 'text' ? before.text : '') + text(data.text), live: true }
      case 'message':
        return { kind: 'text', key, text: blocksText(data.content), live: false }
      case 'tool_call':
        return { kind: 'tool', key, name: text(data.name), input: data.arguments, output: null, success: null }
      case 'tool_progress':
      case 'tool_result': {
        const input = before?.kind === 'tool' ? before.input : null
        const success = name === 'tool_result' ? data.success === true : null
        return { kind: 'tool', key, name: text(data.name), input, output: text(data.output), success }
      }
      case 'plan_proposed':
        return { kind: 'plan', key, plan: text(data.plan), decision: null }
      case 'plan_decided':
        return before?.kind === 'plan'
          ? { ...before, decision: data.decision === 'approve' ? 'approve' : 'reject' }
          : null
      case 'error':
        return { kind: 'error', key, text: text(data.message) }
      case 'done':
        return { kind: 'done', key: `${run}:done`, ...numbersOf(data) }
      default:
        return null
    }
  }

  /** Nothing of a run that is over is still open. */
  function closeRun(run: string): void {
    for (const item of items) {
      if (item.kind === 'plan' && item.decision === null) put({ ...item, decision: 'over' })
      if (!item.key.startsWith(`${run}:`)) continue
      if (item.kind === 'text' && item.live) put({ ...item, live: false })
      if (item.kind === 'tool' && item.success === null)
        put({ ...item, success: false, output: item.output ?? 'It did not come to an end.' })
    }
  }

  /** A plan that was answered is what the call of the tool was for, whatever the answer. */
  function closeProposal(run: string): void {
    for (const item of items) {
      const isOpen = item.kind === 'tool' && item.name === 'propose_plan' && item.success === null
      if (isOpen && item.key.startsWith(`${run}:`)) put({ ...item, success: true, output: 'It was answered.' })
    }
  }

  function at(key: string): Item | undefined {
    const place = places.get(key)
    return place === undefined ? undefined : items[place]
  }

  function put(item: Item): void {
    const place = places.get(item.key)
    if (place === undefined) {
      places.set(item.key, items.length)
      items = [...items, item]
    } else {
      items = items.with(place, item)
    }
  }
}

/** What an event speaks of; events of the same thing have the same key. */
function keyOf(name: string, data: Record<string, unknown>, id: number): string {
  const run = text(data.run_id)
  if (name.startsWith('plan_')) return `plan:${text(data.plan_id)}`
  if (name.startsWith('tool_')) return `${run}:tool:${text(data.call_id)}`
  if (name.endsWith('message')) return `${run}:text:${text(data.step)}`
  return `${run}:${name}:${id}`
}

function numbersOf(data: Record<string, unknown>): { reason: string; steps: number; tokens: number } {
  const usage = new Map(typeof data.usage === 'object' && data.usage !== null ? Object.entries(data.usage) : [])
  const tokens = Number(usage.get('total_tokens') ?? 0)
  return { reason: text(data.finish_reason), steps: Number(data.total_steps ?? 0), tokens }
}

function text(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : String(value)
}

function blocksText(content: unknown): string {
  if (!Array.isArray(content)) return ''
  return content.map((block: unknown) => (isTextBlock(block) ? block.text : '')).join('')
}

function isTextBlock(block: unknown): block is { text: string } {
  return typeof block === 'object' && block !== null && 'text' in block && typeof block.text === 'string'
}
