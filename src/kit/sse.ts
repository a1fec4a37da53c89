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
  /** Resolves when the reader has taken what was written, or has gone; one that takes nothing for long is closed. */
  drained(): Promise<void>
  end(): void
  /** Calls back once, when it is over for whatever reason. */
  onClose(listener: () => void): void
  readonly closed: boolean
}

export interface SseOptions {
  retryMs: number
  /** How much may wait in this process for the reader. */
  maxUnreadBytes: number
  /** How long a reader may take nothing while something waits for it. */
  maxStallMs?: number
  headers?: Record<string, string>
}

const MAX_STALL_MS = 30_000

/** Starts a stream: headers that keep proxies from buffering, the time to come back, and a comment at once. */
export function openSse(
  response: ServerResponse,
  { retryMs, maxUnreadBytes, maxStallMs = MAX_STALL_MS, headers = {} }: SseOptions,
): SseStream {
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
      // What was there before counts: a single event may be larger than the bound, and must get through.
      if (response.writableLength > maxUnreadBytes) {
        response.destroy()
        return false
      }
      response.write(text)
      return true
    },
    drained() {
      if (stream.closed || !response.writableNeedDrain) return Promise.resolve()
      return new Promise((resolve) => {
        const stalled = setTimeout(() => response.destroy(), maxStallMs).unref()
        const go = () => {
          clearTimeout(stalled)
          response.off('drain', go).off('close', go)
          resolve()
        }
        response.on('drain', go).on('close', go)
      })
    },
    end: () => void response.end(),
    onClose(listener) {
      if (response.closed) queueMicrotask(listener)
      else response.once('close', listener)
    },
    get closed() {
      return response.destroyed || response.writableEnded
    },
  }
  return stream
}
