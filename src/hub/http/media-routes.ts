import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import { Type } from 'typebox'
import { AppError } from '../../kit/errors.ts'
import type { HttpServer, Reply, Request } from '../../kit/http.ts'
import { checker } from '../../kit/schema.ts'
import type { Hub } from '../hub.ts'
import { type HubMedia, unknownMedia } from '../media/relay.ts'
import { checkLength, MAX_PLAIN_BYTES, tooLarge, uploadCheck } from '../media/upload-check.ts'
import { UpstreamError } from '../upstream/port.ts'

const Param = Type.String({ minLength: 1 })
const checkQuery = checker(
  Type.Object({ encrypted_query_param: Param, filekey: Type.Optional(Type.String()) }),
  'query',
)

const MAX_TRANSFERS = 64
/** Of one client, so that one that stalls leaves room for the others. */
const MAX_TRANSFERS_EACH = 16
const MAX_DRAINED_BYTES = 16 * 1024 * 1024

/** The service's file store as clients see it, served by the hub: bytes pass through, both ways, and are never gathered. */
export function mediaRoutes(app: HttpServer, hub: Hub, { relay, cdn }: HubMedia): void {
  let transfers = 0
  const transfersOf = new Map<number, number>()

  app.register(async (scope) => {
    // A scope of its own: here a body is a stream of bytes, where everywhere else it is JSON whatever its type says.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    scope.post('/c2c/upload', (request, reply) => transfer(reply, 'up', () => upload(request, reply)))
    scope.get('/c2c/download', (request, reply) => transfer(reply, 'down', () => download(request, reply)))
  })

  async function transfer(reply: Reply, direction: 'up' | 'down', work: () => Promise<Reply>): Promise<Reply> {
    if (transfers >= MAX_TRANSFERS) throw tooMany()
    transfers += 1
    reply.raw.once('close', () => {
      transfers -= 1
    })
    try {
      await work()
      hub.figures.media.inc({ direction, outcome: 'ok' })
      return reply
    } catch (error) {
      hub.figures.media.inc({ direction, outcome: 'failed' })
      throw error instanceof UpstreamError ? failed(error) : error
    }
  }

  async function upload(request: Request, reply: Reply): Promise<Reply> {
    const { encrypted_query_param: param, filekey = null } = checkQuery(request.query)
    const ticket = relay.upload(param, filekey)
    admit(ticket.clientId, reply)
    const length = lengthOf(request.raw)
    checkLength(length, ticket)
    const check = uploadCheck(ticket)
    const gone = whenGone(reply)
    const { raw } = request
    raw.once('error', (error) => check.destroy(error))
    raw.pipe(check)
    try {
      const stored = await cdn.upload(ticket.url, check, length ?? ticket.cipherBytes, gone)
      return await reply.header('x-encrypted-param', relay.uploaded(stored, ticket.clientId)).send('')
    } catch (error) {
      // The rest is taken in, so that a client that writes all before it reads hears why; up to a point.
      raw.unpipe(check)
      check.destroy()
      if (length !== null && length <= MAX_DRAINED_BYTES) raw.resume()
      else reply.header('connection', 'close')
      throw error
    }
  }

  async function download(request: Request, reply: Reply): Promise<Reply> {
    const { encrypted_query_param: param } = checkQuery(request.query)
    const { clientId, url } = relay.download(param)
    admit(clientId, reply)
    const { body, length } = await cdn.download(url, whenGone(reply))
    if (length !== null && length > MOST_DOWNLOAD_BYTES) {
      body.destroy()
      throw tooLarge()
    }
    if (length !== null) reply.header('content-length', length)
    return reply.type('application/octet-stream').send(body.pipe(limit(body)))
  }

  /** A ticket of a client that has gone opens nothing. */
  function admit(clientId: number, { raw }: Reply): void {
    const client = hub.registry.get(clientId)
    if (client === undefined) throw unknownMedia()
    const before = transfersOf.get(clientId) ?? 0
    if (before >= MAX_TRANSFERS_EACH) throw tooMany()
    transfersOf.set(clientId, before + 1)
    raw.once('close', () => {
      const left = (transfersOf.get(clientId) ?? 1) - 1
      if (left > 0) transfersOf.set(clientId, left)
      else transfersOf.delete(clientId)
    })
    hub.registry.seen(client)
    hub.rate.take(client.id)
  }
}

function tooMany(): AppError {
  return new AppError('media_busy', 'Too many files pass through the hub at once; try again.', { retryAfterMs: 2_000 })
}

const MOST_DOWNLOAD_BYTES = MAX_PLAIN_BYTES + 16

/** Ends a download that turns out to be larger than it may be. */
function limit(source: NodeJS.EventEmitter & { destroy(): void }): Transform {
  let total = 0
  const passing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      total += chunk.length
      done(total > MOST_DOWNLOAD_BYTES ? tooLarge() : null, chunk)
    },
  })
  source.once('error', (error) => passing.destroy(error))
  passing.once('close', () => source.destroy())
  return passing
}

/** Aborts when the client hangs up before it has its answer. */
function whenGone({ raw }: Reply): AbortSignal {
  const gone = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort()
  })
  return gone.signal
}

function lengthOf({ headers }: IncomingMessage): number | null {
  const length = headers['content-length']
  return length === undefined ? null : Number(length)
}

function failed(error: UpstreamError): AppError {
  if (error.kind !== 'refused')
    return new AppError('upstream_down', 'The file store of the messaging service cannot be reached; try again.', {
      retryAfterMs: 5_000,
      cause: error,
    })
  return new AppError('upstream_refused', 'The file store of the messaging service refused this file.', {
    details: { upstream_code: error.upstreamCode },
    cause: error,
  })
}
