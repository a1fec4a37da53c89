import { type BodyType, type HttpServer, httpServer } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'
import type { Metrics } from '../../kit/metrics.ts'
import type { AgentServer } from '../agent.ts'
import type { ApiAuthOptions } from './auth.ts'
import { allowOrigins } from './cors.ts'
import { frontDoor } from './door.ts'
import { agentErrorAnswer } from './errors.ts'
import { openApiDocument } from './openapi.ts'
import { runRoutes } from './run-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { streamRoutes } from './stream-routes.ts'
import { streamTickets } from './tickets.ts'
import { uiRoutes } from './ui-routes.ts'

export interface AgentHttpOptions extends ApiAuthOptions {
  log: Log
  metrics: Metrics
  version: string
  requestsPerSecond: number
  /** Told the code of every error that is answered. */
  onRefused: (code: string) => void
  /** What stream tickets are signed with. */
  ticketSecret: Buffer
  /** Why no work is taken now; null when it is. */
  whyNotReady: () => string | null
  /** What cannot be done now though work is taken; null when all can. */
  limited: () => string | null
}

const BODY_BYTES = 1024 * 1024

/** The agent server's HTTP. Everything but `/health`, `/ready` and the empty console is behind the door. */
export function agentHttp(
  agent: AgentServer,
  {
    log,
    metrics,
    version,
    whyNotReady,
    limited,
    ticketSecret,
    requestsPerSecond,
    onRefused,
    ...access
  }: AgentHttpOptions,
): HttpServer {
  const app = httpServer({
    errorAnswer: agentErrorAnswer(log, onRefused),
    bodyLimitBytes: BODY_BYTES,
    parseJson: JSON.parse,
    readType,
  })
  allowOrigins(app, access.allowedOrigins)
  const tickets = streamTickets(agent.now, ticketSecret)
  const callerOf = frontDoor(app, { ...access, tickets, requestsPerSecond, now: agent.now })
  const document = openApiDocument(version, access.keys !== null)

  app.get('/health', async (request, reply) => {
    const accept = request.headers.accept ?? ''
    if (accept.includes('json') && !accept.includes('*/*'))
      return { status: 'ok', model: agent.modelOf({ model: null }) }
    return reply.type('text/plain; charset=utf-8').send('ok')
  })
  app.get('/ready', async (_request, reply) => {
    const reason = whyNotReady()
    if (reason !== null) return reply.code(503).send({ ready: false, reason })
    const less = limited()
    return less === null ? { ready: true } : { ready: true, limited: less }
  })
  app.get('/tools', async () =>
    agent.registry.describe().map(({ readOnly, ...tool }) => ({ ...tool, read_only: readOnly })),
  )
  app.get('/openapi.json', async () => document)
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()))
  runRoutes(app, agent)
  sessionRoutes(app, agent, callerOf)
  streamRoutes(app, agent, tickets)
  uiRoutes(app)
  return app
}

/** The types that `curl -d` and `fetch` give a text when they are told none are taken where the text is JSON. */
function readType(type: string): BodyType {
  if (type === '' || /^application\/(json|[\w.-]+\+json)$/.test(type)) return 'json'
  return type === 'application/x-www-form-urlencoded' || type === 'text/plain' ? 'perhaps' : 'other'
}
