import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import { dialectOf, errorBody, frames, type ServedTurn } from './model-wire.contract.ts'

/** How an answer goes wrong, or what it is instead of a turn. */
export type Fault =
  /** Nothing is ever sent. */
  | { type: 'silent' }
  /** So many pieces, then nothing more; the connection stays. */
  | { type: 'stall'; after: number }
  /** So many bytes, then the connection is torn down. */
  | { type: 'cut'; bytes: number }
  /** So many pieces, then the answer ends as if that were all. */
  | { type: 'end'; after: number }
  /** Pieces of one's own instead of the turn. */
  | { type: 'says'; pieces: readonly string[] }
  | { type: 'refuse'; status: number; message: string; code?: string; headers?: Record<string, string> }
  | { type: 'body'; status: number; body: string; headers?: Record<string, string> }

/** A turn, or what happens instead. */
export type Reply = ServedTurn & { fault?: Fault }

/** A request as it came in. */
export interface Received {
  path: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

/** A server that speaks the vendors' formats: over real sockets, one prepared reply for each request. */
export interface ModelServer {
  url: string
  /** The requests so far. */
  received: Received[]
  /** Adds a reply; the last one is repeated. */
  reply(...replies: Reply[]): void
  /** Resolves when a request has come in. */
  asked: Promise<void>
  /** Resolves when a client has hung up before its answer was complete. */
  hungUp: Promise<void>
}

/** Starts one that stops with the test. */
export async function modelServer(...replies: Reply[]): Promise<ModelServer> {
  const waiting = [...replies]
  const received: Received[] = []
  const asked = flag()
  const hungUp = flag()
  const server = createServer((request, response) => {
    response.on('close', () => response.writableEnded || hungUp.raise())
    void readBody(request).then((body) => {
      if (body === null) return
      received.push({ path: request.url ?? '', headers: request.headers, body })
      asked.raise()
      const reply = waiting.length > 1 ? waiting.shift() : waiting[0]
      return answer(response, request.url ?? '', reply ?? { text: ['ok'] })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => void server.close(() => resolve()))
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    reply: (...more) => void waiting.push(...more),
    asked: asked.raised,
    hungUp: hungUp.raised,
  }
}

async function answer(response: ServerResponse, path: string, { fault, ...turn }: Reply): Promise<void> {
  const dialect = dialectOf(path)
  if (dialect === null) return void response.writeHead(404).end('{"error":{"message":"no such path"}}')
  if (fault?.type === 'silent') return
  if (fault?.type === 'refuse') {
    const { status, message, code = 'some_error', headers } = fault
    return void response
      .writeHead(status, { ...JSON_TYPE, ...headers })
      .end(errorBody(dialect, status, { message, code }))
  }
  if (fault?.type === 'body') return void response.writeHead(fault.status, fault.headers).end(fault.body)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const pieces = fault?.type === 'says' ? [...fault.pieces] : frames(dialect, turn)
  if (fault?.type === 'cut') {
    await write(response, Buffer.from(pieces.join('')).subarray(0, fault.bytes))
    return void response.destroy()
  }
  const short = fault?.type === 'stall' || fault?.type === 'end'
  for (const piece of short ? pieces.slice(0, fault.after) : pieces) await write(response, piece)
  if (fault?.type !== 'stall') response.end()
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** One write after the other, so that the client gets them one by one as far as a network does. */
function write(response: ServerResponse, piece: string | Buffer): Promise<void> {
  return new Promise((resolve) => void response.write(piece, () => setImmediate(resolve)))
}

/** Null of a client that hung up before all of it was there: it has asked nothing. */
async function readBody(request: IncomingMessage): Promise<Record<string, unknown> | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
  } catch (error) {
    if (request.complete) throw error
  }
  return request.complete ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : null
}

function flag(): { raise: () => void; raised: Promise<void> } {
  let raise = () => {}
  const raised = new Promise<void>((resolve) => {
    raise = resolve
  })
  return { raise: () => raise(), raised }
}
