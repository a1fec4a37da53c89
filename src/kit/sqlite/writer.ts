import { Worker } from 'node:worker_threads'
import { AppError } from '../errors.ts'
import { type AnyCall, type Outcome, type PackedError, unpackError } from './commit-group.ts'

/** What goes to the writer thread: a group to commit, word that another has written, or a wish. */
export type ToWriter<Call extends AnyCall> = Call[] | 'forget' | 'tidy' | 'close'

/** What comes back, in the order of what went: first whether the database is open, then one answer per group. */
export type FromWriter = { ok: true; outcomes: Outcome[] } | { ok: false; error: PackedError }

/** The thread that writes: an fsync stops nothing but it. */
export interface WriterThread<Call extends AnyCall> {
  /** Commits a group in one transaction. One at a time. Rejects with `store_failed` when nothing was written. */
  commit(calls: Call[]): Promise<Outcome[]>
  /** Another connection has written: what the thread has in memory of the tables may be wrong. */
  forget(): void
  /** Writes the log back into the database, while others go on. */
  tidy(): void
  /** Closes the database and ends the thread. */
  close(): Promise<void>
}

const HALT_WITHIN_MS = 1_000
/** Of every thread that is there. */
const halts = new Set<() => Promise<void>>()

/**
 * Has all threads come to rest, before a process ends at once: Node ends a thread wherever it is, and one that is inside
 * SQLite then takes the process down with an abort. A disk that hangs is not waited for.
 */
export async function haltWriters(): Promise<void> {
  const patience = new Promise((resolve) => setTimeout(resolve, HALT_WITHIN_MS))
  await Promise.race([Promise.all([...halts].map((halt) => halt())), patience])
}

/** Starts the thread, a module that calls `serveWriter`, and has it open, or make, the database. */
export async function startWriter<Call extends AnyCall>(path: string, thread: URL): Promise<WriterThread<Call>> {
  const worker = startThread(thread, { path })
  let death: AppError | undefined
  let isHalted = false
  let awaited: { resolve(outcomes: Outcome[]): void; reject(error: AppError): void } | undefined
  let last: Promise<unknown> = Promise.resolve()

  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  worker.on('message', (answer: FromWriter) => {
    const waiting = awaited
    awaited = undefined
    if (answer.ok) waiting?.resolve(answer.outcomes)
    else waiting?.reject(unpackError(answer.error))
  })
  worker.on('error', (error) => die(error))
  worker.on('exit', () => die(undefined))

  await answered()
  halts.add(halt)
  return {
    async commit(calls) {
      if (death !== undefined) throw death
      if (isHalted) throw new AppError('store_failed', 'The server is ending; start it again.')
      const answer = answered()
      send(calls)
      return answer
    },
    forget() {
      if (death === undefined) send('forget')
    },
    tidy() {
      if (death === undefined) send('tidy')
    },
    async close() {
      if (death === undefined) send('close')
      await ended
    },
  }

  /** An empty group is the last: what it is answered after is all done. */
  async function halt(): Promise<void> {
    isHalted = true
    await last
    const answer = answered()
    send([])
    await answer.catch(() => undefined)
  }

  function send(message: ToWriter<Call>): void {
    worker.postMessage(message)
  }

  function answered(): Promise<Outcome[]> {
    const answer = new Promise<Outcome[]>((resolve, reject) => {
      awaited = { resolve, reject }
    })
    last = answer.catch(() => undefined)
    return answer
  }

  function die(cause: unknown): void {
    halts.delete(halt)
    death ??= new AppError('store_failed', 'The writer thread of the store has ended; restart the server.', { cause })
    awaited?.reject(death)
    awaited = undefined
  }
}

/** A thread that runs a module of ours, from source or built. */
export function startThread(thread: URL, workerData: unknown): Worker {
  if (!thread.pathname.endsWith('.ts')) return new Worker(thread, { workerData })
  // Run from source: a worker of Node 20 cannot load TypeScript until tsx is registered in it.
  const script = `import('tsx/esm/api').then(({ register }) => { register(); return import(${JSON.stringify(thread)}) })`
  return new Worker(script, { eval: true, workerData })
}
