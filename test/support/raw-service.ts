import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request as it came. */
export interface RawRequest {
  path: string
  headers: IncomingMessage['headers']
  /** As text, to the digit. */
  body: string
  /** Counts the connections from 1. */
  connection: number
}

export type RawHandler = (request: RawRequest, response: ServerResponse) => void | Promise<void>

/** A bare HTTP server that does to a caller whatever the test wants; gone when the test is over. */
export async function startRawService(handler: RawHandler | string) {
  const requests: RawRequest[] = []
  const numbers = new Map<Socket, number>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const seen: RawRequest = {
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
      connection: numbers.get(request.socket) ?? 0,
    }
    requests.push(seen)
    if (typeof handler === 'string') response.end(handler)
    else await handler(seen, response)
  })
  server.on('connection', (socket) => void numbers.set(socket, numbers.size + 1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(stop)
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}`, requests, stop }
}
