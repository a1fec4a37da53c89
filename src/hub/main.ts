import { memoryDoorbell } from '../kit/doorbell.ts'
import type { HttpServer } from '../kit/http.ts'
import { listen } from '../kit/http.ts'
import type { Log } from '../kit/log.ts'
import type { Metrics } from '../kit/metrics.ts'
import { createMetrics } from '../kit/metrics.ts'
import { botOf, cursorSource, DEFAULT_ACCOUNT, digest } from './accounts.ts'
import type { HubConfig } from './config.ts'
import type { BotLogin } from './credentials.ts'
import { hubServer, type SharedServer } from './http/server.ts'
import { openHub } from './hub.ts'
import { credentialsKey } from './key-file.ts'
import { mediaKey } from './media/media-key.ts'
import { createMediaRelay } from './media/relay.ts'
import { isLoopbackUrl } from './service-hosts.ts'
import type { HubStore } from './store/port.ts'
import { openSqliteStore } from './store/sqlite.ts'
import { ilinkCdn } from './upstream/cdn.ts'
import { guardedUpstream } from './upstream/guarded.ts'
import { ilinkUpstream } from './upstream/ilink.ts'
import { ilinkLogin } from './upstream/ilink-login.ts'
import { openVault, type Vault } from './vault.ts'

/** A hub that listens. */
export interface RunningHub {
  host: string
  port: number
  url: string
  /** Answers parked polls, finishes what is under way, closes the store: within ten seconds. */
  stop(): Promise<void>
}

const STOP_WITHIN_MS = 8_000

/** Opens the store, starts polling the service, then listens: who can connect finds a hub that works. */
export async function startHub(config: HubConfig, log: Log, now: () => number = Date.now): Promise<RunningHub> {
  if (config.databaseUrl !== null) {
    const { startNode } = await import('./cluster/main.ts')
    return startNode({ ...config, databaseUrl: config.databaseUrl }, log, now)
  }
  const { dataDir, credentialsKey: given, credentialsKeyFile: file } = config
  const store = await openSqliteStore({ dir: dataDir })
  const metrics = createMetrics('switchboard_hub_')
  const keys = {
    credentials: (isNeeded: boolean) => credentialsKey({ given, file, dataDir, isNeeded }),
    media: () => mediaKey(dataDir),
  }
  const service = await openHubService({ config, store, metrics, log, now, keys }).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  const stop = async () => {
    const force = setTimeout(() => service.app.server.closeAllConnections(), STOP_WITHIN_MS)
    await service.stop()
    clearTimeout(force)
    await store.close()
    metrics.stop()
  }
  try {
    const { host, port } = await listen(service.app, config.addr)
    log.info('hub is listening', { host, port })
    return { host, port, url: urlOf(host, port), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** How a server at this address is called. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The hub on its store, with its HTTP, but not listening. */
export interface HubService {
  readonly app: HttpServer
  /** Answers parked polls and finishes what is under way. The store stays open. */
  stop(): Promise<void>
}

export interface ServiceOptions {
  config: HubConfig
  store: HubStore
  metrics: Metrics
  log: Log
  now: () => number
  keys: HubKeys
  /** A server that others share, and what it knows of its answers. */
  shared?: SharedServer
  /** Whether this process is the one that speaks to the service. */
  mayCall?: () => boolean
}

/** What the hub encrypts with. */
export interface HubKeys {
  /** For stored logins; `isNeeded`: some are there, so the key must be too. */
  credentials(isNeeded: boolean): Promise<Buffer>
  media(): Promise<Buffer>
}

const UPSTREAM_HOLD_MS = 35_000
const CDN_URL = 'https://novac2c.cdn.weixin.qq.com/c2c'
const PACING_MS = 1_500

/** Opens the hub on a store and starts polling the service. */
export async function openHubService(options: ServiceOptions): Promise<HubService> {
  const { config, store, metrics, log, now, keys, shared, mayCall = () => true } = options
  const { vault, logins } = await openLogins(config, store, keys, now)
  const { url } = config.upstream
  const cdnUrl = config.cdnUrl ?? (isLoopbackUrl(url) ? `${url}/c2c` : CDN_URL)
  const cdn = config.mediaRelay ? ilinkCdn() : null
  const hub = await openHub({
    store,
    logins,
    accounts: {
      connect: ({ baseUrl, botToken }) => guardedUpstream(ilinkUpstream({ baseUrl, botToken }), mayCall),
      vault,
      configuredToken: config.upstream.token,
    },
    service: { url, hosts: config.upstreamHosts, qr: ilinkLogin({ baseUrl: url }) },
    doorbell: memoryDoorbell(),
    metrics,
    log,
    now,
    holdMs: config.pollHoldMs,
    commandPrefix: config.commandPrefix,
    pacingMs: config.pacingMs ?? (isLoopbackUrl(url) ? 0 : PACING_MS),
    maxParked: config.maxPolls,
    requestsPerSecond: config.requestsPerSecond,
    upstreamHoldMs: UPSTREAM_HOLD_MS,
    pollAfter: config.pollAfter,
    cdnUrl,
    budget: config,
    media: cdn && {
      relay: createMediaRelay({ key: await keys.media(), cdnUrl, now }),
      cdn,
      publicUrl: config.publicUrl,
    },
  })
  let draining = false
  const { adminToken, metricsToken, insecure, allowedHosts } = config
  const app = hubServer(hub, {
    log,
    adminToken,
    metricsToken,
    insecure,
    allowedHosts,
    publicUrl: config.publicUrl,
    now,
    metrics,
    isDraining: () => draining,
    ...(shared && { shared }),
  })

  return {
    app,
    async stop() {
      draining = true
      await hub.drain()
      await app.close()
      await cdn?.close()
    },
  }
}

/** The stored logins, and what the configuration says of the default account. */
async function openLogins(
  { forgetLogins, upstream }: HubConfig,
  store: HubStore,
  keys: HubKeys,
  now: () => number,
): Promise<{ vault: Vault; logins: Map<string, BotLogin> }> {
  const stored = await store.credentials.load()
  if (forgetLogins) for (const { account } of stored) await store.credentials.remove(account)
  const isNeeded = stored.length > 0 && !forgetLogins
  const vault = openVault(store.credentials, await keys.credentials(isNeeded), now)
  const logins = await vault.load()
  const { token, url, source } = upstream
  // A login by QR took the place of the token that was configured then; a token that was configured since counts again.
  if (token !== null && logins.get(DEFAULT_ACCOUNT)?.replaces !== digest(token)) {
    logins.set(DEFAULT_ACCOUNT, {
      botToken: token,
      baseUrl: url,
      botId: token.includes(':') ? botOf(token) : null,
      userId: null,
      source: source ?? cursorSource(url, botOf(token)),
      replaces: null,
    })
  }
  return { vault, logins }
}

/** Copies the data directory of a hub that is stopped into a Postgres database that no hub has used. */
export async function migrateHub(migration: { dataDir: string; databaseUrl: string }): Promise<void> {
  const { migrateToPostgres } = await import('./cluster/main.ts')
  await migrateToPostgres(migration)
}
