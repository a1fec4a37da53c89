import { AppError } from '../../kit/errors.ts'
import type { ObjectLog } from '../../kit/s3/object-log.ts'
import type { Outcome } from '../../kit/sqlite/commit-group.ts'
import type { Call } from './operations.ts'

/** Writes before it does: a group of operations is a record of the log, then it is done on the copy, then it is told. */
export interface LogWriter {
  /** One at a time. Fails with `store_failed` when it is not known to be done. */
  commit(calls: Call[]): Promise<Outcome[]>
  /** Looks whether another server has taken over, as one that slept too long finds out. */
  look(): Promise<void>
  /** Why nothing will ever be written again; null while it can be. */
  lost(): string | null
}

export interface LogWriterOptions {
  log: ObjectLog<Call>
  writer: string
  /** The record that this writer began with. */
  startSeq: number
  /** Does what a record says on the copy, all of it or nothing. */
  apply(seq: number, calls: Call[]): Promise<Outcome[]>
  /** A record of `bytes` is in the log and in the copy. */
  onApplied(seq: number, bytes: number): void
  /** These operations were told to have failed, and were done all the same. */
  onLate(calls: Call[]): void
  onLost(reason: string): void
}

const LOST = 'Another agent server has taken over the bucket, so this one has stopped writing and ends.'

export function logWriter(options: LogWriterOptions): LogWriter {
  const { log, writer, apply } = options
  let appliedSeq = options.startSeq
  /** The next record: it is in the log, and not in the copy. */
  let unapplied: Call[] | null = null
  let lost: string | null = null

  return {
    async commit(given) {
      if (lost !== null) throw new AppError('store_failed', lost)
      if (unapplied !== null) return catchUp(unapplied)
      const text = JSON.stringify(given)
      // What a later start will read, and do.
      const calls: Call[] = JSON.parse(text)
      const other = await log.append(appliedSeq + 1, { writer, starts: false, calls })
      if (other?.writer === writer) return catchUp(other.calls)
      if (other !== null) throw lose()
      unapplied = calls
      const outcomes = await apply(appliedSeq + 1, calls)
      unapplied = null
      appliedSeq += 1
      options.onApplied(appliedSeq, text.length)
      return outcomes
    },
    async look() {
      const next = await log.read(appliedSeq + 1)
      if (next !== null && next.writer !== writer) lose()
    },
    lost: () => lost,
  }

  /**
   * An earlier group, whose callers were told that it failed, is in the log after all. What was given now was decided
   * without knowing that (it may be the same once more), so it is not done: whoever gave it looks again.
   */
  async function catchUp(calls: Call[]): Promise<never> {
    unapplied = calls
    await apply(appliedSeq + 1, calls)
    unapplied = null
    appliedSeq += 1
    options.onApplied(appliedSeq, 0)
    options.onLate(calls)
    throw new AppError('store_failed', 'A write that seemed to have failed has come through just now; try again.', {
      retryAfterMs: 1_000,
    })
  }

  function lose(): AppError {
    if (lost === null) options.onLost(LOST)
    lost = LOST
    return new AppError('store_failed', LOST)
  }
}
