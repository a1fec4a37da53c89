import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { inboxHolds } from '../../src/hub/store/inbox.ts'
import { connect } from '../../src/kit/sqlite/database.ts'
import { startHubProcess } from '../support/hub-process.ts'
import {
  type Ledger,
  register,
  repeatedWithoutCause,
  runClient,
  say,
  strangers,
  untilAnswered,
} from '../support/numbered-messages.ts'
import { soon } from '../support/soon.ts'
import { verifies } from '../support/verifies.ts'

const KILLS = 12
const PER_ROUND = 600
const CLIENTS = 3

verifies(
  'delivery:inbox:recovered',
  'killed with answers that it had kept and not stored, the hub delivers them although the service is gone',
  async () => {
    const stage = await startHubProcess()
    const token = await register(stage.url, 'bot')
    // Whoever holds the database keeps the hub from storing anything.
    const holder = await connect(join(stage.dataDir, 'hub.db'))
    onTestFinished(() => holder.close())
    holder.run('BEGIN IMMEDIATE')
    await say(
      stage.simUrl,
      Array.from({ length: 400 }, (_, number) => ({ user: 'ann', text: `message ${number}` })),
    )
    await soon(async () => expect(await polledThrough(stage.simUrl)).toBe(400))
    await stage.hub().kill('SIGKILL')
    await stage.sim.kill('SIGKILL')
    holder.run('ROLLBACK')
    expect(await inboxHolds(stage.dataDir)).toBe(true)

    await stage.startHub()
    const stop = new AbortController()
    const ledger: Ledger = { batches: [] }
    const client = runClient({
      url: () => stage.url,
      token,
      withCursor: true,
      ledger,
      kills: () => 0,
      signal: stop.signal,
    })
    const got = () => ledger.batches.flatMap(({ texts }) => texts)
    await soon(() => expect(got().length).toBeGreaterThanOrEqual(400))
    stop.abort()
    await client
    expect(got()).toEqual(Array.from({ length: 400 }, (_, number) => `message ${number}`))
    expect(await inboxHolds(stage.dataDir)).toBe(false)
  },
  60_000,
)

verifies(
  ['delivery:crash:nothing-lost', 'delivery:inbox:recovered'],
  'killed again and again with a backlog, the hub delivers all of it, in order, and twice only what was in flight',
  async () => {
    const stage = await startHubProcess()
    let kills = 0
    const tokens = await Promise.all(Array.from({ length: CLIENTS }, (_, index) => register(stage.url, `c${index}`)))
    await say(
      stage.simUrl,
      tokens.map((_, index) => ({ user: `user${index}`, text: `/use c${index}` })),
    )
    await Promise.all(tokens.map((_, index) => untilAnswered(stage.simUrl, `user${index}`)))
    const stop = new AbortController()
    const ledgers = tokens.map((): Ledger => ({ batches: [] }))
    const clients = tokens.map((token, index) =>
      runClient({
        url: () => stage.url,
        token,
        withCursor: true,
        ledger: ledgers[index] ?? { batches: [] },
        kills: () => kills,
        signal: stop.signal,
      }),
    )
    for (let round = 0; round < KILLS; round += 1) {
      await stage.hub().kill('SIGKILL')
      kills += 1
      const numbers = Array.from({ length: PER_ROUND }, (_, index) => round * PER_ROUND + index)
      await say(
        stage.simUrl,
        numbers.map((number) => ({ user: `user${number % CLIENTS}`, text: `message ${number}` })),
      )
      await stage.startHub()
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 120))
    }
    const total = KILLS * PER_ROUND
    const numbersOf = ({ batches }: Ledger) =>
      new Set(batches.flatMap(({ texts }) => texts.map((text) => Number(text.split(' ')[1]))))
    const missing = () => total - ledgers.reduce((sum, ledger) => sum + numbersOf(ledger).size, 0)
    await vi.waitFor(() => expect(missing()).toBe(0), { timeout: 60_000, interval: 20 })
    stop.abort()
    await Promise.all(clients)
    for (const [client, ledger] of ledgers.entries()) {
      expect(strangers(ledger.batches, client, CLIENTS)).toEqual([])
      expect(repeatedWithoutCause(ledger.batches)).toEqual([])
      expect([...numbersOf(ledger)]).toEqual([...numbersOf(ledger)].toSorted((a, b) => a - b))
    }
  },
  300_000,
)

/** How many messages the service takes as received: those before the place that was asked from last. */
async function polledThrough(simUrl: string): Promise<number> {
  const state: { acknowledged: number } = JSON.parse(await (await fetch(`${simUrl}/sim/state`)).text())
  return state.acknowledged
}
