import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import { openSse, sseEvent } from '../../kit/sse.ts'
import { StatelessRunBody } from '../../wire/agent.ts'
import type { AgentServer } from '../agent.ts'
import { eventData, wireUsage } from '../event-data.ts'
import { PUBLIC_EVENTS } from '../model.ts'
import { ProviderError } from '../provider/port.ts'
import { runAlone } from '../stateless.ts'
import { goalOf, messageBody } from './bodies.ts'
import { bodyOf, wantsStream } from './session-routes.ts'

const checkBody = checker(StatelessRunBody)
const DEFAULT_MAX_STEPS = 50

/** Stateless runs: one request, one result, or its events. The caller hanging up cancels. */
export function runRoutes(app: HttpServer, agent: AgentServer): void {
  app.post('/run', async (request, reply) => {
    const body = checkBody(bodyOf(request))
    const goal = goalOf(body)
    if (body.model !== undefined) agent.checkModel(body.model)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    const order = {
      goal,
      systemPrompt: body.system_prompt ?? null,
      maxSteps: body.max_steps ?? DEFAULT_MAX_STEPS,
      model: body.model ?? null,
      workspace: agent.root,
      signal: gone.signal,
      now: agent.now,
    }
    if (wantsStream(request, false)) return streamAlone(agent, order, reply)
    try {
      const { runId, finishReason, messages, usage } = await runAlone(agent.setup, { ...order, onEvent: () => {} })
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

async function streamAlone(
  agent: AgentServer,
  order: Omit<Parameters<typeof runAlone>[1], 'onEvent'>,
  reply: Reply,
): Promise<Reply> {
  reply.hijack()
  const stream = openSse(reply.raw, { retryMs: 1_000, maxUnreadBytes: 1024 * 1024 })
  let seq = 0
  let lastRun = ''
  const tell = (name: string, data: string) => {
    stream.write(sseEvent({ id: seq, event: name, data }))
  }
  try {
    await runAlone(agent.setup, {
      ...order,
      onEvent(event, runId) {
        lastRun = runId
        if (!PUBLIC_EVENTS.includes(event.type)) return
        seq += 1
        tell(event.type, eventData(event, seq, runId))
      },
    })
  } catch (error) {
    const failure = asProviderFailure(error)
    const message = failure instanceof AppError ? failure.message : 'Something went wrong in the server.'
    seq += 1
    tell('error', JSON.stringify({ message, run_id: lastRun, id: seq }))
    seq += 1
    tell('done', JSON.stringify({ finish_reason: 'ProviderStop', total_steps: 0, run_id: lastRun, id: seq }))
  } finally {
    stream.end()
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
