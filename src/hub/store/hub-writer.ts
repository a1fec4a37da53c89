import type { Outcome } from '../../kit/sqlite/commit-group.ts'
import { type GroupWriter, groupWriter } from '../../kit/sqlite/group-writer.ts'
import type { Settlement } from '../model.ts'
import { lazyChanges } from './lazy-changes.ts'
import type { Call, Outputs } from './operations.ts'
import type { Seen } from './write-clients.ts'

/** Writes in groups; settlements and last-seen times are lazy. */
export interface HubWriter extends Pick<GroupWriter<Call, Outputs>, 'run' | 'drain'> {
  settle(settlement: Settlement): void
  touch(seen: Seen[]): void
  /** Resolves when everything lazy that was given before, or the settlements of this client, are durable. */
  flush(clientId?: number): Promise<void>
}

export interface HubWriterOptions {
  /** Commits a group in one transaction, one outcome per call; rejects when the transaction failed. */
  commit(calls: Call[]): Promise<Outcome[]>
  /** How long a lazy change may wait for a write to go with. */
  lazyMs: number
}

export function hubWriter({ commit, lazyMs }: HubWriterOptions): HubWriter {
  const lazy = lazyChanges()
  const { run, drain, later, flush } = groupWriter<Call, Outputs>({ commit, lazy, lazyMs })
  return {
    run,
    drain,
    settle: (settlement) => void later(() => lazy.settle(settlement)),
    touch(seen) {
      if (seen.length > 0) later(() => seen.forEach(lazy.touch))
    },
    flush: (clientId) =>
      flush(
        clientId === undefined
          ? undefined
          : {
              isWaiting: () => lazy.holds(clientId),
              has: ({ name }) => name === 'settleQueues' && lazy.took(clientId),
            },
      ),
  }
}
