// The load generator of the agent bench: callers and readers in a process of their own, told over the channel what to do.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { checker } from '../../src/kit/schema.ts'
import { AgentCall, FAN_OUT_GOAL, type FannedOut, type Followed, type Ran, RUN_GOAL } from './calls.ts'

const checkCall = checker(AgentCall)
const DONE = Buffer.from('event: done')
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')
const EVENT = Buffer.from('event: ')
let readers: Reader[] = []

interface Reader {
  socket: Socket
  bytes: number
  isDone: boolean
}

process.on('message', (message) => {
  act(checkCall(message)).then(
    (answer) => process.send?.({ ok: true, answer }),
    (error) => process.send?.({ ok: false, problem: error instanceof Error ? error.message : String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))

async function act(call: AgentCall): Promise<unknown> {
  switch (call.do) {
    case 'create':
      return create(call.port, call.count)
    case 'run':
      return runAll(call.ports ?? [call.port], call.sessions, call.atOnce)
    case 'follow':
      return follow(call)
    case 'subscribe':
      readers = await Promise.all(Array.from({ length: call.count }, () => subscribe(call.port, call.session)))
      return
    case 'fanOut':
      return fanOut(call.port, call.session)
    case 'tellCpu': {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    }
    case 'hangUp':
      for (const { socket } of readers) socket.destroy()
      readers = []
  }
}

async function create(port: number, count: number): Promise<string[]> {
  const socket = await open(port)
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) {
    socket.write(post(port, '/sessions', '{}'))
    const answer = await untilIncludes(socket, Buffer.from('created_at'))
    const id = /"session_id":"([^"]+)"/.exec(answer.toString('latin1'))?.[1]
    if (id === undefined) throw new Error(`no session: ${answer.toString('latin1').slice(0, 300)}`)
    ids.push(id)
  }
  socket.destroy()
  return ids
}

async function runAll(ports: readonly number[], sessions: readonly string[], atOnce: number): Promise<Ran> {
  const portOf = (index: number) => ports[index % ports.length] ?? 0
  const sockets = await Promise.all(Array.from({ length: atOnce }, (_, index) => open(portOf(index))))
  const ran: Ran = { tookMs: 0, firstMs: [], doneMs: [] }
  let next = 0
  const startedAt = performance.now()
  await Promise.all(
    sockets.map(async (socket, index) => {
      for (let session = sessions[next++]; session !== undefined; session = sessions[next++]) {
        const { firstMs, doneMs } = await runOne(socket, portOf(index), session)
        ran.firstMs.push(firstMs)
        ran.doneMs.push(doneMs)
      }
    }),
  )
  ran.tookMs = performance.now() - startedAt
  for (const socket of sockets) socket.destroy()
  return ran
}

/** A run whose events come as the answer of the POST; the answer ends with `done`. */
function runOne(socket: Socket, port: number, session: string): Promise<{ firstMs: number; doneMs: number }> {
  return new Promise((resolve, reject) => {
    let text = Buffer.alloc(0)
    let firstMs = 0
    const startedAt = performance.now()
    const onData = (chunk: Buffer) => {
      text = Buffer.concat([text, chunk])
      if (firstMs === 0 && text.includes(EVENT)) firstMs = performance.now() - startedAt
      if (!text.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)) return
      socket.off('data', onData)
      socket.off('close', onClose)
      if (text.includes(DONE)) resolve({ firstMs, doneMs: performance.now() - startedAt })
      else reject(new Error(`a run without done: ${text.toString('latin1').slice(0, 300)}`))
    }
    const onClose = () =>
      reject(new Error(`the server closed the connection: ${text.toString('latin1').slice(0, 300)}`))
    socket.on('data', onData)
    socket.once('close', onClose)
    socket.write(post(port, `/sessions/${session}/run`, JSON.stringify({ message: RUN_GOAL })))
  })
}

/** Two readers of one session, at two servers; both note when each event came. */
async function follow(call: Extract<AgentCall, { do: 'follow' }>): Promise<Followed> {
  const { port, remotePort, session, runs } = call
  const seen = [new Map<string, number>(), new Map<string, number>()] as const
  const streams = await Promise.all([subscribe(port, session), subscribe(remotePort, session)])
  for (const [index, { socket }] of streams.entries()) {
    let open = ''
    socket.on('data', (chunk) => {
      const now = performance.now()
      const lines = (open + chunk.toString('latin1')).split('\n')
      open = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith('id: ')) seen[index]?.set(line, now)
    })
  }
  const socket = await open(port)
  for (let run = 0; run < runs; run += 1) await runOne(socket, port, session)
  const deadline = performance.now() + 10_000
  while (seen[1].size < seen[0].size && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 5))
  for (const one of [socket, ...streams.map((stream) => stream.socket)]) one.destroy()
  if (seen[1].size < seen[0].size)
    throw new Error(`${seen[0].size - seen[1].size} events never came to the other server`)
  return { lagsMs: [...seen[0]].map(([id, at]) => Math.max(0, (seen[1].get(id) ?? Number.NaN) - at)) }
}

async function subscribe(port: number, session: string): Promise<Reader> {
  const socket = await open(port)
  const reader: Reader = { socket, bytes: 0, isDone: false }
  socket.write(`GET /sessions/${session}/events?after=0 HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`)
  await untilIncludes(socket, HEAD_END)
  return reader
}

async function fanOut(port: number, session: string): Promise<FannedOut> {
  const before = readers.map(({ bytes }) => bytes)
  const all = Promise.all(readers.map(untilDone))
  const startedAt = performance.now()
  const socket = await open(port)
  socket.write(post(port, `/sessions/${session}/run`, JSON.stringify({ goal: FAN_OUT_GOAL })))
  const answer = await untilIncludes(socket, HEAD_END)
  if (!answer.includes(' 202 ')) throw new Error(`not accepted: ${answer.toString('latin1')}`)
  await all
  const tookMs = performance.now() - startedAt
  socket.destroy()
  return { tookMs, bytes: readers.reduce((sum, { bytes }, index) => sum + bytes - (before[index] ?? 0), 0) }
}

/** `done` comes last, so only the end of what came has to be looked at. */
function untilDone(reader: Reader): Promise<void> {
  return new Promise((resolve, reject) => {
    let tail: Buffer = Buffer.alloc(0)
    const onData = (chunk: Buffer) => {
      reader.bytes += chunk.length
      tail = chunk.length >= 400 ? chunk.subarray(-400) : Buffer.concat([tail, chunk]).subarray(-400)
      if (!tail.includes(DONE)) return
      reader.socket.off('data', onData)
      resolve()
    }
    reader.socket.on('data', onData)
    reader.socket.once('close', () => reject(new Error('the server closed a stream')))
  })
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

function post(port: number, path: string, body: string): string {
  const length = Buffer.byteLength(body)
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`
}

function untilIncludes(socket: Socket, wanted: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let text = Buffer.alloc(0)
    const onData = (chunk: Buffer) => {
      text = Buffer.concat([text, chunk])
      if (!text.includes(wanted)) return
      socket.off('data', onData)
      socket.off('close', onClose)
      resolve(text)
    }
    const onClose = () =>
      reject(new Error(`the server closed the connection: ${text.toString('latin1').slice(0, 300)}`))
    socket.on('data', onData)
    socket.once('close', onClose)
  })
}
