import { expect } from 'vitest'
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
import { verifies } from '../support/verifies.ts'

const CLIENTS = 5
const MESSAGES = 1_000
const KILLS = 20

verifies(
  ['delivery:crash:nothing-lost', 'delivery:state:queued-durable'],
  'killed 20 times while 1,000 messages flow to five clients, the hub delivers all, and twice only what was in flight',
  async () => {
    const { url, simUrl, hub, startHub } = await startHubProcess()
    let kills = 0
    const tokens = await Promise.all(Array.from({ length: CLIENTS }, (_, index) => register(url, `c${index}`)))
    await say(
      simUrl,
      tokens.map((_, index) => ({ user: `user${index}`, text: `/use c${index}` })),
    )
    await Promise.all(tokens.map((_, index) => untilAnswered(simUrl, `user${index}`)))

    const stop = new AbortController()
    const ledgers = tokens.map((): Ledger => ({ batches: [] }))
    // Some clients echo cursors, some speak the spec's shape.
    const clients = tokens.map((token, index) =>
      runClient({
        url: () => url,
        token,
        withCursor: index % 2 === 0,
        ledger: ledgers[index]!,
        kills: () => kills,
        signal: stop.signal,
      }),
    )

    const perRound = MESSAGES / KILLS
    for (let round = 0; round < KILLS; round++) {
      const texts = Array.from({ length: perRound }, (_, index) => round * perRound + index)
      const said = say(
        simUrl,
        texts.map((number) => ({ user: `user${number % CLIENTS}`, text: `message ${number}` })),
      )
      // Anywhere between the first poll of the service and the last answer of a round.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 60))
      await hub().kill('SIGKILL')
      kills += 1
      await said
      await startHub()
    }
    const expected = (client: number) =>
      Array.from({ length: MESSAGES }, (_, number) => number).filter((number) => number % CLIENTS === client)
    const received = (client: number) => new Set(ledgers[client]!.batches.flatMap(({ texts }) => texts))
    const missing = () =>
      tokens.flatMap((_, client) => expected(client).filter((number) => !received(client).has(`message ${number}`)))
    const deadline = Date.now() + 30_000
    while (missing().length > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(missing()).toEqual([])

    stop.abort()
    await Promise.all(clients)
    for (const [client, { batches }] of ledgers.entries()) {
      expect(strangers(batches, client, CLIENTS)).toEqual([])
      expect(repeatedWithoutCause(batches)).toEqual([])
    }
  },
  300_000,
)
