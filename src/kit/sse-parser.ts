/** One event as it came; `id` is empty when the event named none. */
export interface SseMessage {
  id: string
  event: string
  data: string
}

export interface SseParserOptions {
  onEvent: (message: SseMessage) => void
  /** The server says how long to wait before coming back. */
  onRetry?: (ms: number) => void
}

/**
 * Reads server-sent events from text that comes in any pieces. An event counts once its blank line is there: what a cut
 * left unfinished is never told.
 */
export function sseParser({ onEvent, onRetry = () => {} }: SseParserOptions): { feed(text: string): void } {
  let rest = ''
  let isAfterReturn = false
  let id = ''
  let event = ''
  let data: string[] = []

  return {
    feed(piece) {
      // The second half of a line break whose first half ended the piece before.
      const text = isAfterReturn && piece.startsWith('\n') ? piece.slice(1) : piece
      if (piece !== '') isAfterReturn = piece.endsWith('\r')
      if (!/[\r\n]/.test(text)) {
        rest += text
        return
      }
      const lines = (rest + text).split(/\r\n|\r|\n/)
      rest = lines.pop() ?? ''
      for (const line of lines) take(line)
    },
  }

  function take(line: string): void {
    if (line === '') tell()
    const [, name = '', value = ''] = /^([^:]*)(?:: ?)?(.*)$/s.exec(line) ?? []
    if (name === 'data') data.push(value)
    else if (name === 'event') event = value
    else if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'retry' && /^\d+$/.test(value)) onRetry(Number(value))
  }

  function tell(): void {
    if (data.length > 0) onEvent({ id, event: event || 'message', data: data.join('\n') })
    id = ''
    event = ''
    data = []
  }
}
