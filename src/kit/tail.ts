import type { Doorbell, Listener } from './doorbell.ts'

/** How a reader is told what it waited for. */
export interface Wait<T> {
  /** The first batch that is not empty, or `undefined` when `stop` was called first. */
  batch: Promise<T[] | undefined>
  /** Ends the wait; harmless when it has ended already. */
  stop(): void
}

/** Who waits for a batch. */
export interface Reader<T> {
  /** What there is now. */
  read(): T[] | Promise<T[]>
  /** Gets the first batch that is not empty, or `undefined` when the wait was stopped before. Called once. */
  onBatch(batch: T[] | undefined): void
  /** Gets what a read threw; then `onBatch` is not called. */
  onFailure(error: unknown): void
}

/**
 * One that reads, at once and after each ring, until there is a batch; that may be before `wait` returns. Listening starts
 * before the first read, so nothing that is appended in between is missed. Holds no timer and no signal, and is a class to
 * be extended: thousands of these may be parked at once, and closures would be made for each.
 */
export abstract class BatchWaiter<T> implements Reader<T>, Listener {
  /** Null when it does not wait, or no longer. */
  #doorbell: Doorbell | null = null
  #key = ''
  #reading = false
  #rungMeanwhile = false

  abstract read(): T[] | Promise<T[]>
  abstract onBatch(batch: T[] | undefined): void
  abstract onFailure(error: unknown): void

  wait(doorbell: Doorbell, key: string): void {
    this.#doorbell = doorbell
    this.#key = key
    doorbell.add(key, this)
    this.onRing()
  }

  stop(): void {
    if (this.#end()) this.onBatch(undefined)
  }

  onRing(): void {
    if (this.#doorbell === null) return
    this.#rungMeanwhile = true
    if (!this.#reading) this.#readOn()
  }

  /** Reads for as long as it rings meanwhile. */
  #readOn(): void {
    this.#reading = true
    while (this.#rungMeanwhile && this.#doorbell !== null) {
      this.#rungMeanwhile = false
      const found = this.#tryToRead()
      if (found instanceof Promise) {
        found.then(
          (batch) => {
            this.#take(batch)
            this.#readOn()
          },
          (error: unknown) => this.#fail(error),
        )
        return
      }
      this.#take(found)
    }
    this.#reading = false
  }

  #tryToRead(): T[] | Promise<T[]> {
    try {
      return this.read()
    } catch (error) {
      this.#fail(error)
      return []
    }
  }

  #take(found: T[]): void {
    if (found.length > 0 && this.#end()) this.onBatch(found)
  }

  #fail(error: unknown): void {
    if (this.#end()) this.onFailure(error)
  }

  /** False when it had ended before. */
  #end(): boolean {
    if (this.#doorbell === null) return false
    this.#doorbell.remove(this.#key, this)
    this.#doorbell = null
    return true
  }
}

/** Waits for the first batch that is not empty. */
export function nextBatch<T>(doorbell: Doorbell, key: string, read: () => T[] | Promise<T[]>): Wait<T> {
  const waiter = new PlainWaiter<T>(read)
  const batch = new Promise<T[] | undefined>((onBatch, onFailure) => {
    waiter.told = { onBatch, onFailure }
    waiter.wait(doorbell, key)
  })
  return { batch, stop: () => waiter.stop() }
}

class PlainWaiter<T> extends BatchWaiter<T> {
  readonly #read: () => T[] | Promise<T[]>
  told: Pick<Reader<T>, 'onBatch' | 'onFailure'> | null = null

  constructor(read: () => T[] | Promise<T[]>) {
    super()
    this.#read = read
  }

  read(): T[] | Promise<T[]> {
    return this.#read()
  }

  onBatch(batch: T[] | undefined): void {
    this.told?.onBatch(batch)
  }

  onFailure(error: unknown): void {
    this.told?.onFailure(error)
  }
}

/** Every batch after `afterSeq`, as it comes, until `signal` aborts. */
export async function* tail<T extends { seq: number }>(
  doorbell: Doorbell,
  key: string,
  read: (afterSeq: number) => T[] | Promise<T[]>,
  { afterSeq, signal }: { afterSeq: number; signal: AbortSignal },
): AsyncGenerator<T[], void> {
  let after = afterSeq
  while (!signal.aborted) {
    const wait = nextBatch(doorbell, key, () => read(after))
    const stop = () => wait.stop()
    signal.addEventListener('abort', stop, { once: true })
    // The first read has begun; a signal that it aborted is not told again.
    if (signal.aborted) wait.stop()
    try {
      const batch = await wait.batch
      if (batch === undefined) return
      yield batch
      after = batch.at(-1)?.seq ?? after
    } finally {
      signal.removeEventListener('abort', stop)
      wait.stop()
    }
  }
}
