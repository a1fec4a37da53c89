import { hkdfSync } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { AppError } from '../../kit/errors.ts'
import { isLocalCaller, listenPlain, plainServer } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'
import { createMetrics } from '../../kit/metrics.ts'
import { checkListen, openPostgres, type Sql } from '../../kit/postgres/connect.ts'
import { postgresLease } from '../../kit/postgres/lease.ts'
import { sharedLog } from '../../kit/postgres/shared-log.ts'
import { aborted, sleep } from '../../kit/retry.ts'
import type { HubConfig } from '../config.ts'
import { hubErrorAnswer } from '../http/errors.ts'
import { openReceipts } from '../http/receipts.ts'
import { mayReadMetrics } from '../http/status-routes.ts'
import { credentialsKey } from '../key-file.ts'
import { type HubKeys, type HubService, openHubService, type RunningHub, urlOf } from '../main.ts'
import { inboxHolds } from '../store/inbox.ts'
import { openReplica, seedLog } from '../store/replica.ts'
import { prepareDatabase } from './database.ts'
import { isPoll, openForwarder } from './forward.ts'
import { BATCHES_PATH, NOT_LEADING_HEADER, openHops } from './hop.ts'
import { copyIntoLog, type Migration } from './migrate.ts'
import { type ClusterNode, joinCluster } from './node.ts'

type NodeConfig = HubConfig & { databaseUrl: string }

const STOP_WITHIN_MS = 8_000
const LAST_ANSWERS_MS = 500
const TIDY_EVERY_MS = 50
/** For calls that a leader has begun to serve; later ones wait for the next leader. */
const FINISHED_WITHIN_MS = 2_000
/** For other nodes to tell what became of the last answers. */
const TOLD_WITHIN_MS = 1_000
const UPLOAD_MS = 10 * 60_000

/** Copies a data directory into a database, as {@link copyIntoLog} says. Fails with `inbox_not_empty` after a crash. */
export async function migrateToPostgres(migration: Migration): Promise<void> {
  if (await inboxHolds(migration.dataDir)) {
    const text =
      'The hub ended with messages that are not sorted into its database yet; start it once more, stop it, then migrate.'
    throw new AppError('inbox_not_empty', text)
  }
  return copyIntoLog(migration, seedLog)
}

/** Starts one of several hubs on one database. It listens at once; whoever leads answers. */
export async function startNode(config: NodeConfig, log: Log, now: () => number): Promise<RunningHub> {
  const sql = await openPostgres(config.databaseUrl)
  try {
    const secret = await prepareDatabase(sql)
    await checkListen(sql)
    return await listenAndJoin(config, log, now, sql, secret)
  } catch (error) {
    await sql.end({ timeout: 1 })
    throw error
  }
}

async function listenAndJoin(config: NodeConfig, log: Log, now: () => number, sql: Sql, secret: string) {
  let leading: (Pick<HubService, 'app'> & { holds(): boolean }) | null = null
  let node: ClusterNode | null = null
  let isClosing = false
  const hops = openHops(secret)
  const calls = callsUnderWay()
  const server = plainServer(dispatch, UPLOAD_MS)
  const receipts = openReceipts(hops)
  receipts.watch(server)
  const errorAnswer = hubErrorAnswer(log)
  const figures = createMetrics('switchboard_hub_')
  figures.gauge('node_leading', 'Whether this node leads: 1 or 0.', (gauge) => gauge.set(service() ? 1 : 0))
  let joined = () => {}
  const joining = new Promise<void>((resolve) => {
    joined = resolve
  })
  const leader = async (signal: AbortSignal) => {
    await Promise.race([joining, aborted(signal)])
    return node?.leader(signal) ?? null
  }
  const isLocal = (raw: IncomingMessage) => isLocalCaller({ raw })
  const forwarder = openForwarder({ leader, secret, receipts, isLocal, errorAnswer })
  const { host, port } = await listenPlain(server, config.addr)
  const address = config.nodeUrl ?? urlOf(isEverywhere(host) ? hostname() : host, port)
  const keys = keysOf(config, secret)

  const close = async () => {
    // First: what comes from here on, and what is under way, is passed on to the next leader.
    isClosing = true
    const stopBy = performance.now() + STOP_WITHIN_MS
    await node?.resign()
    forwarder.drain()
    const leftMs = Math.max(LAST_ANSWERS_MS, stopBy - performance.now())
    const force = setTimeout(() => server.closeAllConnections(), leftMs)
    const tidy = setInterval(() => server.closeIdleConnections(), TIDY_EVERY_MS)
    await new Promise((resolve) => server.close(resolve))
    clearInterval(tidy)
    clearTimeout(force)
    await node?.stop()
    await forwarder.close()
    await sql.end({ timeout: 2 })
    figures.stop()
  }
  try {
    node = await joinCluster({
      sql,
      lease: postgresLease({ sql, address, lifeMs: config.leaseMs }),
      openReplica: () => openReplica({ dir: config.dataDir, log: sharedLog(sql) }),
      address,
      leaseMs: config.leaseMs,
      logger: log,
      async serve(store, holds) {
        const metrics = createMetrics('switchboard_hub_')
        metrics.gauge('node_leading', 'Whether this node leads: 1 or 0.', (gauge) => gauge.set(1))
        const shared = { server, receipts }
        const service = await openHubService({ config, store, metrics, log, now, keys, shared, mayCall: holds })
        await service.app.ready()
        leading = { app: service.app, holds }
        return {
          async stop() {
            leading = null
            await calls.finished(FINISHED_WITHIN_MS)
            await service.stop()
            await hops.settled(TOLD_WITHIN_MS)
            metrics.stop()
          },
        }
      },
      onRole: (role) => {
        if (role === 'following') forwarder.leaderChanged()
      },
    })
  } catch (error) {
    joined()
    await close()
    throw error
  }
  joined()
  log.info('hub node is listening', { host, port, address })
  return { host, port, url: urlOf(host, port), stop: close }

  function dispatch(request: IncomingMessage, response: ServerResponse): void {
    const fromNode = hops.recognise(request)
    const { url = '/' } = request
    const app = service()
    // Every connection ends with an answer, none under a call that is on its way.
    if (isClosing) response.shouldKeepAlive = false
    if (fromNode && url.startsWith(BATCHES_PATH)) takeFate(request, response)
    else if (app !== null) {
      if (!isPoll(request)) calls.begin(response)
      app.routing(request, response)
    } else if (fromNode) response.writeHead(503, { [NOT_LEADING_HEADER]: '1' }).end()
    else if (url === '/ready') tellReady(response)
    else if (url === '/metrics' && mayReadMetrics(request, config.metricsToken)) void tellFigures(response)
    else if (url === '/health' && whyNotReady() !== null) tellDegraded(response)
    else void forwarder.forward(request, response)
  }

  /** The hub that is open here: null as soon as another may lead, before this process has noticed. */
  function service(): HubService['app'] | null {
    return leading?.holds() ? leading.app : null
  }

  function whyNotReady(): string | null {
    if (isClosing) return 'shutting down'
    return node === null ? 'starting' : node.whyNotReady()
  }

  function takeFate(request: IncomingMessage, response: ServerResponse): void {
    const id = (request.url ?? '').slice(BATCHES_PATH.length)
    let fate = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      fate = (fate + text).slice(0, 16)
    })
    request.on('end', () => {
      if (fate === 'written' || fate === 'lost') hops.tell(id, fate)
      response.writeHead(204).end()
    })
  }

  function tellReady(response: ServerResponse): void {
    const reason = whyNotReady()
    if (reason === null) answerJson(response, 200, { ready: true, role: 'following' })
    else answerJson(response, 503, { ready: false, reason })
  }

  function tellDegraded(response: ServerResponse): void {
    const detail = {
      state: 'connecting',
      reason: whyNotReady() ?? '',
      action: 'wait; look at the nodes’ logs if it lasts',
    }
    const clients = { online: 0, total: 0 }
    answerJson(response, 200, { status: 'degraded', upstream: 'reconnecting', clients, upstream_detail: detail })
  }

  async function tellFigures(response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': figures.contentType }).end(await figures.text())
  }
}

/** Counts the calls that are being served. */
function callsUnderWay() {
  let count = 0
  let allDone = () => {}
  return {
    begin(response: ServerResponse): void {
      count += 1
      response.once('close', () => {
        count -= 1
        if (count === 0) allDone()
      })
    },
    async finished(withinMs: number): Promise<void> {
      if (count === 0) return
      const done = new AbortController()
      allDone = () => done.abort()
      await sleep(withinMs, done.signal)
    },
  }
}

/** Every node needs the same keys. What is not given follows from the nodes' secret. */
function keysOf({ credentialsKey: given, credentialsKeyFile: file, dataDir }: NodeConfig, secret: string): HubKeys {
  const derived = (purpose: string) => Buffer.from(hkdfSync('sha256', secret, '', `switchboard ${purpose}`, 32))
  return {
    async credentials(isNeeded) {
      if (given === null && file === null) return derived('credentials')
      return credentialsKey({ given, file, dataDir, isNeeded })
    },
    media: async () => derived('media'),
  }
}

function isEverywhere(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}
