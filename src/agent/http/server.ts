import { type HttpServer, httpServer } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'
import type { Metrics } from '../../kit/metrics.ts'
import type { AgentServer } from '../agent.ts'
import { type ApiAuthOptions, apiAuth } from './auth.ts'
import { agentErrorAnswer } from './errors.ts'
import { openApiDocument } from './openapi.ts'
import { runRoutes } from './run-routes.ts'
import { sessionRoutes } from './session-routes.ts'

export interface AgentHttpOptions extends ApiAuthOptions {
  log: Log
  metrics: Metrics
  version: string
  isDraining: () => boolean
}

const BODY_BYTES = 1024 * 1024

/** The agent server's HTTP. Everything but `/health` and `/ready` is behind the door. */
export function agentHttp(
  agent: AgentServer,
  { log, metrics, version, isDraining, ...options }: AgentHttpOptions,
): HttpServer {
  const app = httpServer({ errorAnswer: agentErrorAnswer(log), bodyLimitBytes: BODY_BYTES, parseJson: JSON.parse })
  const auth = apiAuth(options)
  const callers = new WeakMap<object, string>()
  app.addHook('onRequest', (request, _reply, done) => {
    const path = request.routeOptions.url
    if (path !== '/health' && path !== '/ready') callers.set(request.raw, auth(request))
    done()
  })
  const document = openApiDocument(version, options.keys !== null)

  app.get('/health', async (request, reply) => {
    const accept = request.headers.accept ?? ''
    if (accept.includes('json') && !accept.includes('*/*'))
      return { status: 'ok', model: agent.modelOf({ model: null }) }
    return reply.type('text/plain; charset=utf-8').send('ok')
  })
  app.get('/ready', async (_request, reply) => reply.code(isDraining() ? 503 : 200).send({ ready: !isDraining() }))
  app.get('/tools', async () =>
    agent.registry.describe().map(({ readOnly, ...tool }) => ({ ...tool, read_only: readOnly })),
  )
  app.get('/openapi.json', async () => document)
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  runRoutes(app, agent)
  sessionRoutes(app, agent, ({ raw }) => callers.get(raw) ?? '')
  return app
}
