import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { type HubCluster, type HubNode, startHubCluster } from '../support/hub-cluster.ts'
import {
  type Hurt,
  type Ledger,
  register,
  repeatedInPeace,
  runClient,
  say,
  strangers,
  untilAnswered,
} from '../support/numbered-messages.ts'
import { startPostgres, type TestPostgres } from '../support/servers/postgres.ts'
import { verifies } from '../support/verifies.ts'
import { LONG_CHAOS } from '../support/while-away.ts'

/** `CHAOS=long` is the whole of it: 20 clients, 10,000 messages, the default lease. */
const FORM = LONG_CHAOS
  ? { clients: 20, messages: 10_000, leaseMs: undefined, times: 4, takeoverMs: 20_000 }
  : { clients: 6, messages: 360, leaseMs: 2_000, times: 1, takeoverMs: null }
const SPEAK_EVERY_MS = 100
/** A signal takes a moment to arrive. */
const STOPS_WITHIN_MS = 50
const MESSAGES_AT_ONCE = 10
const ALL_WITHIN_MS = 120_000
/** A node waits for 20 s for another to lead. */
const REFUSED_WITHIN_MS = 30_000
const WHOLE_MS = LONG_CHAOS ? 600_000 : 240_000

let postgres: TestPostgres

beforeAll(async () => {
  postgres = await startPostgres()
}, 60_000)
afterAll(() => postgres?.remove())

/** What is going on: hurts, how long each change of leaders took, how often one was left with an open poll. */
interface Chaos {
  cluster: HubCluster
  hurts: Hurt[]
  takeovers: number[]
  frozenLeaders: number
  /** A call was tried while the database was away. It waits long for a leader: once is enough. */
  wasRefused: boolean
}

/** All that is done to the nodes and their database, one after the other. */
const WOUNDS: ((chaos: Chaos) => Promise<void>)[] = [
  killLeader,
  killAny,
  freezeLeader,
  (chaos) => restartPostgres(chaos, 'SIGINT'),
  freezeAny,
  killLeader,
  (chaos) => restartPostgres(chaos, 'SIGKILL'),
]

verifies(
  [
    'nodes:delivery:nothing-lost',
    'nodes:upstream:one-polls',
    'nodes:http:any-node-serves',
    'nodes:lease:takeover',
    'nodes:database:restarts',
  ],
  'three hubs on one Postgres, and Postgres itself, are killed, frozen and restarted while messages flow to clients that poll any of them: all arrive, twice only what was in flight',
  async () => {
    const cluster = await startHubCluster(await postgres.createDatabase(), FORM.leaseMs)
    const chaos: Chaos = { cluster, hurts: [], takeovers: [], frozenLeaders: 0, wasRefused: false }
    const stop = new AbortController()
    const { ledgers, clients } = await startClients(chaos, stop.signal)

    const wounds = Array.from({ length: FORM.times }, () => WOUNDS).flat()
    const each = Math.ceil(FORM.messages / wounds.length)
    for (const [round, wound] of wounds.entries()) {
      const from = round * each
      const speaking = speak(cluster.simUrl, from, Math.min(FORM.messages, from + each))
      await Promise.all([speaking, pause(Math.random() * SPEAK_EVERY_MS).then(() => wound(chaos))])
    }
    const deadline = Date.now() + ALL_WITHIN_MS
    while (missing(ledgers).length > 0 && Date.now() < deadline) await pause(50)
    expect(missing(ledgers)).toEqual([])

    const { polls_displaced: displaced } = await cluster.counts()
    stop.abort()
    await cluster.stop()
    await Promise.all(clients)
    tell(chaos, ledgers, displaced)
    for (const [client, ledger] of ledgers.entries()) {
      expect(strangers(ledger.batches, client, FORM.clients)).toEqual([])
      expect(repeatedInPeace(ledger, chaos.hurts, bringsCursor(client))).toEqual([])
    }
    // The open poll of a leader that froze is the one thing that a new leader may find there.
    expect(displaced).toBeLessThanOrEqual(chaos.frozenLeaders)
    if (FORM.takeoverMs !== null) expect(Math.max(...chaos.takeovers)).toBeLessThanOrEqual(FORM.takeoverMs)
  },
  WHOLE_MS,
)

async function startClients({ cluster, hurts }: Chaos, signal: AbortSignal) {
  const tokens: string[] = []
  for (let index = 0; index < FORM.clients; index += 1) tokens.push(await register(cluster.anyUrl(), `c${index}`))
  await say(
    cluster.simUrl,
    tokens.map((_, index) => ({ user: `user${index}`, text: `/use c${index}` })),
  )
  await Promise.all(tokens.map((_, index) => untilAnswered(cluster.simUrl, `user${index}`)))
  const ledgers = tokens.map((): Ledger => ({ batches: [] }))
  const clients = ledgers.map((ledger, index) =>
    runClient({
      url: cluster.anyUrl,
      token: tokens[index] ?? '',
      withCursor: bringsCursor(index),
      ledger,
      kills: () => hurts.length,
      signal,
    }),
  )
  return { ledgers, clients }
}

function bringsCursor(client: number): boolean {
  return client % 2 === 0
}

/** Says the messages with these numbers, some at a time. */
async function speak(simUrl: string, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += MESSAGES_AT_ONCE) {
    const numbers = Array.from({ length: Math.min(MESSAGES_AT_ONCE, to - at) }, (_, index) => at + index)
    await say(
      simUrl,
      numbers.map((number) => ({ user: `user${number % FORM.clients}`, text: `message ${number}` })),
    )
    await pause(SPEAK_EVERY_MS)
  }
}

function missing(ledgers: readonly Ledger[]): number[] {
  const got = new Set(ledgers.flatMap(({ batches }) => batches.flatMap(({ texts }) => texts)))
  return Array.from({ length: FORM.messages }, (_, number) => number).filter((number) => !got.has(`message ${number}`))
}

async function killLeader(chaos: Chaos): Promise<void> {
  const node = await chaos.cluster.leader()
  await takenOver(chaos, node, () => kill(chaos, node))
  node.start()
  await node.ready()
}

async function killAny(chaos: Chaos): Promise<void> {
  const node = anyOf(chaos)
  await kill(chaos, node)
  node.start()
  await node.ready()
}

/** It sleeps until another leads, and wakes up believing that it still does. */
async function freezeLeader(chaos: Chaos): Promise<void> {
  const node = await chaos.cluster.leader()
  chaos.frozenLeaders += 1
  await takenOver(chaos, node, async () => freeze(chaos, node))
  await pause(Math.random() * 1_000)
  node.program.child.kill('SIGCONT')
  await node.ready()
}

/** For less than a lease. */
async function freezeAny(chaos: Chaos): Promise<void> {
  const node = anyOf(chaos)
  freeze(chaos, node)
  await pause(1_000)
  node.program.child.kill('SIGCONT')
  await node.ready()
}

/** While it is away no node is ready, a call is told why, and nobody ends; it is all right again by itself. */
async function restartPostgres(chaos: Chaos, signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
  const { cluster, hurts } = chaos
  const from = Date.now()
  await postgres.stop(signal)
  for (const node of cluster.nodes)
    await expect
      .poll(() => node.readiness(), { timeout: 60_000 })
      .toEqual({ ready: false, reason: expect.stringMatching(/no node leads|does not answer/) })
  if (!chaos.wasRefused) await Promise.all(cluster.nodes.map(({ url }) => expectRefusal(url)))
  chaos.wasRefused = true
  await postgres.start()
  await Promise.all(cluster.nodes.map((node) => node.ready()))
  hurts.push({ from, to: Date.now() })
  for (const { program } of cluster.nodes) expect(program.child.exitCode, program.output()).toBeNull()
}

async function expectRefusal(url: string): Promise<void> {
  const signal = AbortSignal.timeout(REFUSED_WITHIN_MS)
  const refused = await fetch(`${url}/hub/register`, { method: 'POST', body: '{"name":"nobody"}', signal })
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    {
      error: {
        code: expect.stringMatching(/^(no_leader|store_failed)$/),
        message: expect.stringContaining('database'),
      },
    },
  ])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
}

/** Measures until another node leads and polls the service. */
async function takenOver({ cluster, takeovers }: Chaos, node: HubNode, hurt: () => Promise<void>): Promise<void> {
  const from = Date.now()
  await hurt()
  const { polls } = await cluster.counts()
  await cluster.leader(node)
  while ((await cluster.counts()).polls === polls) await pause(10)
  takeovers.push(Date.now() - from)
}

async function kill({ hurts }: Chaos, { program }: HubNode): Promise<void> {
  const from = Date.now()
  await program.kill('SIGKILL')
  hurts.push({ from, to: Date.now() })
}

function freeze({ hurts }: Chaos, { program }: HubNode): void {
  const from = Date.now()
  program.child.kill('SIGSTOP')
  hurts.push({ from, to: Date.now() + STOPS_WITHIN_MS })
}

function anyOf({ cluster: { nodes } }: Chaos): HubNode {
  const node = nodes[Math.floor(Math.random() * nodes.length)]
  if (node === undefined) throw new Error('there are no nodes')
  return node
}

function tell({ hurts, takeovers, frozenLeaders }: Chaos, ledgers: readonly Ledger[], displaced: number): void {
  const texts = ledgers.flatMap(({ batches }) => batches.flatMap((batch) => batch.texts))
  console.log('hub chaos:', {
    messages: FORM.messages,
    clients: FORM.clients,
    received: texts.length,
    repeated: texts.length - new Set(texts).size,
    hurts: hurts.length,
    takeoversMs: takeovers,
    displaced,
    frozenLeaders,
  })
}
