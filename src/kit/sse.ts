import type { ServerResponse } from 'node:http'

/** One server-sent event as text. A line break in the data would end it, so each line gets its own field. */
export function sseEvent(event: { id: number; event: string; data: string }): string {
  const data = event.data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')
  return `id: ${event.id}\nevent: ${event.event}\n${data}\n`
}

/** A comment: keeps a connection alive, and no client sees it. */
export function sseComment(text: string): string {
  return `: ${text.replace(/[\r\n]/g, ' ')}\n\n`
}

/** A stream to one reader, with a bound on what it may leave unread. */
export interface SseStream {
  /** False when the reader is too slow or gone: the stream is closed then, and the reader resumes by id. */
  write(text: string): boolean
  end(): void
  /** Calls back once, when it is over for whatever reason. */
  onClose(listener: () => void): void
  readonly closed: boolean
}

export interface SseOptions {
  retryMs: number
  /** How much may wait in this process for the reader. */
  maxUnreadBytes: number
  headers?: Record<string, string>
}

/** Starts a stream: headers that keep proxies from buffering, the time to come back, and a comment at once. */
export function openSse(response: ServerResponse, { retryMs, maxUnreadBytes, headers = {} }: SseOptions): SseStream {
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    connection: 'keep-alive',
    ...headers,
  })
  response.write(`retry: ${retryMs}\n\n${sseComment('ok')}`)
  const stream: SseStream = {
    write(text) {
      if (stream.closed) return false
      response.write(text)
      if (response.writableLength <= maxUnreadBytes) return true
      response.destroy()
      return false
    },
    end: () => void response.end(),
    onClose: (listener) => void response.once('close', listener),
    get closed() {
      return response.destroyed || response.writableEnded
    },
  }
  return stream
}
