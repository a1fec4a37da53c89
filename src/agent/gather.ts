import type { TurnEvent } from './provider/port.ts'

/** Turn events with neighbouring text deltas put together, so that a fast model does not cost an event per word. */
export async function* gatherText(events: AsyncIterable<TurnEvent>, windowMs: number): AsyncGenerator<TurnEvent, void> {
  const iterator = events[Symbol.asyncIterator]()
  let text = ''
  let toldAt = Number.NEGATIVE_INFINITY
  let next: Promise<IteratorResult<TurnEvent>> | undefined
  try {
    for (;;) {
      if (next === undefined) {
        next = iterator.next()
        // It may fail while nobody waits for it: during a `yield`, or when the reader leaves. Whoever awaits it still sees it.
        next.catch(() => undefined)
      }
      // The first delta goes out at once; later ones wait for company, but never longer than the window.
      const waitMs = toldAt + windowMs - performance.now()
      const result = text === '' || waitMs > 0 ? await within(next, text === '' ? null : waitMs) : null
      if (result === null) {
        yield { type: 'text', delta: text }
        text = ''
        toldAt = performance.now()
        continue
      }
      next = undefined
      if (result.done) break
      if (result.value.type === 'text') {
        text += result.value.delta
        continue
      }
      if (text !== '') yield { type: 'text', delta: text }
      text = ''
      yield result.value
    }
    if (text !== '') yield { type: 'text', delta: text }
  } catch (error) {
    // What the model said before it failed is told first.
    if (text !== '') yield { type: 'text', delta: text }
    throw error
  } finally {
    await iterator.return?.()
  }
}

/** The result, or null when it takes longer than `ms`. */
async function within<T>(promise: Promise<T>, ms: number | null): Promise<T | null> {
  if (ms === null) return promise
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
