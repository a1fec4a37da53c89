import { type AppError, errorText } from '../errors.ts'
import type { AnyCall, Outcome } from './commit-group.ts'

/** Commits whose last failure is remembered, until one works again. */
export interface WatchedCommits<Call extends AnyCall> {
  commit(calls: Call[]): Promise<Outcome[]>
  /** Why the last one could not be stored; null when it could. */
  trouble(): string | null
  stop(): void
}

export interface WatchOptions<Call extends AnyCall> {
  commit(calls: Call[]): Promise<Outcome[]>
  /** Makes a write that changes nothing, by way of `commit` above. */
  tryWrite(): Promise<unknown>
  tryEveryMs?: number
}

const TRY_EVERY_MS = 1_000

/** While commits fail a write is tried now and then: who asks whether all is well may be the reason that nobody writes. */
export function watchCommits<Call extends AnyCall>({
  commit,
  tryWrite,
  tryEveryMs = TRY_EVERY_MS,
}: WatchOptions<Call>): WatchedCommits<Call> {
  let trouble: string | null = null
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  return {
    async commit(calls) {
      try {
        const outcomes = await commit(calls)
        note(outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error])).find(isStoreFailure)?.message ?? null)
        return outcomes
      } catch (error) {
        note(errorText(error))
        throw error
      }
    },
    trouble: () => trouble,
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }

  function note(failure: string | null): void {
    trouble = failure
    clearTimeout(timer)
    if (failure === null || stopped) return
    timer = setTimeout(() => void tryWrite().catch(() => undefined), tryEveryMs).unref()
  }
}

/** What an operation refuses by its own rules is no trouble of the store. */
function isStoreFailure({ code }: Pick<AppError, 'code'>): boolean {
  return code === 'store_failed'
}
