import { createInterface } from 'node:readline'

/** Lines that a person types, or that come from a pipe. */
export interface ChatInput {
  /** The next line, null when there are no more. */
  next(prompt: string): Promise<string | null>
  /** Whether a person sits there. */
  readonly interactive: boolean
  /** Called with each Ctrl-C. */
  onInterrupt(listener: () => void): void
  close(): void
}

/** What comes on standard input; lines that come before they are asked for wait. */
export function openChatInput(): ChatInput {
  const interactive = process.stdin.isTTY === true && process.stdout.isTTY === true
  const lines = createInterface({
    input: process.stdin,
    ...(interactive ? { output: process.stdout, terminal: true } : { terminal: false }),
  })
  const ready: string[] = []
  let ended = false
  let waiting: ((line: string | null) => void) | null = null
  let interrupted = () => {}
  const give = (line: string | null) => {
    const taker = waiting
    waiting = null
    if (taker !== null) taker(line)
    else if (line !== null) ready.push(line)
  }
  lines.on('line', give)
  lines.on('close', () => {
    ended = true
    give(null)
  })
  // A terminal in raw mode gives Ctrl-C to the line editor, everything else to the process.
  lines.on('SIGINT', () => interrupted())
  process.on('SIGINT', () => interrupted())
  return {
    interactive,
    next(prompt) {
      const line = ready.shift()
      if (line !== undefined) return Promise.resolve(line)
      if (ended) return Promise.resolve(null)
      if (interactive) {
        lines.setPrompt(prompt)
        lines.prompt()
      }
      return new Promise((resolve) => {
        waiting = resolve
      })
    },
    onInterrupt(listener) {
      interrupted = listener
    },
    close: () => lines.close(),
  }
}
