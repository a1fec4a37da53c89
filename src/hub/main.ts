import { memoryDoorbell } from '../kit/doorbell.ts'
import { listen } from '../kit/http.ts'
import type { Log } from '../kit/log.ts'
import { createMetrics } from '../kit/metrics.ts'
import { botOf, cursorSource, DEFAULT_ACCOUNT, digest } from './accounts.ts'
import type { HubConfig } from './config.ts'
import type { BotLogin } from './credentials.ts'
import { hubServer } from './http/server.ts'
import { openHub } from './hub.ts'
import { credentialsKey } from './key-file.ts'
import { mediaKey } from './media/media-key.ts'
import { createMediaRelay } from './media/relay.ts'
import { isLoopbackUrl } from './service-hosts.ts'
import type { HubStore } from './store/port.ts'
import { openSqliteStore } from './store/sqlite.ts'
import { ilinkCdn } from './upstream/cdn.ts'
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

const UPSTREAM_HOLD_MS = 35_000
const CDN_URL = 'https://novac2c.cdn.weixin.qq.com/c2c'
const PACING_MS = 1_500
const STOP_WITHIN_MS = 8_000

/** Opens the store, starts polling the service, then listens: who can connect finds a hub that works. */
export async function startHub(config: HubConfig, log: Log, now: () => number = Date.now): Promise<RunningHub> {
  const store = await openSqliteStore({ dir: config.dataDir })
  const { vault, logins } = await openLogins(config, store, now).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  const metrics = createMetrics('switchboard_hub_')
  const { url } = config.upstream
  const cdnUrl = config.cdnUrl ?? (isLoopbackUrl(url) ? `${url}/c2c` : CDN_URL)
  const cdn = config.mediaRelay ? ilinkCdn() : null
  const hub = await openHub({
    store,
    logins,
    accounts: {
      connect: ({ baseUrl, botToken }) => ilinkUpstream({ baseUrl, botToken }),
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
    cdnUrl,
    budget: config,
    media: cdn && {
      relay: createMediaRelay({ key: await mediaKey(config.dataDir), cdnUrl, now }),
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
  })

  const stop = async () => {
    draining = true
    const force = setTimeout(() => app.server.closeAllConnections(), STOP_WITHIN_MS)
    await hub.drain()
    await app.close()
    clearTimeout(force)
    await cdn?.close()
    await store.close()
    metrics.stop()
  }
  try {
    const { host, port } = await listen(app, config.addr)
    log.info('hub is listening', { host, port })
    return { host, port, url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The stored logins, and what the configuration says of the default account. */
async function openLogins(
  { credentialsKey: given, credentialsKeyFile: file, dataDir, forgetLogins, upstream }: HubConfig,
  store: HubStore,
  now: () => number,
): Promise<{ vault: Vault; logins: Map<string, BotLogin> }> {
  const stored = await store.credentials.load()
  if (forgetLogins) for (const { account } of stored) await store.credentials.remove(account)
  const isNeeded = stored.length > 0 && !forgetLogins
  const vault = openVault(store.credentials, await credentialsKey({ given, file, dataDir, isNeeded }), now)
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
