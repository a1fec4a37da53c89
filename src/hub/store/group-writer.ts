import { AppError } from '../../kit/errors.ts'
import type { Settlement } from '../model.ts'
import { type Outcome, unpackError } from './commit-group.ts'
import { lazyChanges } from './lazy-changes.ts'
import type { Call, Output } from './operations.ts'
import type { Seen } from './write-clients.ts'

/** Writes in groups: whatever gathers while one group is being committed goes into the next commit. */
export interface GroupWriter {
  /** Resolves when the operation is durable. */
  run<C extends Call>(call: C): Promise<Output<C['name']>>
  settle(settlement: Settlement): void
  touch(seen: Seen[]): void
  /** Resolves when everything lazy that was given before, or the settlements of this client, are durable. */
  flush(clientId?: number): Promise<void>
  /** Takes no more, and resolves when all that was given is durable. */
  drain(): Promise<void>
}

export interface GroupWriterOptions {
  /** Commits a group in one transaction, one outcome per call; rejects when the transaction failed. */
  commit(calls: Call[]): Promise<Outcome[]>
  /** How long a lazy change may wait for a write to go with. */
  lazyMs: number
}

export function groupWriter({ commit, lazyMs }: GroupWriterOptions): GroupWriter {
  const lazy = lazyChanges()
  let waiting: Pending[] = []
  let flushes: Settler[] = []
  let underway: Group | undefined
  let due = false
  let closed = false
  let timer: NodeJS.Timeout | undefined

  return {
    run(call) {
      if (closed) return Promise.reject(new AppError('store_failed', 'The store is closed; start the hub again.'))
      return new Promise((resolve, reject) => {
        waiting.push({ call, resolve, reject })
        post()
      })
    },
    settle(settlement) {
      if (closed) return
      lazy.settle(settlement)
      wakeLater()
    },
    touch(seen) {
      if (closed || seen.length === 0) return
      seen.forEach(lazy.touch)
      wakeLater()
    },
    flush,
    async drain() {
      closed = true
      await flush()
    },
  }

  function flush(clientId?: number): Promise<void> {
    if (clientId === undefined || lazy.holds(clientId)) {
      return new Promise((resolve, reject) => {
        flushes.push({ resolve, reject })
        post()
      })
    }
    const carrier = underway
    if (carrier === undefined || !carrier.lazies.some((call) => isOf(call, clientId))) return Promise.resolve()
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
    const group: Group = { lazies: lazy.take(), pending: waiting, flushes }
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

function isOf({ name, input }: Call, clientId: number): boolean {
  return name === 'settleQueue' && input.clientId === clientId
}

interface Group {
  lazies: Call[]
  pending: Pending[]
  flushes: Settler[]
}

function tell({ lazies, pending, flushes }: Group, outcomes: Outcome[]): void {
  const failed = outcomes.slice(0, lazies.length).find((outcome) => !outcome.ok)
  for (const flush of flushes) settle(flush, failed ?? { ok: true, output: undefined })
  for (const [index, one] of pending.entries()) settle(one, outcomes[lazies.length + index])
}

// Methods, so that the promise of one operation may stand among those of others.
interface Settler {
  resolve(output?: unknown): void
  reject(error: unknown): void
}

interface Pending extends Settler {
  call: Call
}

function settle(pending: Settler, outcome: Outcome | undefined): void {
  if (outcome === undefined) pending.reject(new AppError('store_failed', 'The writer did not answer; restart the hub.'))
  else if (outcome.ok) pending.resolve(outcome.output)
  else pending.reject(unpackError(outcome.error))
}
