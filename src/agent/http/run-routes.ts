import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { openSse, type SseStream, sseComment, sseEvent } from '../../kit/sse.ts'
import { StatelessRunBody } from '../../wire/agent.ts'
import type { AgentServer } from '../agent.ts'
import { eventData, wireUsage } from '../event-data.ts'
import { PUBLIC_EVENTS } from '../model.ts'
import { ProviderError } from '../provider/port.ts'
import type { StatelessOrder } from '../stateless.ts'
import { goalOf, limitsOf, messageBody } from './bodies.ts'
import { type EventQuery, headersOf, readEventQuery } from './events.ts'
import { bodyOf, wantsStream } from './session-routes.ts'

const checkBody = checker(StatelessRunBody)
/** A proxy that hears nothing for a minute hangs up, and that would cancel the run. */
const BEAT_MS = 15_000

/** Stateless runs: one request, one result, or its events. The caller hanging up cancels. */
export function runRoutes(app: HttpServer, agent: AgentServer): void {
  app.post('/run', async (request, reply) => {
    const body = checkBody(bodyOf(request))
    const goal = goalOf(body)
    const { extended, errorEvent } = readEventQuery(request.query)
    if (body.plan_mode === true)
      throw new AppError('bad_request', 'plan_mode needs a session: nobody can approve a plan here.', {
        details: { field: 'plan_mode' },
      })
    if (body.model !== undefined) await agent.checkModel(body.model)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const order = {
      goal,
      systemPrompt: body.system_prompt ?? null,
      maxSteps: body.max_steps ?? null,
      limits: limitsOf(body),
      model: body.model ?? null,
      signal: gone.signal,
    }
    if (wantsStream(request, false)) return streamAlone(agent, order, reply, { extended, errorEvent })
    try {
      const { runId, finishReason, messages, usage } = await agent.alone.run({ ...order, onEvent: () => {} })
      return {
        status: 'finished',
        finish_reason: finishReason,
        messages: messages.map(messageBody),
        usage: wireUsage(usage),
        run_id: runId,
      }
    } catch (error) {
      throw asProviderFailure(error)
    }
  })
}

/** Until the first event an error is an answer of its own; from then on it is an event, and `done` comes after it. */
async function streamAlone(
  agent: AgentServer,
  order: Omit<StatelessOrder, 'onEvent'>,
  reply: Reply,
  { extended, errorEvent }: Pick<EventQuery, 'extended' | 'errorEvent'>,
): Promise<Reply> {
  let stream: SseStream | undefined
  let seq = 0
  const open = () => {
    reply.hijack()
    return openSse(reply.raw, { retryMs: 1_000, maxUnreadBytes: 1024 * 1024, headers: headersOf(reply) })
  }
  const beat = setInterval(() => stream?.write(sseComment('alive')), BEAT_MS)
  try {
    await agent.alone.run({
      ...order,
      onEvent(event, runId) {
        stream ??= open()
        seq += 1
        const name = event.type === 'error' ? errorEvent : event.type
        if (extended || PUBLIC_EVENTS.includes(event.type))
          stream.write(sseEvent({ id: seq, event: name, data: eventData(event, seq, runId) }))
      },
    })
  } catch (error) {
    if (stream === undefined) throw asProviderFailure(error)
  } finally {
    clearInterval(beat)
    stream?.end()
  }
  return reply
}

function asProviderFailure(error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error
  return new AppError('provider_failed', `The model could not be asked: ${error.message}`, {
    details: { kind: error.kind },
    cause: error,
  })
}
