// What the agent server is measured against: the least that answers like it. Node's own HTTP server, a map of sessions, and
// the events of a real run, encoded beforehand, written one by one. It asks no model and runs no tool.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { Type } from 'typebox'
import { checker } from '../../src/kit/schema.ts'

interface Session {
  sessionId: string
  createdAt: string
  readers: ServerResponse[]
}

const STREAM = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }
const checkEvents = checker(Type.Array(Type.String()))
/** Of a run, and of the run that many read. */
let runEvents: Buffer[] = []
let fanOutEvents: Buffer[] = []
const sessions = new Map<string, Session>()

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', () => handle(request, response, body))
})
server.keepAliveTimeout = 75_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}/health`)
})

function handle({ method, url = '' }: IncomingMessage, response: ServerResponse, body: string): void {
  const [path = ''] = url.split('?')
  const [, , id = '', call] = path.split('/')
  if (path === '/bench/run') setEvents(response, () => (runEvents = eventsOf(body)))
  else if (path === '/bench/fan-out') setEvents(response, () => (fanOutEvents = eventsOf(body)))
  else if (method === 'POST' && path === '/sessions') create(response)
  else if (call === 'events') read(response, id)
  else if (call === 'run' && body.includes('"message"')) void run(response)
  else if (call === 'run') void fanOut(response, id)
  else response.writeHead(404).end()
}

function setEvents(response: ServerResponse, set: () => void): void {
  set()
  response.end()
}

function eventsOf(body: string): Buffer[] {
  return checkEvents(JSON.parse(body)).map((event) => Buffer.from(event))
}

function create(response: ServerResponse): void {
  const session = { sessionId: crypto.randomUUID(), createdAt: new Date().toISOString(), readers: [] }
  sessions.set(session.sessionId, session)
  const text = JSON.stringify({ session_id: session.sessionId, created_at: session.createdAt })
  response.writeHead(201, { 'content-type': 'application/json', 'content-length': text.length }).end(text)
}

function read(response: ServerResponse, id: string): void {
  response.writeHead(200, STREAM).flushHeaders()
  sessions.get(id)?.readers.push(response)
}

async function run(response: ServerResponse): Promise<void> {
  response.writeHead(200, STREAM)
  for (const event of runEvents) {
    response.write(event)
    await turn()
  }
  response.end()
}

async function fanOut(response: ServerResponse, id: string): Promise<void> {
  response.writeHead(202, { 'content-length': 2 }).end('{}')
  const readers = sessions.get(id)?.readers ?? []
  for (const event of fanOutEvents) {
    for (const reader of readers) reader.write(event)
    await turn()
  }
}
