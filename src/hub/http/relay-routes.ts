import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { withMembers, withoutMembers } from '../../kit/lossless-json.ts'
import { checker } from '../../kit/schema.ts'
import { AnyBody, SendTypingBody } from '../../wire/relay.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'
import { baseUrlOf } from './base-url.ts'
import { POLL_BODY_BYTES, type PollServer } from './polls.ts'
import { type Caller, checkBodyToken, relayCaller } from './relay-auth.ts'
import { readSend } from './send-body.ts'
import { readUploadAnswer } from './upload-answer.ts'

const PREFIXES = ['/relay/bot', '/ilink/bot']
const SEND_BODY_BYTES = 1024 * 1024
const OK = '{"ret":0,"errcode":0,"errmsg":""}'

const checkTyping = checker(SendTypingBody)
const checkAny = checker(AnyBody)

/** The client endpoints: the spec's bodies and the real protocol's, one handler each, under both prefixes. */
export function relayRoutes(app: HttpServer, hub: Hub, polls: PollServer): void {
  const authenticate = relayCaller(hub)
  const callers = new WeakMap<Request, Caller>()
  // Before the body is read: a stranger's body is not worth parsing.
  const onRequest = (request: Request, _reply: Reply, done: () => void) => {
    callers.set(request, authenticate(request))
    done()
  }

  const callerOf = (request: Request) => {
    const caller = callers.get(request)
    if (caller === undefined) throw new Error('not authenticated')
    return caller
  }
  const post = (path: string, bodyLimit: number, handler: (call: Call, reply: Reply) => Promise<unknown>) => {
    for (const prefix of PREFIXES) {
      app.post(`${prefix}/${path}`, { bodyLimit, onRequest }, async (request, reply) => {
        const caller = callerOf(request)
        const { body = {} } = request
        checkBodyToken(body, caller)
        return handler({ ...caller, request, body }, reply)
      })
    }
  }

  for (const prefix of PREFIXES) {
    app.post(`${prefix}/getupdates`, { bodyLimit: POLL_BODY_BYTES, onRequest }, (request, reply) => {
      // Those that `polls.first` left. From here on they are two Node objects like the rest.
      polls.serve(request.raw, reply.raw, callerOf(request), request.body)
      reply.hijack()
    })
  }

  /** Files that the hub gave names of its own to get the service's back. */
  const outgoing = (bodyText: string, client: Client) =>
    hub.media === null ? bodyText : hub.media.relay.outbound(bodyText, client)

  post('sendmessage', SEND_BODY_BYTES, async ({ client, request, body }, reply) => {
    const { contextToken, userId, message } = readSend(
      body,
      outgoing(request.bodyText, client),
      request.headers['idempotency-key'],
    )
    const conversation = await hub.recipient(client, { contextToken, userId, userField: 'msg.to_user_id' })
    const { upstreamId, state } = await hub.outbound
      .send({ clientId: client.id, ...conversation, message })
      .catch((error: unknown) => {
        // Signs of progress come with every tool call; that one did not get through must not end the client's work.
        if (message.onlyProgress && error instanceof AppError) return { upstreamId: null, state: 'failed' }
        throw error
      })
    const id = upstreamId !== null && /^\d+$/.test(upstreamId) ? `,"message_id":${upstreamId}` : ''
    return json(reply, `{"ret":0,"errcode":0,"errmsg":""${id},"send_state":"${state}"}`)
  })

  post('sendtyping', POLL_BODY_BYTES, async ({ client, body }, reply) => {
    const { context_token: contextToken, ilink_user_id: ilinkUser, to_user_id: toUser, status = 1 } = checkTyping(body)
    if (!(contextToken || ilinkUser || toUser)) {
      throw new AppError('bad_request', 'context_token is missing; take it from the message you answer.', {
        details: { field: 'context_token' },
      })
    }
    const userField = ilinkUser ? 'ilink_user_id' : 'to_user_id'
    const conversation = await hub.recipient(client, { contextToken, userId: ilinkUser || toUser, userField })
    await hub.showTyping(client, conversation, status === 1)
    return json(reply, OK)
  })

  post('getconfig', POLL_BODY_BYTES, async ({ client, body }, reply) => {
    checkAny(body)
    return json(reply, `{"ret":0,"errcode":0,"errmsg":"","typing_ticket":"${ticketOf(client)}"}`)
  })

  post('getuploadurl', POLL_BODY_BYTES, async ({ client, request, body }, reply) => {
    checkAny(body)
    const filekey = textIn(body, 'filekey')
    const forwarded = withoutMembers(request.bodyText.trim() || '{}', new Set(['token', 'base_info']))
    const given = await hub.uploadUrl(client, textIn(body, 'to_user_id'), forwarded)
    const answer = readUploadAnswer(given, { cdnUrl: hub.cdnUrl, filekey })
    const { media } = hub
    const address =
      media === null
        ? answer
        : media.relay.uploadAnswer(answer, { body, client, baseUrl: baseUrlOf(request.raw, media) })
    return json(reply, withMembers(address, '"ret":0,"errcode":0,"errmsg":""'))
  })

  post('msg/notifystart', POLL_BODY_BYTES, async ({ body }, reply) => {
    checkAny(body)
    return json(reply, OK)
  })

  post('msg/notifystop', POLL_BODY_BYTES, async ({ client, body }, reply) => {
    checkAny(body)
    hub.registry.stopped(client)
    hub.stopTyping(client)
    return json(reply, OK)
  })
}

interface Call extends Caller {
  request: Request
  body: unknown
}

function textIn(body: unknown, key: string): string | null {
  const value =
    typeof body === 'object' && body !== null ? Object.entries(body).find(([name]) => name === key)?.[1] : null
  return typeof value === 'string' ? value : null
}

/** The hub's own ticket: clients keep theirs for a day, the service's live ten minutes, so the hub uses a live one itself. */
function ticketOf({ id }: Client): string {
  return Buffer.from(`switchboard-typing-${id}`).toString('base64')
}

function json(reply: Reply, body: string): Reply {
  return reply.type('application/json; charset=utf-8').send(body)
}
