import { AppError } from '../../kit/errors.ts'
import type { HttpServer } from '../../kit/http.ts'
import type { Metrics } from '../../kit/metrics.ts'
import type { Hub } from '../hub.ts'
import { same } from './admin-auth.ts'
import { upstreamDetail } from './admin-routes.ts'
import { bearer } from './relay-auth.ts'

export interface StatusOptions {
  metrics: Metrics
  /** null: `/metrics` is open. */
  metricsToken: string | null
  isDraining: () => boolean
}

/** Health for people and probes, readiness for load balancers, figures for a collector. */
export function statusRoutes(app: HttpServer, hub: Hub, { metrics, metricsToken, isDraining }: StatusOptions): void {
  app.get('/health', async () => {
    const up = hub.link.isUp()
    return {
      status: up ? 'ok' : 'degraded',
      upstream: up ? 'connected' : 'reconnecting',
      clients: { online: hub.registry.onlineCount(), total: hub.registry.all().length },
      upstream_detail: upstreamDetail(hub),
    }
  })

  app.get('/ready', async (_request, reply) => {
    if (isDraining()) return reply.code(503).send({ ready: false, reason: 'shutting down' })
    try {
      await hub.store.deliveries.flush()
      return { ready: true }
    } catch {
      return reply.code(503).send({ ready: false, reason: 'the store does not take writes' })
    }
  })

  app.get('/metrics', async (request, reply) => {
    const given = bearer(request)
    if (metricsToken !== null && (given === null || !same(given, metricsToken))) {
      throw new AppError('unauthorized', 'Metrics need "Authorization: Bearer <RELAY_METRICS_TOKEN>".')
    }
    return reply.type(metrics.contentType).send(await metrics.text())
  })
}
