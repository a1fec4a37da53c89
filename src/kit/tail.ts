import type { Doorbell } from './doorbell.ts'

/** How a reader is told what it waited for. */
export interface Wait<T> {
  /** The first batch that is not empty, or `undefined` when `stop` was called first. */
  batch: Promise<T[] | undefined>
  /** Ends the wait; harmless when it has ended already. */
  stop(): void
}

/** Who waits for a batch. What waits can be this itself, so that thousands of waits cost little. */
export interface Reader<T> {
  /** What there is now. */
  read(): T[] | Promise<T[]>
  /** Gets the first batch that is not empty, or `undefined` when the wait was stopped before. Called once. */
  onBatch(batch: T[] | undefined): void
  /** Gets what a read threw; then `onBatch` is not called. */
  onFailure(error: unknown): void
}

/**
 * Has the reader read, now and after each ring, until there is a batch; that may be before this returns. Listening starts
 * before the first read, so nothing that is appended in between is missed. Holds no timer and no signal: thousands of
 * these may be parked at once.
 */
export function awaitBatch<T>(doorbell: Doorbell, key: string, reader: Reader<T>): Pick<Wait<T>, 'stop'> {
  return new Waiting(doorbell, key, reader)
}

/** The same with a promise. */
export function nextBatch<T>(doorbell: Doorbell, key: string, read: () => T[] | Promise<T[]>): Wait<T> {
  let waiting: Pick<Wait<T>, 'stop'> | undefined
  const batch = new Promise<T[] | undefined>((onBatch, onFailure) => {
    waiting = awaitBatch(doorbell, key, { read, onBatch, onFailure })
  })
  return { batch, stop: () => waiting?.stop() }
}

/** A class, since closures would be made for each. */
class Waiting<T> {
  readonly #reader: Reader<T>
  readonly #unlisten: () => void
  #reading = false
  #rungMeanwhile = false
  #ended = false

  constructor(doorbell: Doorbell, key: string, reader: Reader<T>) {
    this.#reader = reader
    this.#unlisten = doorbell.listen(key, () => this.#look())
    this.#look()
  }

  stop(): void {
    if (this.#end()) this.#reader.onBatch(undefined)
  }

  #look(): void {
    if (this.#ended) return
    this.#rungMeanwhile = true
    if (!this.#reading) this.#readOn()
  }

  /** Reads for as long as it rings meanwhile. */
  #readOn(): void {
    this.#reading = true
    while (this.#rungMeanwhile && !this.#ended) {
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
      return this.#reader.read()
    } catch (error) {
      this.#fail(error)
      return []
    }
  }

  #take(found: T[]): void {
    if (found.length > 0 && this.#end()) this.#reader.onBatch(found)
  }

  #fail(error: unknown): void {
    if (this.#end()) this.#reader.onFailure(error)
  }

  /** False when it had ended before. */
  #end(): boolean {
    if (this.#ended) return false
    this.#ended = true
    this.#unlisten()
    return true
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
