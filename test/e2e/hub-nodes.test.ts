import { afterAll, beforeAll, expect } from 'vitest'
import { openInbox } from '../../src/hub/store/inbox.ts'
import { startHubCluster } from '../support/hub-cluster.ts'
import { register, say } from '../support/numbered-messages.ts'
import { freePort, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { startPostgres, type TestPostgres } from '../support/servers/postgres.ts'
import { verifies } from '../support/verifies.ts'

const START_MS = 60_000
const LEASE_MS = 2_000

let postgres: TestPostgres

beforeAll(async () => {
  postgres = await startPostgres()
}, START_MS)
afterAll(() => postgres?.remove())

verifies(
  ['nodes:operation:rolling-restart', 'nodes:http:any-node-serves'],
  'stopped and started one after the other behind a client that takes them in turn, three hubs answer every poll and every send',
  async () => {
    const cluster = await startHubCluster(await postgres.createDatabase())
    const token = await register(cluster.anyUrl(), 'ada')
    // Each tells figures of its own, to those who may have them.
    await cluster.leader()
    expect((await Promise.all(cluster.nodes.map((node) => node.leads()))).filter((leads) => leads)).toHaveLength(1)
    for (const { url } of cluster.nodes) expect((await fetch(`${url}/metrics`)).status).toBe(401)
    const stop = new AbortController()
    const caller = inTurn(
      cluster.nodes.map(({ url }) => url),
      stop.signal,
    )
    const reading = keepPolling(caller, token)
    await say(cluster.simUrl, [{ user: 'ann', text: 'hello' }])
    await expect.poll(() => reading.got.length, { timeout: 30_000 }).toBe(1)
    const sending = keepSending(caller, token, reading.got[0]?.context_token ?? '')
    for (const node of cluster.nodes) {
      await node.program.kill('SIGTERM')
      node.start()
      await node.ready()
      await say(cluster.simUrl, [{ user: 'ann', text: `after ${node.url}` }])
    }
    const texts = ['hello', ...cluster.nodes.map(({ url }) => `after ${url}`)]
    await expect.poll(() => reading.got.map(({ content }) => content), { timeout: 30_000 }).toEqual(texts)
    stop.abort()
    const sent = await sending
    await cluster.stop()
    expect(caller.refusals).toEqual([])
    expect(sent.length).toBeGreaterThan(cluster.nodes.length)
    expect(await answersTo(cluster.simUrl, 'ann')).toEqual(sent)
  },
  180_000,
)

verifies(
  'nodes:migrate:copies',
  async () => {
    const dir = temporaryFolder()
    const databaseUrl = await postgres.createDatabase()
    const alone = await startHubAlone(dir)
    const token = await register(alone.url, 'ada')
    await say(alone.simUrl, [{ user: 'ann', text: 'kept' }])
    await expect.poll(() => queueSize(alone.url), { timeout: 20_000 }).toBe(1)
    await alone.stop()

    const migrate = () => runCli(['migrate', '--data-dir', dir], { env: { RELAY_DATABASE_URL: databaseUrl } })
    // As after a crash in a backlog.
    const inbox = openInbox(dir)
    await inbox.keep('default', { source: 'any', after: '', cursor: 'c1', messages: ['{}'] })
    const early = migrate()
    expect(await early.ended).toBe(1)
    expect(early.output()).toContain('start it once more, stop it, then migrate')
    await inbox.clear('default', 'any')
    await inbox.close()
    const first = migrate()
    expect(await first.ended, first.output()).toBe(0)
    const second = migrate()
    expect(await second.ended).toBe(1)
    expect(second.output()).toContain('holds messages already')

    const cluster = await startHubCluster(databaseUrl, LEASE_MS)
    const stop = new AbortController()
    const caller = inTurn(
      cluster.nodes.map(({ url }) => url),
      stop.signal,
    )
    const { got } = keepPolling(caller, token)
    await expect.poll(() => got.map(({ content }) => content), { timeout: 30_000 }).toEqual(['kept'])
    stop.abort()
    await cluster.stop()
  },
  120_000,
)

async function answersTo(simUrl: string, user: string): Promise<string[]> {
  const text = await (await fetch(`${simUrl}/sim/conversation?user=${user}`)).text()
  const { messages }: { messages: { from: string; text: string }[] } = JSON.parse(text)
  return messages.filter(({ from, text }) => from === 'bot' && text.startsWith('answer ')).map(({ text }) => text)
}

async function startHubAlone(dir: string) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const hub = runCli(['hub', '--addr', `127.0.0.1:${port}`, '--data-dir', dir, '--log-level', 'error'])
  await untilAnswers(`${url}/ready`, hub, START_MS)
  const simUrl = /http:\/\/127\.0\.0\.1:\d+(?=\/sim\/say)/.exec(hub.output())?.[0] ?? ''
  return { url, simUrl, stop: () => hub.kill('SIGTERM') }
}

async function queueSize(url: string): Promise<number> {
  const { clients }: { clients: { queue_size: number }[] } = JSON.parse(
    await (await fetch(`${url}/hub/clients`)).text(),
  )
  return clients[0]?.queue_size ?? 0
}

/** Calls the nodes in turn; where nobody answers it asks the next. All that a client sees beyond that is noted. */
interface Caller {
  readonly refusals: string[]
  /** The body of the answer; null when the caller was told to stop before there was one. */
  call(path: string, token: string, body: object): Promise<string | null>
}

function inTurn(urls: readonly string[], signal: AbortSignal): Caller {
  const refusals: string[] = []
  let next = 0
  return {
    refusals,
    async call(path, token, body) {
      while (!signal.aborted) {
        const url = urls[next++ % urls.length] ?? ''
        const request = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(body) }
        const answer = await fetch(`${url}/relay/bot/${path}`, request).catch(() => null)
        const text = await answer?.text().catch(() => undefined)
        if (answer === null || text === undefined) continue
        if (answer.status === 200) return text
        refusals.push(`${path} at ${url}: ${answer.status} ${text}`)
      }
      return null
    },
  }
}

interface Got {
  content: string
  context_token: string
}

function keepPolling({ call }: Caller, token: string): { got: Got[] } {
  const got: Got[] = []
  void run()
  return { got }

  async function run(): Promise<void> {
    for (;;) {
      const text = await call('getupdates', token, {})
      if (text === null) return
      const { messages }: { messages: Got[] } = JSON.parse(text)
      got.push(...messages)
    }
  }
}

/** Sends one numbered text after the other; the id of each makes a repetition the same send. Returns what was accepted. */
async function keepSending({ call }: Caller, token: string, context: string): Promise<string[]> {
  const sent: string[] = []
  for (;;) {
    const content = `answer ${sent.length}`
    const body = { context_token: context, content, client_id: content }
    if ((await call('sendmessage', token, body)) === null) return sent
    sent.push(content)
  }
}
