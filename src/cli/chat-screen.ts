import pc from 'picocolors'
import type { AgentEvent } from '../client/agent-client.ts'

/** Shows the events of a run as they come. */
export interface ChatScreen {
  show(event: AgentEvent): void
  /** A remark of the program's own, on a line of its own. */
  note(text: string): void
}

export interface ChatScreenOptions {
  write: (text: string) => void
  /** Each event as a line of JSON, and nothing else. */
  json: boolean
}

const LINE_CHARS = 100

export function chatScreen({ write, json }: ChatScreenOptions): ChatScreen {
  let atStart = true
  let streamed = ''
  const put = (text: string) => {
    if (text === '') return
    write(text)
    atStart = text.endsWith('\n')
  }
  const line = (text: string) => {
    if (!atStart) put('\n')
    put(`${text}\n`)
  }

  return {
    note: (text) => (json ? undefined : line(pc.dim(text))),
    show(event) {
      if (json) return write(`${JSON.stringify(event)}\n`)
      switch (event.event) {
        case 'partial_message':
          put(event.data.text)
          streamed += event.data.text
          return
        case 'message': {
          const text = event.data.content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('')
          // What was streamed already stands there.
          put(text.startsWith(streamed) ? text.slice(streamed.length) : text)
          streamed = ''
          if (!atStart) put('\n')
          return
        }
        case 'tool_call':
          return line(pc.cyan(`· ${event.data.name} `) + pc.dim(argumentsText(event.data.arguments)))
        case 'tool_result':
          return line(`  ${event.data.success ? pc.green('✓') : pc.red('✗')} ${pc.dim(firstLine(event.data.output))}`)
        case 'plan_proposed':
          return line(`${pc.bold('A plan:')}\n${event.data.plan}`)
        case 'error':
          return line(pc.red(event.data.message))
        case 'done':
          // A run that was cancelled has no message for what it streamed.
          streamed = ''
          if (event.data.finish_reason !== 'NoMoreToolCalls') line(pc.yellow(`(${event.data.finish_reason})`))
          return
        default:
      }
    },
  }
}

function argumentsText(given: unknown): string {
  const values = typeof given === 'object' && given !== null ? Object.values(given) : []
  return firstLine(values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(' '))
}

/** One line, without control characters: tools put out whatever they like. */
function firstLine(text: string): string {
  const [line = ''] = text.trim().split('\n', 1)
  const letters = [...line.replace(/\p{C}+/gu, ' ')]
  return letters.length > LINE_CHARS ? `${letters.slice(0, LINE_CHARS).join('')}…` : letters.join('')
}
