import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newSession } from '../core-fixture.contract.ts'
import { logContract } from './log.contract.ts'
import type { AgentStore, StoreLimits } from './port.ts'
import { runsContract } from './runs.contract.ts'
import { sessionsContract } from './sessions.contract.ts'

const LIMITS: StoreLimits = { maxSessions: 20, maxLogEvents: 40, maxLogBytes: 4_000 }

/** A store that is open. */
export interface OpenedStore {
  store: AgentStore
  /** Where it keeps things: the same store after its process has died. */
  reopen?(): Promise<AgentStore>
}

/**
 * What every store of the agent server promises. `open` gives an empty one with the limits; one that `keepsAll` events
 * keeps those beyond the limits elsewhere.
 */
export function agentStoreContract(
  name: string,
  open: (limits: StoreLimits) => Promise<OpenedStore>,
  { keepsAll = false } = {},
): void {
  describe(`agent store (${name})`, () => {
    let opened: OpenedStore
    beforeEach(async () => {
      opened = await open(LIMITS)
      await opened.store.sessions.create(newSession('s1'), null)
    })
    afterEach(() => opened.store.close())
    sessionsContract(() => opened.store, LIMITS)
    runsContract(() => opened.store)
    logContract(() => opened.store, LIMITS, keepsAll)

    test('it closes twice without harm', async () => {
      await opened.store.close()
      await expect(opened.store.close()).resolves.toBeUndefined()
    })
  })
}
