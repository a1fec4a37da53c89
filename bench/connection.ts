import { once } from 'node:events'
import { connect } from 'node:net'

/** A kept-alive HTTP connection that costs next to nothing, so that the load generator is not what is measured. */
export interface Connection {
  readonly opened: Promise<unknown>
  /** Writes a POST; its answer goes to `onAnswer`. One at a time. */
  post(path: string, body: string): void
  close(): void
}

export interface ConnectionOptions {
  port: number
  token: string
  /** Gets each answer: its status, and its body as ASCII. */
  onAnswer: (status: number, body: string) => void
  onBroken: (error: Error) => void
}

const HEAD_END = '\r\n\r\n'

/** Opens a connection to a server on loopback that answers with a Content-Length. */
export function openConnection({ port, token, onAnswer, onBroken }: ConnectionOptions): Connection {
  const headers = `HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n`
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let pending: Buffer | null = null
  let closed = false
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed a connection')))
  socket.on('data', (chunk) => {
    const bytes: Buffer = pending === null ? chunk : Buffer.concat([pending, chunk])
    const headEnd = bytes.indexOf(HEAD_END)
    const head = headEnd === -1 ? '' : bytes.toString('latin1', 0, headEnd)
    const bodyStart = headEnd + HEAD_END.length
    const bodyEnd = bodyStart + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1])
    if (headEnd === -1 || bytes.length < bodyEnd) {
      pending = bytes
      return
    }
    pending = null
    onAnswer(Number(head.slice(9, 12)), bytes.toString('latin1', bodyStart, bodyEnd))
  })

  return {
    opened: once(socket, 'connect'),
    post: (path, body) =>
      void socket.write(`POST ${path} ${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`),
    close() {
      closed = true
      socket.destroy()
    },
  }

  function fail(error: Error): void {
    if (closed) return
    closed = true
    socket.destroy()
    onBroken(error)
  }
}
