import type { AgentClient, AgentEvent } from '../client/agent-client.ts'
import type { Turn } from './state.ts'
import { planText } from './texts.ts'

/** How listening to a run ends. */
export type RunEnd =
  | { type: 'plan'; planId: string; after: number }
  | { type: 'done'; reason: string; error: string | null }

export interface FollowOptions {
  agent: Pick<AgentClient, 'events'>
  sessionId: string
  turn: Turn
  signal: AbortSignal
  /** Says something to the user, and notes that everything up to the event `after` is dealt with. */
  tell: (name: string, text: string, after?: number) => Promise<void>
  /** Shows that the agent works. */
  show: () => void
  showTools: boolean
}

const TOOL_LINE_CHARS = 120

/** Tells the user what a run says, as it says it, up to its end or to a plan. Rejects when `signal` aborts. */
export async function followRun(options: FollowOptions): Promise<RunEnd> {
  const { agent, sessionId, turn, signal, tell, show, showTools } = options
  let error: string | null = null
  let tools: string[] = []
  for await (const event of agent.events(sessionId, { after: turn.after, signal })) {
    if (event.data.run_id !== turn.run) continue
    const name = `e${event.id}`
    switch (event.event) {
      case 'message': {
        const text = textOf(event)
        if (text.trim() !== '') await tell(name, text, event.id)
        break
      }
      case 'tool_call':
        show()
        tools.push(toolText(event))
        break
      case 'tool_result':
        // The calls of one step come one after the other, then their results.
        if (showTools && tools.length > 0) await tell(name, `· ${tools.join(', ')}`.slice(0, TOOL_LINE_CHARS), event.id)
        tools = []
        show()
        break
      case 'plan_proposed':
        await tell(name, planText(event.data.plan))
        return { type: 'plan', planId: event.data.plan_id, after: event.id }
      case 'error':
        error = event.data.message
        break
      case 'done':
        return { type: 'done', reason: event.data.finish_reason, error }
      default:
        show()
    }
  }
  signal.throwIfAborted()
  throw new Error('the events of a run ended before it did')
}

type EventNamed<N extends AgentEvent['event']> = Extract<AgentEvent, { event: N }>

function textOf({ data }: EventNamed<'message'>): string {
  return data.content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('')
}

/** `read_file README.md`: the tool and the first thing it was given. */
function toolText({ data }: EventNamed<'tool_call'>): string {
  const given = typeof data.arguments === 'object' && data.arguments !== null ? Object.values(data.arguments) : []
  const first = given.find((value) => typeof value === 'string')
  return first === undefined ? data.name : `${data.name} ${first.split('\n', 1)[0]?.slice(0, 60)}`
}
