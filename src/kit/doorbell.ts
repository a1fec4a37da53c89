/**
 * Wakes whoever waits for news under a key. A ring is a hint, never the news itself: losing one costs time, not data.
 */
export interface Doorbell {
  /** Tells the listeners of `key` that there may be something to read. */
  ring(key: string): void
  /** Calls `onRing` at every ring of `key` until the returned function is called. */
  listen(key: string, onRing: () => void): () => void
}

/** A doorbell for one process. Rings are heard at once, by the listeners there were when it rang. */
export function memoryDoorbell(): Doorbell {
  // One listener is by far the common case (a client has one live poll), so no Set is made for it.
  const listeners = new Map<string, (() => void) | Set<() => void>>()

  return {
    ring(key) {
      const heard = listeners.get(key)
      if (heard === undefined) return
      if (typeof heard === 'function') return heard()
      for (const onRing of [...heard]) if (heard.has(onRing)) onRing()
    },
    listen(key, onRing) {
      const present = listeners.get(key)
      // Wrapped where somebody listens already, so that one function listening twice is two listeners.
      const own = present === undefined ? onRing : () => onRing()
      let isListening = true
      if (present === undefined) listeners.set(key, own)
      else if (typeof present === 'function') listeners.set(key, new Set([present, own]))
      else present.add(own)
      return () => {
        if (!isListening) return
        isListening = false
        const now = listeners.get(key)
        if (now === own) listeners.delete(key)
        else if (now instanceof Set && now.delete(own) && now.size === 0) listeners.delete(key)
      }
    },
  }
}
