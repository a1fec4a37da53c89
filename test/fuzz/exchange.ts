import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** What came back over a plain socket. */
export interface Exchanged {
  /** 0 when the other side hung up, or did nothing, without an answer. */
  status: number
  headers: Headers
  /** The first answer's body, as far as it came. */
  body: string
  /** How the exchange ended. */
  end: 'answered' | 'closed' | 'silent'
}

export interface Delivery {
  /** Written one after the other. */
  pieces: readonly Buffer[]
  /** Between two of them. */
  pauseMs: number
  /** Hangs up after the last piece instead of reading the answer. */
  hangUp: boolean
  withinMs: number
}

/** Writes pieces to a port and reads the first final answer. Never throws. */
export async function exchange(port: number, { pieces, pauseMs, hangUp, withinMs }: Delivery): Promise<Exchanged> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let received = Buffer.alloc(0)
  const ended = new Promise<Exchanged['end']>((resolve) => {
    const timer = setTimeout(() => resolve('silent'), withinMs)
    const end = (how: Exchanged['end']) => {
      clearTimeout(timer)
      resolve(how)
    }
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (isWhole(received)) end('answered')
    })
    socket.on('close', () => end('closed'))
  })
  for (const [index, piece] of pieces.entries()) {
    if (index > 0 && pauseMs > 0) await pause(pauseMs)
    if (socket.destroyed) break
    socket.write(piece)
  }
  if (hangUp) socket.end()
  const end = await ended
  socket.destroy()
  return { ...parse(received), end: isWhole(received) ? 'answered' : end }
}

/** The head is there, and as much of a body as it says; of a stream the head is enough. */
function isWhole(bytes: Buffer): boolean {
  const { status, headers, rest } = split(bytes)
  if (status === 0) return false
  if (headers.get('content-type')?.startsWith('text/event-stream')) return true
  const length = headers.get('content-length')
  if (length !== null) return rest.length >= Number(length)
  if (headers.get('transfer-encoding') === 'chunked') return rest.includes('0\r\n\r\n')
  return status === 204 || status === 304
}

function parse(bytes: Buffer): Omit<Exchanged, 'end'> {
  const { status, headers, rest } = split(bytes)
  const length = headers.get('content-length')
  const isChunked = headers.get('transfer-encoding') === 'chunked'
  const body = isChunked ? dechunked(rest) : rest.subarray(0, length === null ? 0 : Number(length))
  return { status, headers, body: body.toString('utf8') }
}

/** Answers of the kind «go on» are passed over. */
function split(bytes: Buffer): { status: number; headers: Headers; rest: Buffer } {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return { status: 0, headers: new Headers(), rest: Buffer.alloc(0) }
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(statusLine.split(' ')[1] ?? 0)
  const rest = bytes.subarray(headEnd + 4)
  if (status >= 100 && status < 200) return split(rest)
  const headers = new Headers()
  for (const line of lines) headers.append(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim())
  return { status, headers, rest }
}

function dechunked(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const length = lineEnd === -1 ? 0 : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (!(length > 0)) return Buffer.concat(parts)
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + length))
    at = lineEnd + 2 + length + 2
  }
}
