import { expect } from 'vitest'
import { freePort, type Program, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { verifies } from '../support/verifies.ts'

const CLIENTS = 5
const MESSAGES = 1_000
const KILLS = 20

/** What one client got: batches in order, each with the number of kills there had been. */
interface Ledger {
  batches: { texts: string[]; kills: number }[]
}

verifies(
  ['delivery:crash:nothing-lost', 'delivery:state:queued-durable'],
  'killed 20 times while 1,000 messages flow to five clients, the hub delivers all, and twice only what was in flight',
  async () => {
    const hubPort = await freePort()
    const simPort = await freePort()
    const dataDir = temporaryFolder()
    const simUrl = `http://127.0.0.1:${simPort}`
    const url = `http://127.0.0.1:${hubPort}`
    const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`, '--bot-token', 'bot@im.bot:t'])
    await untilAnswers(`${simUrl}/health`, sim)
    const startHub = async (): Promise<Program> => {
      const args = [
        '--addr',
        `127.0.0.1:${hubPort}`,
        '--data-dir',
        dataDir,
        '--upstream-url',
        simUrl,
        '--upstream-token',
        'bot@im.bot:t',
      ]
      const hub = runCli(['hub', ...args, '--poll-hold-ms', '2000', '--log-level', 'error'])
      await untilAnswers(`${url}/health`, hub)
      return hub
    }

    let hub = await startHub()
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
        url,
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
      await hub.kill('SIGKILL')
      kills += 1
      await said
      hub = await startHub()
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
      expect(strangers(batches, client)).toEqual([])
      expect(repeatedWithoutCause(batches)).toEqual([])
    }
  },
  120_000,
)

/** Messages that were another client's. */
function strangers(batches: Ledger['batches'], client: number): string[] {
  return batches.flatMap(({ texts }) => texts).filter((text) => Number(text.split(' ')[1]) % CLIENTS !== client)
}

/** Messages that came twice although they were not in the last batch before a kill. */
function repeatedWithoutCause(batches: Ledger['batches']): string[] {
  const seenIn = new Map<string, number>()
  const wrong: string[] = []
  for (const [index, { texts, kills }] of batches.entries()) {
    for (const text of texts) {
      const before = seenIn.get(text)
      seenIn.set(text, index)
      if (before === undefined) continue
      const lastBeforeKill = batches.slice(before + 1, index).every((between) => between.kills > batches[before]!.kills)
      if (!lastBeforeKill || kills === batches[before]!.kills) wrong.push(text)
    }
  }
  return wrong
}

interface ClientOptions {
  url: string
  token: string
  withCursor: boolean
  ledger: Ledger
  kills: () => number
  signal: AbortSignal
}

async function runClient({ url, token, withCursor, ledger, kills, signal }: ClientOptions): Promise<void> {
  let cursor = ''
  while (!signal.aborted) {
    try {
      const body = withCursor ? { get_updates_buf: cursor } : { token }
      const response = await fetch(`${url}/relay/bot/getupdates`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      })
      const answer: { messages?: { content: string }[]; get_updates_buf?: string } = JSON.parse(await response.text())
      if (!response.ok || answer.messages === undefined) throw new Error('refused')
      if (answer.messages.length > 0)
        ledger.batches.push({ texts: answer.messages.map(({ content }) => content), kills: kills() })
      cursor = answer.get_updates_buf ?? cursor
    } catch {
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

async function register(url: string, name: string): Promise<string> {
  const response = await fetch(`${url}/hub/register`, { method: 'POST', body: JSON.stringify({ name }) })
  const { token }: { token: string } = JSON.parse(await response.text())
  return token
}

async function say(simUrl: string, messages: { user: string; text: string }[]): Promise<void> {
  const response = await fetch(`${simUrl}/sim/say`, { method: 'POST', body: JSON.stringify({ messages }) })
  if (!response.ok) throw new Error(await response.text())
  await response.text()
}

async function untilAnswered(simUrl: string, user: string): Promise<void> {
  const deadline = Date.now() + 10_000
  for (;;) {
    const text = await (await fetch(`${simUrl}/sim/conversation?user=${user}`)).text()
    if (text.includes('You now talk to')) return
    if (Date.now() > deadline) throw new Error(`no answer to ${user}: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
