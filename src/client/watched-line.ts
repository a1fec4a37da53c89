/** One connection: it ends with the reader's signal, and when nothing comes. */
export interface Line {
  signal: AbortSignal
  watch(): void
  rest(): void
  isIdle(): boolean
  close(): void
}

/** Watches from the start on, so that the connection itself may not hang either. */
export function watchedLine(idleMs: number | null, outer: AbortSignal | undefined): Line {
  const controller = new AbortController()
  let idle = false
  let timer: NodeJS.Timeout | undefined
  const abort = () => controller.abort()
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort, { once: true })
  const line: Line = {
    signal: controller.signal,
    watch() {
      clearTimeout(timer)
      if (idleMs === null) return
      timer = setTimeout(() => {
        idle = true
        abort()
      }, idleMs)
    },
    rest: () => clearTimeout(timer),
    isIdle: () => idle,
    close() {
      clearTimeout(timer)
      outer?.removeEventListener('abort', abort)
      abort()
    },
  }
  line.watch()
  return line
}
