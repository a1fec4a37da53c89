import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * What happens to one connection. Bytes are those of the server's answers, all requests of the connection together.
 * - `pass`: nothing.
 * - `refuse`: hung up on at once; the server hears nothing.
 * - `cut`: after so many bytes both sides are hung up on, with a reset, or with an orderly `end`. `after: 0` loses the
 *   answer to a request that the server got.
 * - `stall`: after so many bytes nothing comes any more, and nobody hangs up.
 * - `half-open`: the same for the client, but the server is hung up on.
 * - `slow`: so many bytes at a time.
 */
export type Fault =
  | { type: 'pass' }
  | { type: 'refuse' }
  | { type: 'cut'; after: number; how?: 'reset' | 'end' }
  | { type: 'stall'; after: number }
  | { type: 'half-open'; after: number }
  | { type: 'slow'; bytes: number; everyMs: number }

/** A TCP proxy that is a bad network. */
export interface FlakyProxy {
  url: string
  port: number
  /** How many connections there have been. */
  readonly connections: number
  /** What happens to the connections from now on: the first so many faults in turn, then `pass`; or by number, from 0. */
  plan(faults: readonly Fault[] | ((connection: number) => Fault)): void
  /** Cuts every connection that is open now. */
  cutAll(): void
  stop(): Promise<void>
}

/** Starts a proxy to a port of this machine; gone when the test is over. */
export async function startFlakyProxy(targetPort: number, faults: readonly Fault[] = []): Promise<FlakyProxy> {
  let choose = planOf(faults)
  let planned = 0
  let connections = 0
  const open = new Set<Socket>()
  const server = createServer((client) => {
    connections += 1
    const fault = choose(planned)
    planned += 1
    if (fault.type === 'refuse') return void client.resetAndDestroy()
    const upstream = connect(targetPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('close', () => open.delete(socket)).on('error', () => socket.destroy())
    }
    join(client, upstream, fault)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port')
  const { port } = address
  const proxy: FlakyProxy = {
    url: `http://127.0.0.1:${port}`,
    port,
    get connections() {
      return connections
    },
    plan(next) {
      choose = planOf(next)
      planned = 0
    },
    cutAll() {
      for (const socket of open) socket.resetAndDestroy()
    },
    async stop() {
      proxy.cutAll()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
  onTestFinished(() => proxy.stop())
  return proxy
}

function planOf(faults: readonly Fault[] | ((connection: number) => Fault)): (connection: number) => Fault {
  return typeof faults === 'function' ? faults : (connection) => faults[connection] ?? { type: 'pass' }
}

function join(client: Socket, upstream: Socket, fault: Fault): void {
  client.on('data', (chunk) => upstream.write(chunk))
  client.on('close', () => upstream.destroy())
  upstream.on('close', () => {
    if (fault.type !== 'half-open') client.end()
  })
  if (fault.type === 'slow') passSlowly(client, upstream, fault)
  else if (fault.type === 'pass' || fault.type === 'refuse') upstream.on('data', (chunk) => client.write(chunk))
  else passSome(client, upstream, fault)
}

function passSome(client: Socket, upstream: Socket, fault: Extract<Fault, { after: number }>): void {
  let isDead = false
  let left = fault.after
  upstream.on('data', (chunk: Buffer) => {
    if (isDead) return
    client.write(chunk.subarray(0, left))
    left -= chunk.length
    if (left > 0) return
    isDead = true
    if (fault.type === 'cut') {
      if (fault.how === 'end') client.end()
      else client.resetAndDestroy()
    }
    if (fault.type !== 'stall') upstream.destroy()
  })
}

function passSlowly(client: Socket, upstream: Socket, { bytes, everyMs }: { bytes: number; everyMs: number }): void {
  let waiting = Buffer.alloc(0)
  const timer = setInterval(() => {
    if (waiting.length === 0) return
    client.write(waiting.subarray(0, bytes))
    waiting = waiting.subarray(bytes)
  }, everyMs)
  client.on('close', () => clearInterval(timer))
  upstream.on('data', (chunk: Buffer) => {
    waiting = Buffer.concat([waiting, chunk])
  })
}
