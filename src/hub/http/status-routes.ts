import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer } from '../../kit/http.ts'
import type { Metrics } from '../../kit/metrics.ts'
import type { Hub } from '../hub.ts'
import { same } from './admin-auth.ts'
import { linkDetail } from './bodies.ts'
import { bearer } from './relay-auth.ts'

/** Ids start at 1. */
const NO_LETTER = 0
const STORE_WITHIN_MS = 2_000

export interface StatusOptions {
  metrics: Metrics
  /** null: `/metrics` is open. */
  metricsToken: string | null
  isDraining: () => boolean
}

/** Health for people and probes, readiness for load balancers, figures for a collector. */
export function statusRoutes(app: HttpServer, hub: Hub, { metrics, metricsToken, isDraining }: StatusOptions): void {
  app.get('/health', async () => {
    // Ok only when every account is up: one that is not has users who get no answer.
    const up = hub.link.isUp()
    const { name, view } = hub.accounts.worst()
    return {
      status: up ? 'ok' : 'degraded',
      upstream: up ? 'connected' : 'reconnecting',
      clients: { online: hub.registry.onlineCount(), total: hub.registry.all().length },
      upstream_detail: { account: name, ...linkDetail(view), accounts: accountStates() },
    }
  })

  app.get('/ready', async (_request, reply) => {
    const reason = await whyNotReady()
    return reason === null ? { ready: true } : reply.code(503).send({ ready: false, reason })
  })

  app.get('/metrics', async (request, reply) => {
    if (!mayReadMetrics(request, metricsToken)) {
      throw new AppError('unauthorized', 'Metrics need "Authorization: Bearer <RELAY_METRICS_TOKEN>".')
    }
    return reply.type(metrics.contentType).send(await metrics.text())
  })

  function accountStates() {
    return Object.fromEntries(hub.accounts.all().map(({ name, line }) => [name, line.link.view().state]))
  }

  async function whyNotReady(): Promise<string | null> {
    if (isDraining()) return 'shutting down'
    // Until the service was asked for the first time; whether it answered matters to /health alone.
    if (hub.isStarting) return 'starting'
    return hub.isStoring && (await storeAnswers(hub)) ? null : 'the store does not answer'
  }
}

/** Makes a write that changes nothing: a flush alone does not reach the store when nothing waits. */
async function storeAnswers({ store, now }: Hub): Promise<boolean> {
  const done = new AbortController()
  const writes = Promise.all([store.deliveries.flush(), store.deadLetters.discard(NO_LETTER, now())])
  const late = delay(STORE_WITHIN_MS, false, { signal: done.signal })
  try {
    return await Promise.race([writes.then(() => true), late])
  } catch {
    return false
  } finally {
    done.abort()
  }
}

export function mayReadMetrics(request: Parameters<typeof bearer>[0], metricsToken: string | null): boolean {
  const given = bearer(request)
  return metricsToken === null || (given !== null && same(given, metricsToken))
}
