import { createHash } from 'node:crypto'
import { memoryDoorbell } from '../kit/doorbell.ts'
import { listen } from '../kit/http.ts'
import type { Log } from '../kit/log.ts'
import { createMetrics } from '../kit/metrics.ts'
import type { HubConfig } from './config.ts'
import { hubServer } from './http/server.ts'
import { openHub } from './hub.ts'
import { mediaKey } from './media/media-key.ts'
import { createMediaRelay } from './media/relay.ts'
import { openSqliteStore } from './store/sqlite.ts'
import { ilinkCdn } from './upstream/cdn.ts'
import { ilinkUpstream } from './upstream/ilink.ts'

/** A hub that listens. */
export interface RunningHub {
  host: string
  port: number
  url: string
  /** Answers parked polls, finishes what is under way, closes the store: within ten seconds. */
  stop(): Promise<void>
}

const ACCOUNT = 'main'
const UPSTREAM_HOLD_MS = 35_000
const CDN_URL = 'https://novac2c.cdn.weixin.qq.com/c2c'
const PACING_MS = 1_500
const STOP_WITHIN_MS = 8_000

/** Opens the store, starts polling the service, then listens: who can connect finds a hub that works. */
export async function startHub(config: HubConfig, log: Log, now: () => number = Date.now): Promise<RunningHub> {
  const store = await openSqliteStore({ dir: config.dataDir })
  const metrics = createMetrics('switchboard_hub_')
  const upstream = ilinkUpstream({ baseUrl: config.upstream.url, botToken: config.upstream.token })
  const cdnUrl = config.cdnUrl ?? (isLoopback(config.upstream.url) ? `${config.upstream.url}/c2c` : CDN_URL)
  const cdn = config.mediaRelay ? ilinkCdn() : null
  const hub = await openHub({
    store,
    upstream,
    doorbell: memoryDoorbell(),
    metrics,
    log,
    now,
    account: ACCOUNT,
    cursorSource: config.upstream.source,
    holdMs: config.pollHoldMs,
    commandPrefix: config.commandPrefix,
    pacingMs: config.pacingMs ?? (isLoopback(config.upstream.url) ? 0 : PACING_MS),
    maxParked: config.maxPolls,
    requestsPerSecond: config.requestsPerSecond,
    upstreamHoldMs: UPSTREAM_HOLD_MS,
    cdnUrl,
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
    await upstream.close()
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

/** Which cursor belongs to a service and a bot; the secret half of the token is left out. */
export function cursorSource(url: string, token: string): string {
  const bot = token.includes(':') ? token.slice(0, token.indexOf(':')) : token
  return createHash('sha256').update(`${url}\n${bot}`).digest('hex').slice(0, 16)
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
}
