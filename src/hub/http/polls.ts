import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../kit/errors.ts'
import { bodyText, readJson } from '../../kit/http.ts'
import type { Log } from '../../kit/log.ts'
import { withMembers } from '../../kit/lossless-json.ts'
import { checker } from '../../kit/schema.ts'
import { GetUpdatesBody } from '../../wire/relay.ts'
import type { Poll, PollAnswer, PollConnection } from '../delivery.ts'
import type { Hub } from '../hub.ts'
import type { Client, Delivery } from '../model.ts'
import type { Batch } from '../queue.ts'
import { baseUrlOf } from './base-url.ts'
import { hubErrorAnswer } from './errors.ts'
import type { Receipts } from './receipts.ts'
import { type Caller, checkBodyToken, relayCaller } from './relay-auth.ts'

/** Serves polls over Node's own objects. */
export interface PollServer {
  /** One whose caller is known and whose body is read. Throws what is wrong with it. */
  serve(request: IncomingMessage, response: ServerResponse, caller: Caller, body: unknown): void
  /** Takes polls before the framework sees them, which would cost more than all else about a poll. */
  first(request: IncomingMessage, response: ServerResponse): boolean
}

export const POLL_BODY_BYTES = 64 * 1024
const POLL_PATHS = new Set(['/relay/bot/getupdates', '/ilink/bot/getupdates'])
const checkPoll = checker(GetUpdatesBody)

/** Polls wait in their thousands, so what is kept for each while it waits is as little as can be. */
export function pollServer(hub: Hub, receipts: Receipts, log: Log): PollServer {
  const errorAnswer = hubErrorAnswer(log)
  const authenticate = relayCaller(hub)
  const ends: PollEnds = {
    isGood: hub.registry.isGood,
    held: receipts.hold,
    answered(socket, answer) {
      receipts.letGo(socket.request.socket)
      hub.registry.pollClosed(socket.client)
      countPoll(hub, answer)
      try {
        answerPoll(answer, socket)
      } catch (error) {
        // Whatever it is, the polls that are answered after this one have no part in it.
        fail(socket.request, socket.response, error)
      }
    },
    failed({ client, request, response }, error) {
      receipts.letGo(request.socket)
      hub.registry.pollClosed(client)
      fail(request, response, error)
    },
  }

  return {
    serve,
    first(request, response) {
      const { method, url = '', headers } = request
      // One of unknown or too great length is the framework's to read, or to refuse.
      const isPoll =
        method === 'POST' && POLL_PATHS.has(url) && Number(headers['content-length'] ?? 0) <= POLL_BODY_BYTES
      if (!isPoll || headers['transfer-encoding'] !== undefined) return false
      // By then the rest of what came with the headers is read too, and that is mostly all of a poll.
      setImmediate(take, request, response)
      return true
    },
  }

  function take(request: IncomingMessage, response: ServerResponse): void {
    try {
      const caller = authenticate(request)
      if (request.complete) serve(request, response, caller, readBody(request.read()))
      else whenComplete(request, (bytes) => serveRead(request, response, caller, bytes))
    } catch (error) {
      fail(request, response, error)
    }
  }

  function serveRead(request: IncomingMessage, response: ServerResponse, caller: Caller, bytes: Buffer): void {
    try {
      serve(request, response, caller, readBody(bytes))
    } catch (error) {
      fail(request, response, error)
    }
  }

  function serve(request: IncomingMessage, response: ServerResponse, caller: Caller, body: unknown = {}): void {
    checkBodyToken(body, caller)
    const { get_updates_buf: cursor } = checkPoll(body)
    const { client, tokenHash } = caller
    hub.registry.pollOpened(client)
    hub.delivery.poll(new PollSocket(request, response, client, tokenHash, cursor, ends))
  }

  function answerPoll(answer: PollAnswer, socket: PollSocket): void {
    switch (answer.type) {
      case 'messages':
        receipts.write(socket.response, messagesBody(shown(answer.batch, socket), answer.cursor), answer.batch, false)
        break
      case 'empty':
        receipts.write(socket.response, emptyBody(answer.cursor), null, answer.closing)
        break
      case 'displaced':
        setTimeout(fail, answer.delayMs, socket.request, socket.response, displaced())
        break
      case 'revoked':
        fail(
          socket.request,
          socket.response,
          new AppError('unauthorized', 'This token is no longer good; ask the hub’s operator for a new one.'),
        )
        break
      case 'gone':
        socket.response.destroy()
    }
  }

  /** With files at the hub's own address, where it passes them through. */
  function shown({ messages }: Batch, { request, client }: PollSocket): Delivery[] {
    const { media } = hub
    if (media === null) return messages
    const baseUrl = baseUrlOf(request, media)
    return messages.map((message) => ({ ...message, raw: media.relay.inbound(message.raw, client, baseUrl) }))
  }

  function fail(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) return void response.destroy()
    const { url = '', method = '' } = request
    const { status, headers = {}, body } = errorAnswer(error, { url, method })
    const text = JSON.stringify(body)
    const length = Buffer.byteLength(text)
    response.writeHead(status, {
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': length,
    })
    response.end(text)
  }
}

function readBody(bytes: Buffer | null): unknown {
  return bytes === null ? undefined : readJson(bodyText(bytes), JSON.parse)
}

/** Nothing of this is left once the body is there. A client that hangs up before that has asked nothing. */
function whenComplete(request: IncomingMessage, onBody: (bytes: Buffer) => void): void {
  const chunks: Buffer[] = []
  const onData = (chunk: Buffer) => void chunks.push(chunk)
  request.on('data', onData)
  request.once('end', () => {
    request.off('data', onData)
    onBody(Buffer.concat(chunks))
  })
}

/** What becomes of polls, the same for all of them. */
interface PollEnds {
  isGood(tokenHash: string): boolean
  held: Receipts['hold']
  answered(socket: PollSocket, answer: PollAnswer): void
  failed(socket: PollSocket, error: unknown): void
}

/** A poll as delivery sees it. A class, since its methods are then there once and not once per poll. */
class PollSocket implements Poll, PollConnection {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly client: Client
  readonly tokenHash: string
  readonly cursor: string | undefined
  readonly #ends: PollEnds

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    client: Client,
    tokenHash: string,
    cursor: string | undefined,
    ends: PollEnds,
  ) {
    this.request = request
    this.response = response
    this.client = client
    this.tokenHash = tokenHash
    this.cursor = cursor
    this.#ends = ends
  }

  get connection(): PollConnection {
    return this
  }

  isClosed(): boolean {
    return this.response.destroyed || this.request.socket.destroyed
  }

  /** By the connection: `close` of the request fires as soon as its body is read, and a listener of its own costs more. */
  onClose(wait: { stop(): void }): void {
    this.#ends.held(this.request.socket, wait)
  }

  abort(): void {
    this.request.socket.destroy()
  }

  isGood(): boolean {
    return this.#ends.isGood(this.tokenHash)
  }

  onAnswer(answer: PollAnswer): void {
    this.#ends.answered(this, answer)
  }

  onFailure(error: unknown): void {
    this.#ends.failed(this, error)
  }
}

function displaced(): AppError {
  return new AppError('displaced', 'A newer poll with the same token took over; run one poller per token.')
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

/** The answer to a poll for which there is nothing. */
export function emptyBody(cursor: string): string {
  return `{"ret":0,"errcode":0,"errmsg":"","messages":[],"msgs":[],"get_updates_buf":"${cursor}"}`
}

/** Stored texts are put together, never parsed and written again: ids keep their digits, unknown fields their place. */
function messagesBody(messages: Delivery[], cursor: string): string {
  const spec = messages.map(({ contextToken, spec }) => `{"context_token":"${contextToken}",${spec.slice(1)}`)
  const real = messages.map(({ contextToken, wireId, raw }) =>
    withMembers(raw, `"context_token":"${contextToken}","message_id":${wireId}`),
  )
  return `{"ret":0,"errcode":0,"errmsg":"","messages":[${spec.join(',')}],"msgs":[${real.join(',')}],"get_updates_buf":"${cursor}"}`
}
