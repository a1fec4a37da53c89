import { expect, test } from 'vitest'
import { rawRequest } from '../support/raw-http.ts'
import { hubWithContexts, onlineClient, relayCall } from '../support/relay-calls.ts'
import { type Answer, startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const POLL_BYTES = 64 * 1024
const SEND_BYTES = 1024 * 1024

verifies('relay:errors:bad-json', async () => {
  const { hub, token } = await hubWithContexts(['ann'])
  const latin1 = Buffer.from('{"content":"caf\xe9"}', 'latin1')
  const port = Number(new URL(hub.url).port)
  for (const path of ['getupdates', 'sendmessage', 'sendtyping', 'getconfig', 'getuploadurl', 'msg/notifystop']) {
    for (const body of ['{', '{"a":1,}', 'token=x', '\ufeff{}', '{"a":NaN}', 'undefined', '\u0000'])
      isRefusal(await relayCall(hub, token, path, body), 400, 'JSON')
    const head = `POST /relay/bot/${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`
    const bytes = Buffer.concat([Buffer.from(`${head}Content-Length: ${latin1.length}\r\n\r\n`), latin1])
    const { status, body } = await rawRequest(port, bytes)
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ ret: 400, errcode: 400, errmsg: expect.stringContaining('UTF-8') })
  }
})

verifies('relay:errors:missing-field', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const context_token = context('ann')
  const missing: [path: string, body: object, field: string][] = [
    ['sendmessage', { content: 'x' }, 'context_token'],
    ['sendmessage', { context_token }, 'content'],
    ['sendmessage', {}, 'context_token'],
    ['sendmessage', { msg: {} }, 'msg.item_list'],
    ['sendmessage', { msg: { context_token } }, 'msg.item_list'],
    ['sendmessage', { msg: { item_list: [{ type: 2 }] } }, 'msg.context_token'],
    ['sendmessage', { msg: { item_list: [{ type: 2 }], context_token: '', to_user_id: '' } }, 'msg.context_token'],
    ['sendtyping', {}, 'context_token'],
    ['sendtyping', { token, context_token: '', ilink_user_id: '' }, 'context_token'],
  ]
  for (const [path, body, field] of missing)
    isRefusal(await relayCall(hub, token, path, body), 400, `${field} is missing`)
})

verifies('relay:errors:wrong-field', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const context_token = context('ann')
  const item_list = [{ type: 1, text_item: { text: 'x' } }]
  const wrong: [path: string, body: object, field: string][] = [
    ['getupdates', { get_updates_buf: null }, 'get_updates_buf'],
    ['getupdates', { get_updates_buf: 5 }, 'get_updates_buf'],
    ['getupdates', { token: ['x'] }, 'token'],
    ['sendmessage', { context_token: 5, content: 'x' }, 'context_token'],
    ['sendmessage', { context_token, content: ['x'] }, 'content'],
    ['sendmessage', { context_token, content: 'x', msg_type: 1 }, 'msg_type'],
    ['sendmessage', { msg: 'x' }, 'msg'],
    ['sendmessage', { msg: { context_token, item_list: {} } }, 'msg.item_list'],
    ['sendmessage', { msg: { context_token, item_list: [] } }, 'msg.item_list'],
    ['sendmessage', { msg: { context_token, item_list: ['x'] } }, 'msg.item_list.0'],
    ['sendmessage', { msg: { context_token, item_list, client_id: 7 } }, 'msg.client_id'],
    ['sendmessage', { msg: { context_token, item_list, to_user_id: 'ben@im.wechat' } }, 'msg.to_user_id'],
    ['sendtyping', { context_token, status: 3 }, 'status'],
    ['sendtyping', { context_token, status: '1' }, 'status'],
    ['sendtyping', { context_token, ilink_user_id: 'ben@im.wechat' }, 'ilink_user_id'],
    ['getconfig', { token: 5 }, 'token'],
  ]
  for (const [path, body, field] of wrong) {
    const answer = await relayCall(hub, token, path, body)
    isRefusal(answer, 400, `${field} `)
    expect(answer.body.field).toBe(field)
  }
  expect(hub.sim.control.state().sends).toBe(0)
})

verifies(['relay:errors:empty-content', 'relay:errors:unsupported-type'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  for (const content of ['', ' ', '\n\t \r\n', '\u00a0\u3000'])
    isRefusal(await hub.send(token, context('ann'), content), 400, 'content')
  for (const msg_type of ['image', 'voice', 'file', 'video', 'TEXT', ' text', '', 'text\u0000', 'constructor'])
    isRefusal(await hub.send(token, context('ann'), 'x', { msg_type }), 400, 'msg_type')
  expect(hub.sim.control.state().sends).toBe(0)
})

verifies(['relay:errors:too-large-poll', 'relay:errors:too-large-send'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 20 })
  const padded = (body: object, bytes: number) => {
    const bare = JSON.stringify({ ...body, padding: '' })
    return JSON.stringify({ ...body, padding: 'x'.repeat(bytes - bare.length) })
  }
  const flat = { context_token: context('ann'), content: 'x' }
  expect((await relayCall(hub, token, 'getupdates', padded({}, POLL_BYTES))).status).toBe(200)
  isRefusal(await relayCall(hub, token, 'getupdates', padded({}, POLL_BYTES + 1)), 413, 'too large')
  expect((await relayCall(hub, token, 'sendmessage', padded(flat, SEND_BYTES))).status).toBe(200)
  isRefusal(await relayCall(hub, token, 'sendmessage', padded(flat, SEND_BYTES + 1)), 413, 'too large')
  const msg = { context_token: context('ann'), item_list: [{ type: 1, text_item: { text: 'x'.repeat(SEND_BYTES) } }] }
  isRefusal(await relayCall(hub, token, 'sendmessage', { msg }), 413, 'too large')
  expect(await hub.answers('ann', 1)).toEqual(['x'])
})

verifies('relay:errors:too-large-poll', 'also when its length is not told beforehand', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  const chunk = 'x'.repeat(POLL_BYTES + 1)
  const { status, body } = await rawRequest(
    Number(new URL(hub.url).port),
    `POST /ilink/bot/getupdates HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n` +
      `Transfer-Encoding: chunked\r\n\r\n${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
  )
  expect(status).toBe(413)
  expect(JSON.parse(body)).toMatchObject({ ret: 413, errcode: 413 })
})

verifies('relay:errors:displaced', async () => {
  const hub = await startTestHub({ holdMs: 20_000 })
  const token = await onlineClient(hub, 'bot')
  const older = hub.poll(token)
  await until(() => hub.hub.delivery.parked === 1)
  const newer = hub.call('POST', '/ilink/bot/getupdates', { token, body: { get_updates_buf: '' } })
  isRefusal(await older, 409, 'newer poll')
  await hub.say('ann', 'hello')
  expect((await newer).body.messages).toMatchObject([{ content: 'hello' }])
})

verifies(
  'relay:errors:displaced-damped',
  'the next one to be displaced hears of it late, the newest poll not',
  async () => {
    const hub = await startTestHub({ holdMs: 20_000 })
    const token = await onlineClient(hub, 'bot')
    const first = hub.poll(token)
    await until(() => hub.hub.delivery.parked === 1)
    const startedAt = performance.now()
    const second = hub.poll(token)
    isRefusal(await first, 409, 'newer poll')
    const third = hub.poll(token)
    const displaced = /polls_total\{answer="displaced"\} 2\b/
    await until(async () => displaced.test((await hub.call('GET', '/metrics')).text))
    await hub.say('ann', 'hello')
    expect((await third).body.messages).toHaveLength(1)
    isRefusal(await second, 409, 'newer poll')
    expect(performance.now() - startedAt).toBeGreaterThan(2_900)
  },
)

verifies(['relay:errors:too-many-requests', 'relay:errors:retry-after'], async () => {
  let now = Date.now()
  const hub = await startTestHub({ requestsPerSecond: 2, now: () => now })
  const [token, other] = [await hub.register('bot'), await hub.register('other')]
  const call = (caller: string) => relayCall(hub, caller, 'getconfig')
  for (let made = 0; made < 4; made += 1) expect((await call(token)).status).toBe(200)
  const refused = await call(token)
  isRefusal(refused, 429, 'slow down')
  saysWhen(refused)
  expect((await call(other)).status).toBe(200)
  now += Number(refused.headers.get('retry-after')) * 1_000
  expect((await call(token)).status).toBe(200)
})

verifies(['relay:errors:too-many-polls', 'relay:errors:retry-after'], async () => {
  const hub = await startTestHub({ maxParked: 1, holdMs: 20_000 })
  const [token, other] = [await onlineClient(hub, 'bot'), await onlineClient(hub, 'other')]
  const older = hub.poll(token)
  await until(() => hub.hub.delivery.parked === 1)
  const refused = await hub.poll(other)
  isRefusal(refused, 429, 'polls')
  saysWhen(refused)
  // Who waits already may ask again: that is one poll, not two.
  const newer = hub.poll(token)
  isRefusal(await older, 409, 'newer poll')
  await hub.say('ann', '@bot hello')
  expect((await newer).body.messages).toHaveLength(1)
})

test('an Idempotency-Key that is too long is refused and not cut', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const body = { context_token: context('ann'), content: 'x' }
  const headers = { 'idempotency-key': 'k'.repeat(257) }
  isRefusal(await hub.call('POST', '/relay/bot/sendmessage', { token, body, headers }), 400, 'Idempotency-Key')
  expect(hub.sim.control.state().sends).toBe(0)
})

verifies(
  ['relay:errors:shape', 'relay:errors:code-is-status'],
  'a token that is not good is refused in the shape too',
  async () => {
    const hub = await startTestHub()
    const token = await onlineClient(hub, 'bot')
    const shapes = [
      await relayCall(hub, 'vhub_unknown', 'getupdates'),
      await hub.call('POST', '/ilink/bot/sendmessage', { body: '{"broken' }),
      await relayCall(hub, token, 'getupdates', { token: 'another' }),
    ]
    for (const answer of shapes) isRefusal(answer, 401, 'token')
  },
)

/** A failure as every relay path tells it: one number three times, and a text with `said` in it. */
function isRefusal({ status, headers, text, body }: Answer, expected: number, said: string): void {
  expect(status, text).toBe(expected)
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(body).toMatchObject({ ret: expected, errcode: expected, errmsg: expect.stringContaining(said) })
}

function saysWhen({ headers, body }: Answer): void {
  expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  expect(body.retry_after_ms).toBeGreaterThan(0)
}
