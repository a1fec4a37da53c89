import type { HttpServer } from '../../kit/http.ts'
import type { AgentServer } from '../agent.ts'
import { iso } from './bodies.ts'
import { readEventQuery } from './events.ts'
import { sessionOf, type WithId } from './session-routes.ts'
import type { StreamTickets } from './tickets.ts'

/** A session's events, and tickets for browsers that cannot send a key with the request for them. */
export function streamRoutes(app: HttpServer, agent: AgentServer, tickets: StreamTickets): void {
  const { streams } = agent

  app.get<WithId>('/sessions/:id/events', async (request, reply) => {
    const session = await sessionOf(agent, request)
    const query = readEventQuery(request.query)
    const start = await streams.start(session, request, query)
    if (request.method === 'HEAD') return reply.type('text/event-stream; charset=utf-8').send()
    if (query.until === 'done' && !start.bare && (await streams.isOver(session, { ...query, ...start })))
      return reply.code(204).send()
    await streams.stream(session, reply, { ...query, ...start })
    return reply
  })

  app.post<WithId>('/sessions/:id/events/ticket', async (request, reply) => {
    const { id } = await sessionOf(agent, request)
    const { ticket, expiresAt } = tickets.issue(id)
    const url = `/sessions/${id}/events?ticket=${ticket}`
    return reply
      .code(201)
      .header('cache-control', 'no-store')
      .send({ ticket, expires_at: iso(expiresAt), url })
  })
}
