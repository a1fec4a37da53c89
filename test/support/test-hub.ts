import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { BotLogin } from '../../src/hub/credentials.ts'
import { hubServer } from '../../src/hub/http/server.ts'
import { type Hub, openHub } from '../../src/hub/hub.ts'
import { createMediaRelay } from '../../src/hub/media/relay.ts'
import type { BudgetLimits } from '../../src/hub/send-budget.ts'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import type { HubStore } from '../../src/hub/store/port.ts'
import { ilinkCdn } from '../../src/hub/upstream/cdn.ts'
import { ilinkUpstream } from '../../src/hub/upstream/ilink.ts'
import { ilinkLogin } from '../../src/hub/upstream/ilink-login.ts'
import type { QrService, Upstream } from '../../src/hub/upstream/port.ts'
import { openVault } from '../../src/hub/vault.ts'
import { memoryDoorbell } from '../../src/kit/doorbell.ts'
import { listen } from '../../src/kit/http.ts'
import { type Log, silentLog } from '../../src/kit/log.ts'
import { createMetrics } from '../../src/kit/metrics.ts'
import { type RunningSim, startSim } from '../../src/sim/main.ts'

export interface TestHubOptions {
  /** Taken as it is, and not closed; a memory store when absent. */
  store?: HubStore
  /** In place of the sim. */
  upstream?: Upstream
  /** A sim that is there already, and is not stopped. */
  sim?: RunningSim
  /** Who is logged in at the start; the sim's default bot as `main` when absent. */
  logins?: Map<string, BotLogin>
  /** Of the stored logins. */
  key?: Buffer
  qr?: QrService
  upstreamHosts?: string[]
  holdMs?: number
  pacingMs?: number
  commandPrefix?: string
  maxParked?: number
  requestsPerSecond?: number
  upstreamHoldMs?: number
  adminToken?: string | null
  metricsToken?: string | null
  insecure?: boolean
  allowedHosts?: string[]
  mediaRelay?: boolean
  budget?: Partial<BudgetLimits>
  publicUrl?: string
  /** Where it listens; loopback only when absent. */
  host?: string
  log?: Log
  /** The hub's clock; `advance` moves it. */
  now?: () => number
}

/** Any JSON answer with its status. */
export interface Answer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely by tests
  body: any
}

export interface TestHub {
  url: string
  hub: Hub
  store: HubStore
  sim: RunningSim
  /** Moves the hub's clock on. */
  advance(ms: number): void
  register(name: string, more?: object): Promise<string>
  /** Any call; `token` becomes the bearer header, a body that is no string becomes JSON. */
  call(
    method: string,
    path: string,
    options?: { token?: string | undefined; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Answer>
  /** getupdates in the spec's shape, or with more in the body. */
  poll(token: string, body?: object, signal?: AbortSignal): Promise<Answer>
  send(token: string, contextToken: string, content: string, more?: object): Promise<Answer>
  /** As a user, and waits until the hub has stored it. */
  say(user: string, text: string, more?: object): Promise<void>
  /** What the user saw from the bot, once there are `count` messages. */
  answers(user: string, count: number): Promise<string[]>
  stop(): Promise<void>
}

/** A hub with a real port, a real sim and a memory store, all in this process; gone when the test is over. */
export async function startTestHub(options: TestHubOptions = {}): Promise<TestHub> {
  const sim =
    options.sim ??
    (await startSim({ host: '127.0.0.1', port: 0, botToken: 'sim@im.bot:token', holdMs: 5_000, log: silentLog }))
  const store = options.store ?? (await openMemoryStore())
  const { upstream } = options
  const cdn = options.mediaRelay ? ilinkCdn() : null
  const metrics = createMetrics('switchboard_hub_')
  let aheadMs = 0
  const now = options.now ?? (() => Date.now() + aheadMs)
  const log = options.log ?? silentLog
  let draining = false
  const hub = await openHub({
    store,
    logins:
      options.logins ??
      new Map([
        [
          'main',
          { botToken: sim.botToken, baseUrl: sim.url, botId: null, userId: null, source: 'sim', replaces: null },
        ],
      ]),
    accounts: {
      connect: (login) =>
        upstream === undefined ? ilinkUpstream(login) : { ...upstream, close: () => Promise.resolve() },
      vault: openVault(store.credentials, options.key ?? randomBytes(32), now),
      configuredToken: null,
    },
    service: {
      url: sim.url,
      hosts: options.upstreamHosts ?? [],
      qr: options.qr ?? ilinkLogin({ baseUrl: sim.url }),
      loginPauseMs: 10,
    },
    doorbell: memoryDoorbell(),
    metrics,
    log,
    now,
    holdMs: options.holdMs ?? 300,
    commandPrefix: options.commandPrefix ?? '/',
    pacingMs: options.pacingMs ?? 0,
    maxParked: options.maxParked ?? 1_000,
    requestsPerSecond: options.requestsPerSecond ?? 0,
    upstreamHoldMs: options.upstreamHoldMs ?? 35_000,
    cdnUrl: `${sim.url}/c2c`,
    media: cdn && {
      relay: createMediaRelay({ key: randomBytes(32), cdnUrl: `${sim.url}/c2c`, now }),
      cdn,
      publicUrl: options.publicUrl ?? null,
    },
    pairing: { holdMs: 100, pauseMs: 10 },
    budget: {
      sendsPerContext: 10,
      replyWindowMs: 86_400_000,
      accountSends: 0,
      accountWindowMs: 300_000,
      ...options.budget,
    },
    retry: { firstRetryMs: 20, mostRetryMs: 200 },
  })
  const { adminToken = null, metricsToken = null, insecure = false, allowedHosts = [] } = options
  const app = hubServer(hub, {
    log,
    adminToken,
    metricsToken,
    insecure,
    allowedHosts,
    publicUrl: null,
    now,
    metrics,
    isDraining: () => draining,
  })
  const { port } = await listen(app, { host: options.host ?? '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${port}`

  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= (async () => {
      draining = true
      await hub.drain()
      app.server.closeAllConnections()
      await app.close()
      await cdn?.close()
      if (options.store === undefined) await store.close()
      if (options.sim === undefined) await sim.stop()
      metrics.stop()
    })()
    return stopped
  }
  onTestFinished(stop)

  const call: TestHub['call'] = async (method, path, { token, body, headers = {}, signal } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
      redirect: 'manual',
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') && text !== ''
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
  }

  return {
    url,
    hub,
    store,
    sim,
    advance(ms) {
      aheadMs += ms
    },
    async register(name, more = {}) {
      const answer = await call('POST', '/hub/register', {
        body: { name, ...more },
        ...(adminToken === null ? {} : { token: adminToken }),
      })
      if (answer.status !== 201) throw new Error(`register answered ${answer.status}: ${answer.text}`)
      return answer.body.token
    },
    call,
    poll: (token, body = {}, signal) =>
      call('POST', '/relay/bot/getupdates', { token, body: { token, ...body }, ...(signal ? { signal } : {}) }),
    send: (token, contextToken, content, more = {}) =>
      call('POST', '/relay/bot/sendmessage', {
        token,
        body: { token, context_token: contextToken, content, msg_type: 'text', ...more },
      }),
    async say(user, text, more = {}) {
      const { message_id: id } = sim.control.say({ user, text, ...more })
      await until(async () => (await store.messages.list({ limit: 50 })).some(({ upstreamId }) => upstreamId === id))
    },
    async answers(user, count) {
      let texts: string[] = []
      await until(async () => {
        const { messages } = await sim.control.conversation({ user })
        texts = messages.filter(({ from }) => from === 'bot').map((message) => String(message.text))
        return texts.length >= count
      })
      return texts
    },
    stop,
  }
}

/** Waits until `condition` holds; fails after `withinMs`. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const deadline = Date.now() + withinMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
