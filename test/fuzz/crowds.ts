import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

export interface CrowdReport {
  /** Connections that were open at once, and did nothing but begin. */
  connections: number
  /** What a plain call took while they were there, the slowest of some. */
  slowestMs: number
}

const BEGINNINGS = [
  '',
  'G',
  'GET /health HTTP/1.1\r\n',
  'POST /run HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{',
]
const DRIP = 'x-drip: 1\r\n'
const CALLS = 10
const AT_ONCE = 200

/** Many connections that begin a request and never end it, one header a second; plain calls must still be answered. */
export async function crowd(url: string, count: number, holdMs: number): Promise<CrowdReport> {
  const port = Number(new URL(url).port)
  const sockets: Socket[] = []
  try {
    while (sockets.length < count) {
      const some = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, (_, index) =>
        begin(port, BEGINNINGS[index % BEGINNINGS.length] ?? ''),
      )
      const opened = await Promise.all(some)
      sockets.push(...opened.flatMap((socket) => (socket === null ? [] : [socket])))
      if (opened.includes(null)) break
    }
    const endsAt = Date.now() + holdMs
    let slowestMs = 0
    for (let call = 0; call < CALLS || Date.now() < endsAt; call += 1) {
      const startedAt = performance.now()
      const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(30_000) })
      await response.text()
      slowestMs = Math.max(slowestMs, performance.now() - startedAt)
      for (const [index, socket] of sockets.entries())
        if (index % BEGINNINGS.length === 2 && socket.writable) socket.write(DRIP)
      await pause(Math.min(1_000, Math.max(0, endsAt - Date.now())))
    }
    return { connections: sockets.length, slowestMs: Math.round(slowestMs) }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** A connection with the first bytes of a request on it; null when no more can be had. */
async function begin(port: number, bytes: string): Promise<Socket | null> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
  } catch {
    socket.destroy()
    return null
  }
  socket.on('error', () => {})
  socket.write(bytes)
  return socket
}
