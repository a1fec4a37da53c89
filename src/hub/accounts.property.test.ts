import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect } from 'vitest'
import { pollOnce } from '../../test/support/test-desk.ts'
import { verifies } from '../../test/support/verifies.ts'
import { memoryDoorbell } from '../kit/doorbell.ts'
import { silentLog } from '../kit/log.ts'
import { createMetrics } from '../kit/metrics.ts'
import { composeText } from './compose.ts'
import { type Hub, openHub } from './hub.ts'
import type { Client } from './model.ts'
import { openMemoryStore } from './store/memory.ts'
import type { Upstream } from './upstream/port.ts'
import { openVault } from './vault.ts'

const RUNS = 4
const EXCHANGES = 2_500
const ACCOUNTS = ['one', 'two']
/** The same people write to both accounts. */
const USERS = ['Ann@im.wechat', 'bob@im.wechat', 'cid@im.wechat', 'dee@im.wechat']
const CLIENTS = [
  { name: 'only-one', account: 'one' },
  { name: 'only-two', account: 'two' },
  { name: 'both', account: null },
]

const exchange = fc.record({
  account: fc.constantFrom(...ACCOUNTS),
  user: fc.constantFrom(...USERS),
  /** Whom the user asks for by name; some of them are not of this account. */
  asks: fc.constantFrom('', ...CLIENTS.map(({ name }) => `@${name} `)),
})

verifies(
  'accounts:property:none-misdirected',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(exchange, { minLength: EXCHANGES, maxLength: EXCHANGES }), async (plan) => {
        const bots = new Map(ACCOUNTS.map((name) => [name, fakeBot(name)]))
        for (const [n, { account, user, asks }] of plan.entries()) bots.get(account)?.say(user, `${asks}#${n}`, n)
        const { hub, clients, stop } = await openTwo(bots)
        await Promise.all(clients.map((client) => answerAll(hub, client, () => done(bots) >= plan.length)))
        await stop()

        const heard = ACCOUNTS.flatMap((name) => bots.get(name)?.sent ?? [])
        expect(heard).toHaveLength(plan.length)
        for (const { account, userId, contextToken, text } of heard) {
          const [, client = '', number = ''] = /^(\S+) re .*#(\d+)$/.exec(text) ?? []
          const asked = plan[Number(number)]
          // From the account it came to, to who said it, in that conversation, by a client that may see it.
          expect({ account, userId }).toEqual({ account: asked?.account, userId: asked?.user })
          expect(contextToken).toMatch(new RegExp(`^${account}/${userId}/`))
          expect([account, null]).toContain(CLIENTS.find(({ name }) => name === client)?.account)
        }
        expect(new Set(heard.map(({ text }) => /#(\d+)$/.exec(text)?.[1])).size).toBe(plan.length)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  },
  300_000,
)

interface FakeBot extends Upstream {
  say(user: string, text: string, n: number): void
  readonly sent: { account: string; userId: string; contextToken: string | null; text: string }[]
}

/** A service with one bot: what users say waits for its polls, what it sends is written down. */
function fakeBot(account: string): FakeBot {
  const waiting: string[] = []
  const sent: FakeBot['sent'] = []
  let read = 0
  const notUsed = () => Promise.reject(new Error('not used here'))
  return {
    sent,
    say(user, text, n) {
      const message = {
        // The ids of the two bots overlap, as those of two services may.
        message_id: 1_000 + waiting.length,
        from_user_id: user,
        create_time_ms: 1_700_000_000_000 + n,
        seq: n,
        message_type: 1,
        context_token: `${account}/${user}/${n}`,
        item_list: [{ type: 1, text_item: { text } }],
      }
      waiting.push(JSON.stringify(message))
    },
    async poll(_cursor, signal) {
      const messages = waiting.slice(read, read + 37)
      read += messages.length
      if (messages.length === 0) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { messages, cursor: String(read) }
    },
    notify: () => Promise.resolve(),
    async send({ userId, contextToken, body }) {
      const text: string = JSON.parse(body).item_list[0].text_item.text
      sent.push({ account, userId, contextToken, text })
      return { upstreamId: String(sent.length) }
    },
    typing: notUsed,
    typingTicket: notUsed,
    uploadUrl: notUsed,
  }
}

async function openTwo(bots: ReadonlyMap<string, FakeBot>) {
  const store = await openMemoryStore()
  const metrics = createMetrics('test_')
  const login = (name: string) => ({
    botToken: name,
    baseUrl: 'http://127.0.0.1',
    botId: name,
    userId: null,
    source: name,
    replaces: null,
  })
  const idle = () => Promise.reject(new Error('nobody logs in here'))
  const options = {
    store,
    logins: new Map<string, ReturnType<typeof login>>(),
    accounts: {
      connect({ botToken }: { botToken: string }) {
        const bot = bots.get(botToken)
        if (bot === undefined) throw new Error('no such bot')
        return { ...bot, close: () => Promise.resolve() }
      },
      vault: openVault(store.credentials, randomBytes(32), Date.now),
      configuredToken: null,
    },
    service: { url: 'http://127.0.0.1', hosts: [], qr: { begin: idle, status: idle } },
    doorbell: memoryDoorbell(),
    metrics,
    log: silentLog,
    now: Date.now,
    holdMs: 50,
    commandPrefix: '/',
    pacingMs: 0,
    maxParked: 10,
    requestsPerSecond: 0,
    upstreamHoldMs: 35_000,
    cdnUrl: 'http://127.0.0.1/c2c',
  }
  const first = await openHub(options)
  const clients: Client[] = []
  for (const { name, account } of CLIENTS) {
    const { client } = await first.addClient(name, { label: name, fallback: false, account })
    clients.push(client)
  }
  // The accounts come only now, when everybody is there to be routed to.
  for (const { id } of clients) {
    const client = first.registry.get(id)
    if (client) first.registry.seen(client)
  }
  await first.accounts.start(new Map([...bots.keys()].map((name) => [name, login(name)])))
  return {
    hub: first,
    clients,
    async stop() {
      await first.drain()
      await store.close()
      metrics.stop()
    },
  }
}

/** A client: polls, and answers each message with its own name and what it heard. */
async function answerAll(hub: Hub, client: Client, isOver: () => boolean): Promise<void> {
  const connection = { isClosed: () => false, onClose: () => {}, abort: () => {} }
  let cursor = ''
  while (!isOver()) {
    const answer = await pollOnce(hub.delivery, { client, tokenHash: 'x', cursor, connection })
    if (answer.type !== 'messages') continue
    answer.batch.written()
    cursor = answer.cursor
    const replies = answer.batch.messages.map(async ({ spec, contextToken }) => {
      const { content }: { content: string } = JSON.parse(spec)
      const to = await hub.recipient(client, { contextToken, userField: 'to_user_id' })
      const message = composeText(`${client.name} re ${content}`, contextToken)
      await hub.outbound.send({ clientId: client.id, ...to, message })
    })
    await Promise.all(replies)
  }
}

function done(bots: ReadonlyMap<string, FakeBot>): number {
  return [...bots.values()].reduce((sum, { sent }) => sum + sent.length, 0)
}
