import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { inboxHolds } from '../../src/hub/store/inbox.ts'
import { connect } from '../../src/kit/sqlite/database.ts'
import {
  type Ledger,
  register,
  repeatedWithoutCause,
  runClient,
  say,
  strangers,
  untilAnswered,
} from '../support/numbered-messages.ts'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { soon } from '../support/soon.ts'
import { verifies } from '../support/verifies.ts'

const KILLS = 12
const PER_ROUND = 600
const CLIENTS = 3

verifies(
  'delivery:inbox:recovered',
  'killed with answers that it had kept and not stored, the hub delivers them although the service is gone',
  async () => {
    const stage = await startStage()
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
    const stage = await startStage()
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

interface Stage {
  url: string
  simUrl: string
  dataDir: string
  sim: Program
  hub(): Program
  startHub(): Promise<void>
}

/** A hub and a simulated service, a process each. */
async function startStage(): Promise<Stage> {
  const [hubPort, simPort] = [await freePort(), await freePort()]
  const dataDir = temporaryFolder()
  const simUrl = `http://127.0.0.1:${simPort}`
  const url = `http://127.0.0.1:${hubPort}`
  const login = 'bot@im.bot:t'
  const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`, '--bot-token', login])
  await untilAnswers(`${simUrl}/health`, sim)
  let hub: Program | undefined
  const startHub = async () => {
    const upstream = ['--upstream-url', simUrl, '--upstream-token', login]
    const args = ['--addr', `127.0.0.1:${hubPort}`, '--data-dir', dataDir, ...upstream]
    hub = runCli(['hub', ...args, '--poll-hold-ms', '2000', '--log-level', 'error'])
    await untilAnswers(`${url}/health`, hub)
  }
  await startHub()
  const running = () => {
    if (hub === undefined) throw new Error('the hub was not started')
    return hub
  }
  return { url, simUrl, dataDir, sim, hub: running, startHub }
}
