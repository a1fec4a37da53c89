import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Batch } from '../queue.ts'

/** Watches the sockets for signs that an answer did not arrive. `finish` on a response only means that the kernel has it. */
export interface Receipts {
  /** Writes an answer and lets its batch know what becomes of it. */
  write(response: ServerResponse, body: string, batch: Batch | null, close: boolean): void
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
    write(raw, body, batch, close) {
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
