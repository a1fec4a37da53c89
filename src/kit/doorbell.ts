/**
 * Wakes whoever waits for news under a key. A ring is a hint, never the news itself: losing one costs time, not data.
 */
export interface Doorbell {
  /** Tells the listeners of `key` that there may be something to read. */
  ring(key: string): void
  /** Calls `onRing` at every ring of `key` until the returned function is called. */
  listen(key: string, onRing: () => void): () => void
  /** The same for one who is there anyway, as thousands may be: nothing is made for each. */
  add(key: string, listener: Listener): void
  /** Ends what `add` began; harmless when it has ended already. */
  remove(key: string, listener: Listener): void
}

/** Who hears rings. */
export interface Listener {
  onRing(): void
}

/** A doorbell for one process. Rings are heard at once, by the listeners there were when it rang. */
export function memoryDoorbell(): Doorbell {
  // One listener is by far the common case (a client has one live poll), so no Set is made for it.
  const listeners = new Map<string, Listener | Set<Listener>>()
  const add: Doorbell['add'] = (key, listener) => {
    const present = listeners.get(key)
    if (present === undefined) listeners.set(key, listener)
    else if (present instanceof Set) present.add(listener)
    else listeners.set(key, new Set([present, listener]))
  }
  const remove: Doorbell['remove'] = (key, listener) => {
    const present = listeners.get(key)
    if (present === listener) listeners.delete(key)
    else if (present instanceof Set && present.delete(listener) && present.size === 0) listeners.delete(key)
  }

  return {
    ring(key) {
      const heard = listeners.get(key)
      if (heard === undefined) return
      if (!(heard instanceof Set)) return heard.onRing()
      for (const listener of [...heard]) if (heard.has(listener)) listener.onRing()
    },
    listen: (key, onRing) => listenBy({ add, remove }, key, onRing),
    add,
    remove,
  }
}

/** `listen` of a doorbell, by its `add` and `remove`. One function that listens twice is two listeners. */
export function listenBy(doorbell: Pick<Doorbell, 'add' | 'remove'>, key: string, onRing: () => void): () => void {
  const listener = { onRing }
  doorbell.add(key, listener)
  return () => doorbell.remove(key, listener)
}
