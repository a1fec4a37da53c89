import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { withMembers, withoutMembers } from '../../kit/lossless-json.ts'
import { checker } from '../../kit/schema.ts'
import { AnyBody, GetUpdatesBody, SendTypingBody } from '../../wire/relay.ts'
import type { PollAnswer } from '../delivery.ts'
import type { Hub } from '../hub.ts'
import type { Client } from '../model.ts'
import type { Batch } from '../queue.ts'
import { pollConnection, type Receipts } from './receipts.ts'
import { type Caller, relayCaller } from './relay-auth.ts'
import { readSend } from './send-body.ts'
import { readUploadAnswer } from './upload-answer.ts'

const PREFIXES = ['/relay/bot', '/ilink/bot']
const POLL_BODY_BYTES = 64 * 1024
const SEND_BODY_BYTES = 1024 * 1024
const OK = '{"ret":0,"errcode":0,"errmsg":""}'

const checkPoll = checker(GetUpdatesBody)
const checkTyping = checker(SendTypingBody)
const checkAny = checker(AnyBody)

/** The client endpoints: the spec's bodies and the real protocol's, one handler each, under both prefixes. */
export function relayRoutes(app: HttpServer, hub: Hub, receipts: Receipts): void {
  const authenticate = relayCaller(hub)
  const callers = new WeakMap<Request, Caller>()
  // Before the body is read: a stranger's body is not worth parsing.
  const onRequest = (request: Request, _reply: Reply, done: () => void) => {
    callers.set(request, authenticate(request))
    done()
  }

  const post = (path: string, bodyLimit: number, handler: (call: Call, reply: Reply) => Promise<unknown>) => {
    for (const prefix of PREFIXES) {
      app.post(`${prefix}/${path}`, { bodyLimit, onRequest }, async (request, reply) => {
        const caller = callers.get(request)
        if (caller === undefined) throw new Error('not authenticated')
        return handler({ ...caller, request, body: bodyOf(request, caller) }, reply)
      })
    }
  }

  post('getupdates', POLL_BODY_BYTES, async ({ client, tokenHash, request, body }, reply) => {
    const { get_updates_buf: cursor } = checkPoll(body)
    const closePoll = hub.registry.pollOpened(client)
    try {
      const connection = pollConnection(request, reply)
      const isGood = () => hub.registry.isGood(tokenHash)
      const answer = await hub.delivery.poll({ client, tokenHash, cursor, connection, isGood })
      countPoll(hub, answer)
      await answerPoll(answer, reply, receipts)
    } finally {
      closePoll()
    }
    return reply
  })

  post('sendmessage', SEND_BODY_BYTES, async ({ client, request, body }, reply) => {
    const { contextToken, userId, message } = readSend(body, request.bodyText, request.headers['idempotency-key'])
    const conversation = await hub.recipient(client, { contextToken, userId, userField: 'msg.to_user_id' })
    const { upstreamId } = await hub.outbound.send({ clientId: client.id, ...conversation, message })
    const id = upstreamId !== null && /^\d+$/.test(upstreamId) ? `,"message_id":${upstreamId}` : ''
    return json(reply, `{"ret":0,"errcode":0,"errmsg":""${id}}`)
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

  post('getuploadurl', POLL_BODY_BYTES, async ({ request, body }, reply) => {
    checkAny(body)
    const filekey =
      typeof body === 'object' && body !== null && 'filekey' in body && typeof body.filekey === 'string'
        ? body.filekey
        : null
    const forwarded = withoutMembers(request.bodyText.trim() || '{}', new Set(['token', 'base_info']))
    return json(
      reply,
      withMembers(
        readUploadAnswer(await hub.uploadUrl(forwarded), { cdnUrl: hub.cdnUrl, filekey }),
        '"ret":0,"errcode":0,"errmsg":""',
      ),
    )
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

/** The body, with its `token` held against the header's. */
function bodyOf(request: Request, { token }: Caller): unknown {
  const body = request.body === undefined ? {} : request.body
  const isObject = typeof body === 'object' && body !== null
  if (isObject && 'token' in body && typeof body.token === 'string' && body.token !== token) {
    throw new AppError(
      'unauthorized',
      'The token in the body is not the one in the Authorization header; send the same, or none.',
    )
  }
  return body
}

function countPoll({ figures, now }: Hub, answer: PollAnswer): void {
  figures.polls.inc({ answer: answer.type })
  if (answer.type !== 'messages') return
  const fresh = answer.batch.messages.filter(({ failures }) => failures === 0)
  for (const { queuedAt } of fresh) figures.wait.observe(Math.max(0, now() - queuedAt) / 1000)
  figures.handedOut.inc({ kind: 'first' }, fresh.length)
  if (fresh.length < answer.batch.messages.length)
    figures.handedOut.inc({ kind: 'again' }, answer.batch.messages.length - fresh.length)
}

async function answerPoll(answer: PollAnswer, reply: Reply, receipts: Receipts): Promise<void> {
  switch (answer.type) {
    case 'messages':
      return receipts.write(reply, messagesBody(answer.batch, answer.cursor), answer.batch, false)
    case 'empty':
      return receipts.write(
        reply,
        `{"ret":0,"errcode":0,"errmsg":"","messages":[],"msgs":[],"get_updates_buf":"${answer.cursor}"}`,
        null,
        answer.closing,
      )
    case 'displaced':
      await delay(answer.delayMs)
      throw new AppError('displaced', 'A newer poll with the same token took over; run one poller per token.')
    case 'revoked':
      throw new AppError('unauthorized', 'This token is no longer good; ask the hub’s operator for a new one.')
    case 'gone':
      reply.hijack()
      reply.raw.destroy()
  }
}

/** Stored texts are put together, never parsed and written again: ids keep their digits, unknown fields their place. */
function messagesBody({ messages }: Batch, cursor: string): string {
  const spec = messages.map(({ contextToken, spec }) => `{"context_token":"${contextToken}",${spec.slice(1)}`)
  const real = messages.map(({ contextToken, wireId, raw }) =>
    withMembers(raw, `"context_token":"${contextToken}","message_id":${wireId}`),
  )
  return `{"ret":0,"errcode":0,"errmsg":"","messages":[${spec.join(',')}],"msgs":[${real.join(',')}],"get_updates_buf":"${cursor}"}`
}

/** The hub's own ticket: clients keep theirs for a day, the service's live ten minutes, so the hub uses a live one itself. */
function ticketOf({ id }: Client): string {
  return Buffer.from(`switchboard-typing-${id}`).toString('base64')
}

function json(reply: Reply, body: string): Reply {
  return reply.type('application/json; charset=utf-8').send(body)
}
