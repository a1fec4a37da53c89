import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Reply, Request } from '../../kit/http.ts'
import type { PollConnection } from '../delivery.ts'
import type { Batch } from '../queue.ts'

/** Watches the sockets for signs that an answer did not arrive. `finish` on a response only means that the kernel has it. */
export interface Receipts {
  /** Writes an answer and lets its batch know what becomes of it. */
  write(reply: Reply, body: string, batch: Batch | null, close: boolean): void
}

export function watchReceipts(server: Server): Receipts {
  const unproven = new WeakMap<Socket, Batch>()
  server.on('connection', (socket) => {
    // A reset after the answer: the client's kernel still held it, or the client was gone.
    socket.once('close', (hadError) => {
      if (hadError) unproven.get(socket)?.lost()
    })
  })
  // A second request on a connection proves that the answer before it was read.
  server.on('request', (request) => void unproven.delete(request.socket))

  return {
    write(reply, body, batch, close) {
      const { raw } = reply
      reply.hijack()
      if (batch !== null) {
        const { socket } = raw
        if (socket) unproven.set(socket, batch)
        raw.once('finish', batch.written)
        raw.once('close', () => {
          if (!raw.writableFinished) batch.lost()
        })
      }
      raw.writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
        ...(close ? { connection: 'close' } : {}),
      })
      raw.end(body)
    },
  }
}

/** A poll's connection as delivery sees it. `close` of the request fires as soon as its body is read; the response's does not. */
export function pollConnection(request: Request, reply: Reply): PollConnection {
  return {
    isClosed: () => reply.raw.destroyed || request.raw.socket.destroyed,
    onClose: (listener) => void reply.raw.once('close', listener),
    abort: () => void request.raw.socket.destroy(),
  }
}
