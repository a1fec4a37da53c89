import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openSse, type SseOptions, type SseStream, sseComment } from './sse.ts'

/** A stream to a reader that takes nothing until it is told to. */
async function unreadStream(options: Partial<SseOptions> = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  const asked = new Promise<ServerResponse>((resolve) => server.once('request', (_, one) => resolve(one)))
  const reader = connect(address.port, '127.0.0.1')
  reader.on('error', () => {})
  reader.pause()
  reader.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  onTestFinished(() => {
    reader.destroy()
    server.closeAllConnections()
    server.close()
  })
  const response = await asked
  return { reader, response, stream: openSse(response, { retryMs: 1_000, maxUnreadBytes: 64_000_000, ...options }) }
}

/** More than the system takes for a reader that does not read. */
function fill(stream: SseStream): void {
  for (let count = 0; count < 20; count++) stream.write(sseComment('x'.repeat(1_000_000)))
}

test('a writer that waits goes on when the reader has taken what there was', async () => {
  const { reader, response, stream } = await unreadStream()
  await stream.drained()
  fill(stream)
  const drained = stream.drained()
  reader.resume()
  await drained
  expect([stream.closed, response.writableNeedDrain]).toEqual([false, false])
})

test('a reader that takes nothing for too long is closed, and the writer waits no more', async () => {
  const { stream } = await unreadStream({ maxStallMs: 50 })
  fill(stream)
  await stream.drained()
  expect([stream.closed, stream.write('x')]).toEqual([true, false])
  await stream.drained()
})

test('a writer waits no more when the reader goes', async () => {
  const { reader, stream } = await unreadStream()
  fill(stream)
  const drained = stream.drained()
  reader.destroy()
  await drained
  expect(stream.closed).toBe(true)
})
