import type { ServerResponse } from 'node:http'
import { AppError } from '../../kit/errors.ts'
import type { Reply, Request } from '../../kit/http.ts'
import type { Endpoint } from '../../wire/sim.ts'
import type { Bot } from '../bots.ts'
import type { ParkedCall } from '../parking.ts'
import type { World } from '../world.ts'

/** A call of the bot protocol by a bot that is logged in. */
export interface BotCall {
  bot: Bot
  token: string
  body: unknown
  bodyText: string
  response: ServerResponse
  /** This sim's address as the caller knows it. */
  baseUrl: string
}

/** What goes back, where it is more than JSON text. */
interface Answer {
  body: Buffer
  headers: Record<string, string>
}

type Handler = (request: Request, reply: Reply) => Promise<unknown>

const JSON_TYPE = 'application/json; charset=utf-8'

/** A route for logged-in bots: checks the token, lets faults strike, answers with the JSON text that `act` returns. */
export function botRoute(world: World, endpoint: Endpoint, act: (call: BotCall) => string | Promise<string>): Handler {
  return (request, reply) => {
    const token = bearer(request)
    const spot = { endpoint, bot: world.bots.byToken(token)?.id }
    return underFaults(world, { spot, reply }, () =>
      act({
        bot: authenticate(world, endpoint, token),
        token,
        body: request.body ?? {},
        bodyText: request.bodyText,
        response: reply.raw,
        baseUrl: baseUrl(request),
      }),
    )
  }
}

/** A route that needs no token. Faults strike here too, unless they are meant for one bot. */
export function openRoute(
  world: World,
  endpoint: Endpoint,
  act: (request: Request, reply: Reply) => string | Answer | Promise<string>,
): Handler {
  return (request, reply) => underFaults(world, { spot: { endpoint }, reply }, () => act(request, reply))
}

/** The bot behind a token. Fails with `session_timeout` when the token is wrong, replaced, or made to look expired. */
export function authenticate(world: World, endpoint: Endpoint, token: string): Bot {
  const bot = world.bots.byToken(token)
  // The service lets notifystart through: clients call it to find out whether their session recovers.
  const isExempt = endpoint === 'notifystart' || endpoint === 'notifystop'
  if (bot === undefined || (!isExempt && world.faults.take('expired', { bot: bot.id }))) {
    throw new AppError('session_timeout', 'session timeout')
  }
  return bot
}

/** This sim's address as the caller of this request knows it. */
export function baseUrl(request: Request): string {
  return `http://${request.headers.host ?? 'localhost'}`
}

async function underFaults(
  world: World,
  { spot, reply }: { spot: { endpoint: Endpoint; bot?: string | undefined }; reply: Reply },
  act: () => string | Answer | Promise<string>,
): Promise<unknown> {
  if (world.faults.take('down', spot)) return hangUp(reply)
  const failing = world.faults.take('http_error', spot)
  if (failing) reply.code(failing.status ?? 500)
  const slow = world.faults.take('slow', spot)
  let answer: string | Answer
  try {
    answer = failing ? '' : await act()
  } finally {
    // What was asked has happened by now; only the caller learns of it late.
    if (slow) await delay(world, { endpoint: spot.endpoint, botId: spot.bot, response: reply.raw }, slow.delay_ms ?? 0)
  }
  if (reply.raw.destroyed) return reply.hijack()
  if (typeof answer === 'string') return reply.header('content-type', JSON_TYPE).send(answer)
  return reply.headers(answer.headers).send(answer.body)
}

async function delay(world: World, call: ParkedCall, waitMs: number): Promise<void> {
  await world.parking.park(call, { key: 'never rung', read: () => [], waitMs })
}

/** The peer sees its connection break, with no answer. */
function hangUp(reply: Reply): void {
  reply.hijack()
  reply.raw.destroy()
}

function bearer(request: Request): string {
  return /^bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
}
