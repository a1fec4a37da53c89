import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Batch } from '../queue.ts'

/** What waits on a connection. */
interface Wait {
  stop(): void
}

/** Watches the sockets for signs that an answer did not arrive. `finish` on a response only means that the kernel has it. */
export interface Receipts {
  /** Watches the connections of the server that the answers are written on. */
  watch(server: Server): void
  /** Stops the wait when the connection closes. One for each connection, the newest; nothing is made for it. */
  hold(socket: Socket, wait: Wait): void
  letGo(socket: Socket): void
  /** Writes an answer and lets its batch know what becomes of it. */
  write(response: ServerResponse, body: string, batch: Batch | null, close: boolean): void
}

/** Where a client may hang on another node of ours, that node says what became of an answer. */
export interface HandOver {
  /** Headers to answer with; null when the client hangs on this node. */
  handOver(request: IncomingMessage, batch: Batch): Record<string, string> | null
}

export function openReceipts(others?: HandOver): Receipts {
  const unproven = new WeakMap<Socket, Batch>()
  const waits = new Map<Socket, Wait>()

  return {
    watch(server) {
      server.on('connection', (socket) => void socket.on('close', closed))
      // A second request on a connection proves that the answer before it was read.
      server.on('request', (request) => void unproven.delete(request.socket))
    },
    hold: (socket, wait) => void waits.set(socket, wait),
    letGo: (socket) => void waits.delete(socket),
    write(raw, body, batch, close) {
      const elsewhere = batch === null ? null : (others?.handOver(raw.req, batch) ?? null)
      if (batch !== null) {
        const { socket } = raw
        if (socket && elsewhere === null) unproven.set(socket, batch)
        if (elsewhere === null) raw.on('finish', batch.written)
        raw.on('close', () => {
          if (!raw.writableFinished) batch.lost()
        })
      }
      raw.writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
        ...(close ? { connection: 'close' } : {}),
        ...elsewhere,
      })
      raw.end(body)
    },
  }

  /** A reset after the answer: the client's kernel still held it, or the client was gone. One function for all of them. */
  function closed(this: Socket, hadError: boolean): void {
    if (hadError) unproven.get(this)?.lost()
    waits.get(this)?.stop()
  }
}
