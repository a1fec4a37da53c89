import { AppError } from '../errors.ts'
import { type AnyCall, type Outcome, unpackError } from './commit-group.ts'

/** Writes in groups: whatever gathers while one group is being committed goes into the next commit. */
export interface GroupWriter<Call extends AnyCall, Outputs extends Record<Call['name'], unknown>> {
  /**
   * Resolves when the operation is durable. What `check` throws when its group is made, after all groups before have been
   * told, it fails with instead.
   */
  run<One extends Call>(call: One, check?: () => void): Promise<Outputs[One['name']]>
  /** Makes a lazy change, by `change`; false, and nothing is changed, when no more is taken. */
  later(change: () => void): boolean
  /** Resolves when everything lazy that was given before, or the part of it that is meant, is durable. */
  flush(part?: LazyPart<Call>): Promise<void>
  /** Takes no more, and resolves when all that was given is durable. */
  drain(): Promise<void>
}

/** Changes that may wait a moment for a write to go with. */
export interface LazyCalls<Call extends AnyCall> {
  /** All of them as operations; none are left. */
  take(): Call[]
  /** What was taken and could not be written goes under what has come since. */
  putBack(calls: Call[]): void
}

/** Some of the lazy changes. */
export interface LazyPart<Call extends AnyCall> {
  isWaiting(): boolean
  has(call: Call): boolean
}

export interface GroupWriterOptions<Call extends AnyCall> {
  /** Commits a group in one transaction, one outcome per call; rejects when the transaction failed. */
  commit(calls: Call[]): Promise<Outcome[]>
  /** What has gathered by `later`; left out where nothing is lazy. */
  lazy?: LazyCalls<Call>
  /** How long a lazy change may wait for a write to go with. */
  lazyMs?: number
}

export function groupWriter<Call extends AnyCall, Outputs extends Record<Call['name'], unknown>>({
  commit,
  lazy = { take: () => [], putBack: () => {} },
  lazyMs = 0,
}: GroupWriterOptions<Call>): GroupWriter<Call, Outputs> {
  let waiting: Pending<Call>[] = []
  let flushes: Settler[] = []
  let underway: Group<Call> | undefined
  let due = false
  let closed = false
  let timer: NodeJS.Timeout | undefined

  return {
    run(call, check) {
      if (closed) return Promise.reject(new AppError('store_failed', 'The store is closed; start the server again.'))
      return new Promise((resolve, reject) => {
        waiting.push({ call, check, resolve, reject })
        post()
      })
    },
    later(change) {
      if (closed) return false
      change()
      wakeLater()
      return true
    },
    flush,
    async drain() {
      closed = true
      await flush()
    },
  }

  function flush(part?: LazyPart<Call>): Promise<void> {
    if (part === undefined || part.isWaiting()) {
      return new Promise((resolve, reject) => {
        flushes.push({ resolve, reject })
        post()
      })
    }
    const carrier = underway
    if (carrier === undefined || !carrier.lazies.some((call) => part.has(call))) return Promise.resolve()
    return new Promise((resolve, reject) => carrier.flushes.push({ resolve, reject }))
  }

  function wakeLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined
      due = true
      post()
    }, lazyMs).unref()
  }

  /** Commits what has gathered, unless a commit is under way: that one calls again when it ends. */
  function post(): void {
    if (underway !== undefined) return
    clearTimeout(timer)
    timer = undefined
    due = false
    const group: Group<Call> = { lazies: lazy.take(), pending: waiting.filter(passes), flushes }
    waiting = []
    flushes = []
    if (group.lazies.length === 0 && group.pending.length === 0) {
      for (const { resolve } of group.flushes) resolve()
      return
    }
    underway = group
    commit([...group.lazies, ...group.pending.map(({ call }) => call)])
      .then(
        (outcomes) => tell(group, outcomes),
        (error: unknown) => {
          // Lazy changes go with the next write; a timer of their own would hammer a full disk.
          lazy.putBack(group.lazies)
          for (const { reject } of [...group.pending, ...group.flushes]) reject(error)
        },
      )
      .finally(() => {
        underway = undefined
        if (due || waiting.length > 0 || flushes.length > 0) post()
      })
  }
}

interface Group<Call> {
  lazies: Call[]
  pending: Pending<Call>[]
  flushes: Settler[]
}

function tell({ lazies, pending, flushes }: Group<AnyCall>, outcomes: Outcome[]): void {
  const failed = outcomes.slice(0, lazies.length).find((outcome) => !outcome.ok)
  for (const flush of flushes) settle(flush, failed ?? { ok: true, output: undefined })
  for (const [index, one] of pending.entries()) settle(one, outcomes[lazies.length + index])
}

// Methods, so that the promise of one operation may stand among those of others.
interface Settler {
  resolve(output?: unknown): void
  reject(error: unknown): void
}

interface Pending<Call> extends Settler {
  call: Call
  check: (() => void) | undefined
}

function passes({ check, reject }: Pending<AnyCall>): boolean {
  try {
    check?.()
    return true
  } catch (error) {
    reject(error)
    return false
  }
}

function settle(pending: Settler, outcome: Outcome | undefined): void {
  if (outcome === undefined)
    pending.reject(new AppError('store_failed', 'The writer did not answer; restart the server.'))
  else if (outcome.ok) pending.resolve(outcome.output)
  else pending.reject(unpackError(outcome.error))
}
