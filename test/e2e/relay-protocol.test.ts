import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { ilinkUpstream } from '../../src/hub/upstream/ilink.ts'
import { parseLossless } from '../../src/kit/lossless-json.ts'
import type { RunningSim } from '../../src/sim/main.ts'
import { rawRequest } from '../support/raw-http.ts'
import { hubWithContexts, isTyping, lastingSim, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const USER = 'ann@im.wechat'
const ITEMS = [{ type: 1, text_item: { text: 'hi' } }]
const UPLOAD = { filekey: 'f', filesize: 16 }

/** A body for each endpoint that it takes, in each dialect. */
function goodBodies(contextToken: string): [path: string, body: Record<string, unknown>][] {
  return [
    ['getupdates', {}],
    ['getupdates', { get_updates_buf: '' }],
    ['sendmessage', { context_token: contextToken, content: 'hi', msg_type: 'text' }],
    ['sendmessage', { msg: { to_user_id: USER, context_token: contextToken, item_list: ITEMS } }],
    ['sendtyping', { context_token: contextToken }],
    ['sendtyping', { ilink_user_id: USER, typing_ticket: 't', status: 1 }],
    ['getconfig', {}],
    ['getuploadurl', UPLOAD],
    ['msg/notifystart', {}],
    ['msg/notifystop', {}],
  ]
}

verifies(
  ['relay:protocol:post-json', 'relay:protocol:both-prefixes'],
  'every endpoint takes JSON and answers JSON, the same under both prefixes',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 20 })
    for (const [path, body] of goodBodies(context('ann'))) {
      const shapes = []
      for (const prefix of ['/relay/bot/', '/ilink/bot/']) {
        const answer = await hub.call('POST', prefix + path, { token, body: { token, ...body } })
        expect(answer.status, prefix + path).toBe(200)
        expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
        expect(answer.body).toMatchObject(OK)
        shapes.push(Object.keys(answer.body))
      }
      expect(shapes[0]).toEqual(shapes[1])
    }
    expect(await hub.answers('ann', 4)).toEqual(['hi', 'hi', 'hi', 'hi'])
  },
)

verifies(
  ['relay:protocol:body-token-optional', 'relay:protocol:no-base-info', 'relay:protocol:unknown-keys'],
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 20 })
    const base_info = { channel_version: '2.4.9', bot_agent: 'Some/1.0' }
    const unknown = {
      x: 1,
      'get_updates_buf ': 5,
      timeout: 0,
      sync_buf: null,
      ['__proto__']: { msg: 1 },
      constructor: 2,
    }
    for (const [path, body] of goodBodies(context('ann'))) {
      for (const more of [{}, { token }, { base_info }, { base_info: 'none' }, unknown]) {
        const answer = await relayCall(hub, token, path, { ...body, ...more })
        expect(answer.status, `${path} ${JSON.stringify(more)}`).toBe(200)
        expect(answer.body).toMatchObject(OK)
      }
    }
    // Where nothing is required, no body at all is as good as an empty one.
    for (const path of ['getupdates', 'getconfig', 'msg/notifystart', 'msg/notifystop'])
      expect((await hub.call('POST', `/relay/bot/${path}`, { token })).body).toMatchObject(OK)
  },
)

verifies('relay:protocol:told-by-body-keys', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 20 })
  for (const agent of ['curl/8.0', 'node', 'OpenClaw/2.4.9 (iLink)', 'spec-client', '']) {
    const headers = { 'user-agent': agent, authorizationtype: 'ilink_bot_token', 'ilink-app-id': 'bot' }
    for (const [path, body] of goodBodies(context('ann'))) {
      const answer = await hub.call('POST', `/ilink/bot/${path}`, { token, body, headers })
      expect(answer.body, `${agent} ${path}`).toMatchObject(OK)
    }
  }
  expect(new Set(await hub.answers('ann', 10))).toEqual(new Set(['hi']))
})

verifies('relay:protocol:any-content-type', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=latin1',
    'application/octet-stream',
    'image/png',
    'nonsense',
    ';;;',
  ]
  for (const type of types) {
    const body = { context_token: context('ann'), content: `as ${type}` }
    const answer = await hub.call('POST', '/relay/bot/sendmessage', { token, body, headers: { 'content-type': type } })
    expect(answer.body, type).toMatchObject(OK)
  }
  const body = JSON.stringify({ context_token: context('ann'), content: 'as nothing' })
  const bare = await rawRequest(
    Number(new URL(hub.url).port),
    `POST /relay/bot/sendmessage HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  expect(bare.status).toBe(200)
  expect(await hub.answers('ann', types.length + 1)).toEqual([...types.map((type) => `as ${type}`), 'as nothing'])
})

verifies('relay:protocol:no-redirects', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await onlineClient(hub, 'bot')
  const paths = ['getupdates', 'getupdates/', '/getupdates', 'getconfig?x=1', 'GETCONFIG', 'msg/notifystart/', '.', '']
  for (const path of paths.flatMap((one) => [`/relay/bot/${one}`, `/ilink/bot/${one}`, `//relay/bot/${one}`])) {
    for (const caller of [token, 'wrong', undefined]) {
      for (const method of ['POST', 'GET']) {
        const { status, headers } = await hub.call(method, path, { token: caller })
        expect(status >= 300 && status < 400, `${method} ${path} is ${status}`).toBe(false)
        expect(headers.get('location')).toBeNull()
      }
    }
  }
})

verifies(
  'relay:protocol:unchanged-client',
  'a client of the service has the same talk through the hub, with only its address and token changed',
  async () => {
    const alone = await lastingSim()
    const direct = await talk(alone, { baseUrl: alone.url, botToken: alone.botToken })
    const hub = await startTestHub()
    const token = await onlineClient(hub, 'bot')
    const throughHub = await talk(hub.sim, { baseUrl: hub.url, botToken: token })
    expect(throughHub).toEqual(direct)
    expect(direct).toMatchObject({ heard: ['hello', 'and?'], typingSeen: true })
    expect(await isTyping(hub, 'ann')).toBe(false)
  },
)

test('a hub can be the service of another hub', async () => {
  const outer = await startTestHub()
  const link = ilinkUpstream({ baseUrl: outer.url, botToken: await onlineClient(outer, 'inner hub') })
  onTestFinished(() => link.close())
  const { sim } = outer
  const inner = await startTestHub({ upstream: link })
  const token = await onlineClient(inner, 'bot')
  sim.control.say({ user: 'ann', text: 'hello' })
  await until(async () => (await inner.store.messages.list({ limit: 1 })).length === 1)
  const { body } = await inner.poll(token)
  expect(body.messages).toMatchObject([{ content: 'hello', from_user: USER }])
  expect((await inner.send(token, body.messages[0].context_token, 'hi')).body).toMatchObject(OK)
  expect(await outer.answers('ann', 1)).toEqual(['hi'])
})

verifies('relay:protocol:poll-only', async () => {
  const hub = await startTestHub({ holdMs: 20_000 })
  const calls: string[] = []
  const listener = createServer((request, response) => {
    calls.push(request.url ?? '')
    response.end()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => void listener.close())
  const address = listener.address()
  const there = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`
  const token = await hub.register('bot', { url: there, webhook: there, callback_url: there, webhook_url: there })
  await relayCall(hub, token, 'msg/notifystart', { url: there, webhook: there })
  await hub.say('ann', 'a secret')

  // No other call of the client brings it, no way of asking makes a stream, and nobody is switched to another protocol.
  for (const path of ['getconfig', 'sendtyping', 'msg/notifystart'])
    expect((await relayCall(hub, token, path, { to_user_id: USER })).text).not.toContain('a secret')
  for (const path of ['/relay/bot/getupdates', '/relay/bot/events', '/hub/events', '/ws', '/events', '/']) {
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${token}` }
    const answer = await hub.call('GET', path, { headers })
    expect(answer.headers.get('content-type') ?? '').not.toContain('event-stream')
    expect(answer.text).not.toContain('a secret')
    const upgraded = await rawRequest(
      Number(new URL(hub.url).port),
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade, close\r\n` +
        'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    )
    expect(upgraded.status, path).toBeGreaterThanOrEqual(300)
  }
  const { headers, body } = await hub.call('POST', '/relay/bot/getupdates', {
    token,
    body: {},
    headers: { accept: 'text/event-stream' },
  })
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(body.messages).toMatchObject([{ content: 'a secret' }])
  expect(calls).toEqual([])
})

/** A whole talk of a bot with ann, by the hub's own adapter to the service: what it heard, and what she saw. */
async function talk(sim: RunningSim, { baseUrl, botToken }: { baseUrl: string; botToken: string }) {
  const client = ilinkUpstream({ baseUrl, botToken })
  onTestFinished(() => client.close())
  const signal = AbortSignal.timeout(15_000)
  const body = JSON.stringify({ client_id: 'c', message_type: 2, message_state: 2, item_list: ITEMS })
  const heard: unknown[] = []
  let cursor = ''
  const hear = async () => {
    let batch = await client.poll(cursor, signal)
    while (batch.messages.length === 0) batch = await client.poll(batch.cursor ?? cursor, signal)
    cursor = batch.cursor ?? cursor
    const message: Record<string, unknown> = { ...Object(parseLossless(batch.messages.join())) }
    const [item] = Object(message.item_list)
    heard.push(item.text_item.text)
    return { userId: String(message.from_user_id), contextToken: String(message.context_token) }
  }

  await client.notify('start', signal)
  sim.control.say({ user: 'ann', text: 'hello' })
  const to = await hear()
  const ticket = await client.typingTicket(to, signal)
  await client.typing({ userId: to.userId, ticket, on: true }, signal)
  const { typing: typingSeen } = await sim.control.conversation({ user: 'ann' })
  const { upstreamId } = await client.send({ ...to, body }, signal)
  sim.control.say({ user: 'ann', text: 'and?' })
  const again = await hear()
  await client.send({ ...again, body }, signal)
  await client.typing({ userId: to.userId, ticket, on: false }, signal)
  const upload: unknown = JSON.parse(await client.uploadUrl(JSON.stringify(UPLOAD), signal))
  await client.notify('stop', signal)

  const { messages } = await sim.control.conversation({ user: 'ann' })
  return {
    heard,
    typingSeen,
    gaveId: /^\d+$/.test(upstreamId ?? ''),
    seen: messages.map(({ from, text }) => [from, text]),
    userId: to.userId,
    upload: Object.keys(Object(upload)).filter((key) => key.startsWith('upload_')),
  }
}
