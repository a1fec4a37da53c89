import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { openSse, type SseStream, sseComment, sseEvent } from './sse.ts'

test('each line of the data gets a field of its own, whatever ends it', () => {
  expect(sseEvent({ id: 7, event: 'message', data: 'a\nb\r\nc\rd' })).toBe(
    'id: 7\nevent: message\ndata: a\ndata: b\ndata: c\ndata: d\n\n',
  )
  expect(sseEvent({ id: 1, event: 'x', data: '' })).toBe('id: 1\nevent: x\ndata: \n\n')
})

test('a comment stays one line', () => {
  expect(sseComment('a\r\nevent: b\n\nc')).toBe(': a  event: b  c\n\n')
})

test('a stream begins with headers against buffering, the time to come back, and a comment', async () => {
  const { socket, stream } = await opened(1_000)
  stream.write(sseEvent({ id: 1, event: 'message', data: '{}' }))
  stream.end()
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  expect(text).toContain('content-type: text/event-stream; charset=utf-8')
  expect(text).toContain('cache-control: no-cache, no-transform')
  expect(text).toContain('x-accel-buffering: no')
  expect(text).toContain('x-own: yes')
  expect(text.indexOf('retry: 1000\n\n: ok\n\n')).toBeGreaterThan(0)
  expect(text).toContain('id: 1\nevent: message\ndata: {}\n\n')
  expect(stream.closed).toBe(true)
  expect(stream.write('late')).toBe(false)
})

verifies(
  'agent:events:slow-reader',
  'a reader that does not read is closed at its bound, and nothing more is taken for it',
  async () => {
    const { socket, stream, response } = await opened(100_000)
    socket.pause()
    const closed = new Promise<void>((resolve) => stream.onClose(resolve))
    const event = sseEvent({ id: 1, event: 'message', data: 'x'.repeat(10_000) })
    let written = 0
    let most = 0
    while (stream.write(event)) {
      written += 1
      most = Math.max(most, response.writableLength)
      if (written > 100_000) throw new Error('it has no bound')
      await new Promise((resolve) => setImmediate(resolve))
    }
    await closed
    expect(most).toBeLessThanOrEqual(100_000 + event.length)
    expect(stream.closed).toBe(true)
    expect(stream.write(event)).toBe(false)
  },
)

test('a reader that reads is never closed, however much it gets', async () => {
  const { socket, stream } = await opened(100_000)
  let read = 0
  socket.on('data', (chunk: Buffer) => {
    read += chunk.length
  })
  const event = sseEvent({ id: 1, event: 'message', data: 'x'.repeat(1_000) })
  for (let count = 1; count <= 1_000; count++) {
    expect(stream.write(event)).toBe(true)
    while (read < count * event.length) await once(socket, 'data')
  }
  stream.end()
})

test('its end is told once, also to who asks after it, when the reader hangs up', async () => {
  const { socket, stream } = await opened(1_000)
  let told = 0
  const closed = new Promise<void>((resolve) =>
    stream.onClose(() => {
      told += 1
      resolve()
    }),
  )
  socket.destroy()
  await closed
  await new Promise<void>((resolve) => stream.onClose(resolve))
  expect(told).toBe(1)
  expect(stream.closed).toBe(true)
})

async function opened(
  maxUnreadBytes: number,
): Promise<{ socket: Socket; stream: SseStream; response: ServerResponse }> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const socket = connect(portOf(address), '127.0.0.1')
  onTestFinished(() => {
    socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  const response = await new Promise<ServerResponse>((resolve) => {
    server.once('request', (_request, given) => resolve(given))
  })
  const stream = openSse(response, {
    retryMs: 1_000,
    maxUnreadBytes,
    headers: { 'x-own': 'yes', connection: 'close' },
  })
  return { socket, stream, response }
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('It does not listen.')
  return address.port
}
