import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../../kit/errors.ts'
import type { Log } from '../../kit/log.ts'
import { withMembers } from '../../kit/lossless-json.ts'
import type { PollAnswer, PollConnection } from '../delivery.ts'
import type { Hub } from '../hub.ts'
import type { Client, Delivery } from '../model.ts'
import type { Batch } from '../queue.ts'
import type { Registry } from '../registry.ts'
import { baseUrlOf } from './base-url.ts'
import { hubErrorAnswer } from './errors.ts'
import type { Receipts } from './receipts.ts'
import type { Caller } from './relay-auth.ts'

/** Serves a poll whose body is read, over Node's own objects. */
export type ServePoll = (
  request: IncomingMessage,
  response: ServerResponse,
  caller: Caller,
  cursor: string | undefined,
) => void

/** Polls wait in their thousands, so what is kept for each while it waits is as little as can be. */
export function pollServer(hub: Hub, receipts: Receipts, log: Log): ServePoll {
  const errorAnswer = hubErrorAnswer(log)

  return (request, response, { client, tokenHash }, cursor) => {
    const closePoll = hub.registry.pollOpened(client)
    const connection = new PollSocket(request, response, client, hub.registry, tokenHash)
    // One step for both ends of the wait: every further promise would be kept for as long.
    hub.delivery.poll({ client, tokenHash, cursor, connection }).then(
      (answer) => {
        closePoll()
        countPoll(hub, answer)
        answerPoll(answer, connection)
      },
      (error: unknown) => {
        closePoll()
        fail(connection, error)
      },
    )
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
        setTimeout(fail, answer.delayMs, socket, displaced())
        break
      case 'revoked':
        fail(
          socket,
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

  function fail({ request, response }: PollSocket, error: unknown): void {
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

/** A poll's connection as delivery sees it. A class, since its methods are then there once and not once per poll. */
class PollSocket implements PollConnection {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly client: Client
  readonly #registry: Registry
  readonly #tokenHash: string

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    client: Client,
    registry: Registry,
    tokenHash: string,
  ) {
    this.request = request
    this.response = response
    this.client = client
    this.#registry = registry
    this.#tokenHash = tokenHash
  }

  isClosed(): boolean {
    return this.response.destroyed || this.request.socket.destroyed
  }

  /** `close` of the request fires as soon as its body is read; the response's does not. */
  onClose(listener: () => void): void {
    this.response.once('close', listener)
  }

  abort(): void {
    this.request.socket.destroy()
  }

  isGood(): boolean {
    return this.#registry.isGood(this.#tokenHash)
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

function emptyBody(cursor: string): string {
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
