import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { AppError } from './errors.ts'
import { parseLossless } from './lossless-json.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it came, for what must be passed on untouched. */
    bodyText: string
    /** The content type as it came; empty when there was none. */
    contentType: string
  }
  interface FastifyContextConfig {
    /** `text` leaves the body alone (a form); the default is JSON, whatever the content type says. */
    bodyAs?: 'json' | 'text'
  }
}

export type { FastifyInstance as HttpServer, FastifyReply as Reply, FastifyRequest as Request } from 'fastify'

/** How an error looks on the wire. */
export interface ErrorAnswer {
  status: number
  body: unknown
  headers?: Record<string, string>
}

/** Taken as JSON; taken if it happens to be JSON; not taken. What is not taken is a 415. */
export type BodyType = 'json' | 'perhaps' | 'other'

export interface HttpOptions {
  /** The one place of a service that turns errors into bodies. Gets everything that is thrown. */
  errorAnswer: (error: unknown, request: FastifyRequest) => ErrorAnswer
  bodyLimitBytes: number
  /** Reads a JSON text. The default turns integers that a double cannot hold into strings of their digits. */
  parseJson?: (text: string) => unknown
  /** What to make of a body's type (lower case, without parameters; empty for none). By default every one is taken as JSON. */
  readType?: (type: string) => BodyType
  /** A server that is there already and calls `app.routing`; it is not closed with the app. */
  server?: Server
  /** For a request to arrive, body and all. */
  requestTimeoutMs?: number
  /** Sees every request before the framework does; true takes it. */
  first?: (request: IncomingMessage, response: ServerResponse) => boolean
}

const KEEP_ALIVE_MS = 75_000 // above nginx's 60 s, and long enough to see whether an answer was received
const REQUEST_TIMEOUT_MS = 60_000
const MAX_PATH_PART = 1_000
const MAX_IGNORED_BYTES = 16 * 1024 * 1024
const FORWARDING_HEADER = /^(x-forwarded(-.*)?|forwarded|via|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip)$/
const LINGER_MS = 1_000

/** A server with our rules: JSON under any content type, no coercion, no body shape but ours on any failure. */
export function httpServer({
  errorAnswer,
  bodyLimitBytes,
  parseJson = parseLossless,
  readType = () => 'json',
  requestTimeoutMs = REQUEST_TIMEOUT_MS,
  server,
  first,
}: HttpOptions): FastifyInstance {
  const app = fastify({
    ...(server && { serverFactory: () => server }),
    logger: false,
    http: { requireHostHeader: false }, // its answer would not be ours
    bodyLimit: bodyLimitBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: requestTimeoutMs, // a parked poll has arrived
    ...(first && { serverFactory: (framework: RequestListener) => serverWith(first, framework, requestTimeoutMs) }),
    routerOptions: { maxParamLength: MAX_PATH_PART },
    forceCloseConnections: 'idle',
    return503OnClosing: false, // its body would not be ours
    // Hooks are passed over here.
    frameworkErrors: (error, request, reply) => answerAfterBody(request, reply, () => sendError(error, request, reply)),
    clientErrorHandler: answerBrokenRequest,
  })
  const methodsOf = trackRoutes(app)
  if (server === undefined) closeSilentToo(app.server)
  if (server === undefined) app.server.on('checkExpectation', refuseExpectation)
  app.decorateRequest('bodyText', '')
  app.decorateRequest('contentType', '')
  app.removeAllContentTypeParsers()
  // With callbacks, here and in the hooks that every request passes: promises would cost as much as the rest of them.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request: FastifyRequest, bytes: Buffer, done) =>
    done(null, readBody(request, bytes, parseJson, readType)),
  )
  app.addHook('onRequest', (request, _reply, done) => {
    // Clients send odd, wrong or no content types; what counts is whether the body parses, unless a service is strict.
    request.contentType = (request.raw.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
    request.raw.headers['content-type'] = 'application/json'
    if (lacksHost(request)) return done(new AppError('bad_request', 'The Host header is missing.'))
    done()
  })
  // Before the body is read: nobody wants it.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const isFor = !request.is404 && !lacksPathPart(request)
    done(isFor ? null : notFound(request, methodsOf), payload)
  })
  app.addHook('onSend', (request, reply, payload, done) => answerAfterBody(request, reply, () => done(null, payload)))
  // Validation is done in the handlers, by schema.ts; the framework's own would coerce.
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply))
  app.setNotFoundHandler((request, reply) => sendError(notFound(request, methodsOf), request, reply))
  return app

  function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply) {
    const { status, body, headers } = errorAnswer(asAppError(error, request), request)
    return reply
      .code(status)
      .headers(headers ?? {})
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(body))
  }
}

/** A server by the same rules for what is not ours to answer: its requests go to apps that come and go, or elsewhere. */
export function plainServer(handler: RequestListener, requestTimeoutMs = REQUEST_TIMEOUT_MS): Server {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: requestTimeoutMs }, handler)
  server.on('checkExpectation', refuseExpectation)
  server.on('clientError', answerBrokenRequest)
  closeSilentToo(server)
  return server
}

/**
 * A connection that never said a word counts as busy in Node, and would hold up a close. Browsers open them on suspicion,
 * and so does undici after an aborted call.
 */
function closeSilentToo(server: Server): void {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const closeIdle = server.closeIdleConnections.bind(server)
  // Part of every close, after which no connection comes any more.
  server.closeIdleConnections = () => {
    closeIdle()
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }
}

function serverWith(first: NonNullable<HttpOptions['first']>, framework: RequestListener, requestTimeoutMs: number) {
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    if (!first(request, response)) framework(request, response)
  })
  // What the framework sets on a server of its own.
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.requestTimeout = requestTimeoutMs
  return server
}

/**
 * Connections that may wait to be taken; the system may allow fewer. After a restart thousands of polls come back at once,
 * and with Node's 511 some of them were reset.
 */
const BACKLOG = 16_384

/** Listens on `host:port` and says where it listens. */
export async function listen(
  app: FastifyInstance,
  address: { host: string; port: number },
): Promise<{ host: string; port: number }> {
  return listening(app.server, address, () => app.listen({ ...address, backlog: BACKLOG }))
}

/** The same for a server without an app. */
export async function listenPlain(
  server: Server,
  address: { host: string; port: number },
): Promise<{ host: string; port: number }> {
  return listening(server, address, async () => {
    server.listen({ ...address, backlog: BACKLOG })
    await once(server, 'listening')
  })
}

async function listening(
  server: Server,
  { host, port }: { host: string; port: number },
  start: () => Promise<unknown>,
): Promise<{ host: string; port: number }> {
  try {
    await start()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE') {
      throw new AppError('address_in_use', `${host}:${port} is taken by another program; choose another with --addr.`, {
        cause: error,
      })
    }
    throw new AppError(
      'address_refused',
      `Cannot listen on ${host}:${port} (${String(code)}); choose another with --addr.`,
      { cause: error },
    )
  }
  const address = server.address()
  if (!isAddressInfo(address)) throw new Error('the server has no address')
  return { host: address.address, port: address.port }
}

/** Tells whether a request came over this machine's own loopback, with no proxy in between. */
export function isLocalCaller({ raw }: { raw: IncomingMessage }): boolean {
  // An empty one counts too: a caller may send it to hide what the proxy adds.
  if (Object.keys(raw.headers).some((name) => FORWARDING_HEADER.test(name))) return false
  const peer = raw.socket.remoteAddress ?? ''
  return peer === '::1' || peer.replace(/^::ffff:/, '').startsWith('127.')
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

function readBody(
  request: FastifyRequest,
  bytes: Buffer,
  parseJson: (text: string) => unknown,
  readType: (type: string) => BodyType,
): unknown {
  const type = bytes.length === 0 ? 'json' : readType(request.contentType)
  if (type === 'other') throw notJson()
  request.bodyText = bodyText(bytes)
  if (request.routeOptions.config.bodyAs === 'text') return request.bodyText
  return readJson(request.bodyText, parseJson, type === 'perhaps' ? notJson : brokenJson)
}

/** A body as text; `bad_request` when it is none. */
export function bodyText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new AppError('bad_request', 'The body is not valid UTF-8; send JSON in UTF-8.')
  return bytes.toString('utf8')
}

/** What a body says; undefined when it is empty, `bad_request` when it is no JSON. */
export function readJson(text: string, parseJson: (text: string) => unknown, broken = brokenJson): unknown {
  if (text.trim() === '') return undefined
  try {
    return parseJson(text)
  } catch {
    throw broken()
  }
}

function brokenJson(): AppError {
  return new AppError('bad_request', 'The body is not valid JSON; send a JSON object.')
}

function notJson(): AppError {
  return new AppError('unsupported_media_type', 'The body is not JSON; send it with Content-Type: application/json.')
}

function asAppError(error: unknown, request: FastifyRequest): unknown {
  if (!(error instanceof Error) || !('code' in error) || error instanceof AppError) return error
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new AppError('too_large', 'The body is too large.')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new AppError(
        'bad_request',
        'The body does not match its headers; send JSON with the right Content-Length.',
      )
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new AppError('bad_request', 'The path is not a valid URL path.')
    case 'ECONNRESET':
      // Nobody is left to read this, but a caller who hangs up is no bug of ours.
      return request.raw.complete ? error : new AppError('bad_request', 'The request ended before its body did.')
    default:
      return error
  }
}

/** Which methods there are for a path, so that a wrong one is told from a wrong path. */
function trackRoutes(app: FastifyInstance): (path: string) => string[] {
  const routes: { method: string; pattern: RegExp }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    const pattern = new RegExp(`^${escaped.replace(/:[^/]+/g, '[^/]+').replaceAll('*', '.*')}$`)
    for (const one of [method].flat()) routes.push({ method: one, pattern })
  })
  return (path) => [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))]
}

function notFound(request: FastifyRequest, methodsOf: (path: string) => string[]): AppError {
  const path = request.url.split('?')[0] ?? '/'
  const allow = methodsOf(path).join(', ')
  if (allow === '') return new AppError('not_found', `There is nothing at ${request.method} ${shorten(path)}.`)
  return new AppError('method_not_allowed', `${shorten(path)} takes ${allow}, not ${request.method}.`, {
    details: { allow },
  })
}

function lacksHost({ raw }: FastifyRequest): boolean {
  return raw.headers.host === undefined && raw.httpVersion !== '1.0'
}

/** `/things//parts`: the router takes an empty part for a name, but nothing has an empty name. */
function lacksPathPart({ params }: FastifyRequest): boolean {
  return Object.entries(params ?? {}).some(([name, value]) => value === '' && name !== '*')
}

/**
 * Whoever hangs up while a body still arrives takes back the answer too, for the other side may not have read it yet. So
 * an answer that ends the connection is given when the body is there, unless it is too much or too slow.
 */
function answerAfterBody(request: FastifyRequest, reply: FastifyReply, answer: () => void): void {
  if (request.raw.complete || !endsConnection(request, reply)) answer()
  else takeInRest(request.raw, answer)
}

function endsConnection({ raw }: FastifyRequest, reply: FastifyReply): boolean {
  const says = (value: unknown) => String(value ?? '').toLowerCase()
  if (says(reply.getHeader('connection')).includes('close')) return true
  const asked = says(raw.headers.connection)
  return raw.httpVersion === '1.0' ? !asked.includes('keep-alive') : asked.includes('close')
}

function takeInRest(request: IncomingMessage, then: () => void): void {
  let bytes = 0
  const patience = setTimeout(finish, LINGER_MS)
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    patience.refresh()
    if (bytes > MAX_IGNORED_BYTES) finish()
  }
  request.on('data', count).once('end', finish).once('close', finish)

  function finish(): void {
    clearTimeout(patience)
    request.off('data', count).off('end', finish).off('close', finish).resume()
    then()
  }
}

function shorten(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path
}

/** What cannot be parsed as HTTP has no request to answer; a person with netcat still gets a reason. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy(error)
  const [status, text] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The headers are too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request took too long to arrive.']
        : ['400 Bad Request', 'This is not a valid HTTP request.']
  const body = brokenBody('bad_request', text)
  // Ended, not destroyed, so that the text arrives; but a caller that never hangs up is not waited for.
  socket.setTimeout(LINGER_MS, () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** `Expect` can only ask for `100-continue`, which the server answers by itself. */
function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const body = brokenBody('expectation_failed', 'The only Expect header that is understood is 100-continue.')
  takeInRest(request, () =>
    response
      .writeHead(417, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
        connection: 'close',
      })
      .end(body),
  )
}

function brokenBody(code: string, message: string): string {
  return JSON.stringify({ error: { code, message }, request_id: randomUUID() })
}
