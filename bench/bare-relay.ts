// What the hub is measured against: the least that passes messages on. Node's own HTTP server, everything in memory, a
// map from user to client. It checks nothing, forgets all when it ends, and rounds long ids; the bytes on the wire are alike.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent } from 'undici'

interface Client {
  token: string
  number: number
  /** Messages as JSON texts, in both shapes. */
  spec: string[]
  real: string[]
  delivered: number
  parked: ServerResponse | null
  parkedAt: number
}

interface UpstreamMessage {
  from_user_id: string
  context_token: string
  create_time_ms: number
  message_id: number
  item_list: { text_item: { text: string } }[]
}

const MAX_BATCH = 100
const HOLD_MS = Number(process.env.BARE_HOLD_MS)
const upstreamUrl = process.env.BARE_UPSTREAM_URL ?? ''
const upstreamHeaders = {
  'content-type': 'application/json',
  authorizationtype: 'ilink_bot_token',
  authorization: `Bearer ${process.env.BARE_UPSTREAM_TOKEN}`,
}
const agent = new Agent({ connections: 128, headersTimeout: 0, bodyTimeout: 0 })
const clients = new Map<string, Client>()
const byUser = new Map<string, Client>()
const contexts = new Map<string, { userId: string; upstreamToken: string }>()
let contextCount = 0

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', () => handle(request, response, body))
})
server.keepAliveTimeout = 75_000
server.listen({ port: 0, host: '127.0.0.1', backlog: 16_384 }, () => {
  const address = server.address()
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}/health`)
})
// One timer for all that wait.
setInterval(() => {
  for (const client of clients.values()) if (client.parked && Date.now() - client.parkedAt > HOLD_MS) hand(client)
}, 1_000)
void pollUpstream()

function handle(request: IncomingMessage, response: ServerResponse, body: string): void {
  if (request.url === '/ilink/bot/getupdates') poll(request, response)
  else if (request.url === '/ilink/bot/sendmessage') void send(response, JSON.parse(body))
  else if (request.url === '/bench/parked') answer(response, String(parkedCount()))
  else if (request.url === '/bench/clients') addClients(response, JSON.parse(body))
  else refuse(response, 404)
}

function addClients(response: ServerResponse, named: { token: string; userId: string }[]): void {
  for (const [index, { token, userId }] of named.entries()) {
    const client = { token, number: index + 1, spec: [], real: [], delivered: 0, parked: null, parkedAt: 0 }
    clients.set(`Bearer ${token}`, client)
    byUser.set(userId, client)
  }
  answer(response, '{}')
}

function poll(request: IncomingMessage, response: ServerResponse): void {
  const client = clients.get(request.headers.authorization ?? '')
  if (client === undefined) {
    refuse(response, 401)
    return
  }
  client.parked = response
  client.parkedAt = Date.now()
  if (client.spec.length > 0) hand(client)
}

/** Answers the parked poll with what there is. */
function hand(client: Client): void {
  const { parked } = client
  client.parked = null
  if (parked === null || parked.destroyed) return
  const spec = client.spec.splice(0, MAX_BATCH).join(',')
  const real = client.real.splice(0, MAX_BATCH)
  client.delivered += real.length
  const cursor = `v1.00000000.${client.number}.${client.delivered}`
  answer(
    parked,
    `{"ret":0,"errcode":0,"errmsg":"","messages":[${spec}],"msgs":[${real.join(',')}],"get_updates_buf":"${cursor}"}`,
  )
}

async function pollUpstream(): Promise<void> {
  let cursor = ''
  for (;;) {
    const text = await callUpstream('getupdates', `{"get_updates_buf":${JSON.stringify(cursor)}}`)
    const batch: { msgs: UpstreamMessage[]; get_updates_buf: string } = JSON.parse(text)
    cursor = batch.get_updates_buf
    const touched = new Set<Client>()
    for (const message of batch.msgs) {
      const client = byUser.get(message.from_user_id)
      if (client === undefined) continue
      keep(client, message)
      touched.add(client)
    }
    for (const client of touched) hand(client)
  }
}

function keep(client: Client, message: UpstreamMessage): void {
  contextCount += 1
  const contextToken = `ctx_${String(contextCount).padStart(22, '0')}`
  const { from_user_id: userId, context_token: upstreamToken, create_time_ms: createdMs } = message
  contexts.set(contextToken, { userId, upstreamToken })
  const content = message.item_list[0]?.text_item.text ?? ''
  const spec = {
    context_token: contextToken,
    from_user: userId,
    content,
    msg_type: 'text',
    timestamp: createdMs / 1000,
  }
  client.spec.push(JSON.stringify({ ...spec, timestamp: Math.floor(spec.timestamp) }))
  client.real.push(JSON.stringify({ ...message, context_token: contextToken }))
}

async function send(response: ServerResponse, body: { context_token: string; content: string }): Promise<void> {
  const context = contexts.get(body.context_token)
  const msg = {
    from_user_id: '',
    to_user_id: context?.userId,
    context_token: context?.upstreamToken,
    client_id: `bare-${body.context_token}`,
    item_list: [{ type: 1, text_item: { text: body.content } }],
    message_type: 2,
    message_state: 2,
  }
  const text = await callUpstream('sendmessage', JSON.stringify({ msg }))
  const { message_id: id }: { message_id: number } = JSON.parse(text)
  answer(response, `{"ret":0,"errcode":0,"errmsg":"","message_id":${id}}`)
}

async function callUpstream(path: string, body: string): Promise<string> {
  const request = { origin: upstreamUrl, path: `/ilink/bot/${path}`, method: 'POST', headers: upstreamHeaders, body }
  const answered = await agent.request({ ...request, method: 'POST' })
  return answered.body.text()
}

function answer(response: ServerResponse, body: string): void {
  response.setHeader('content-type', 'application/json; charset=utf-8')
  response.setHeader('content-length', Buffer.byteLength(body))
  response.end(body)
}

function refuse(response: ServerResponse, status: number): void {
  response.statusCode = status
  answer(response, '{}')
}

function parkedCount(): number {
  return [...clients.values()].filter(({ parked }) => parked?.destroyed === false).length
}
