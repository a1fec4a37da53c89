import { expect } from 'vitest'
import { HUB_SETTINGS } from '../../src/hub/config.ts'
import { rawRequest } from '../support/raw-http.ts'
import { hubWithContexts, isTyping, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { type Answer, startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const ANN = 'ann@im.wechat'
const ENDPOINTS = [
  'getupdates',
  'sendmessage',
  'sendtyping',
  'getconfig',
  'getuploadurl',
  'msg/notifystart',
  'msg/notifystop',
]

verifies(['wire:rule:mounted', 'wire:shape:superset'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 20 })
  const msg = { to_user_id: ANN, context_token: context('ann'), item_list: [textItem('hi')] }
  const bodies: Record<string, object> = {
    sendmessage: { msg },
    sendtyping: { context_token: context('ann') },
    getuploadurl: { filekey: 'f' },
  }
  for (const endpoint of ENDPOINTS) {
    for (const prefix of ['/relay/bot/', '/ilink/bot/']) {
      const answer = await hub.call('POST', prefix + endpoint, { token, body: bodies[endpoint] ?? {} })
      expect(answer.status, prefix + endpoint).toBe(200)
      expect(answer.body).toMatchObject(OK)
      if (endpoint === 'getupdates')
        expect(answer.body).toEqual({ ...OK, messages: [], msgs: [], get_updates_buf: expect.any(String) })
    }
  }
  const failure = await relayCall(hub, token, 'sendmessage', {})
  expect(failure.body).toMatchObject({ ret: 400, errcode: 400, errmsg: expect.stringMatching(/.{10}/) })
})

verifies('wire:rule:hold', async () => {
  expect(HUB_SETTINGS.pollHoldMs.fallback).toBe(30_000)
  const { hub, token } = await hubWithContexts(['ann'], { holdMs: 20 })
  expect((await hub.poll(token)).text).not.toContain('longpolling')
})

verifies('wire:rule:cursor-ack', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  await hub.say('ann', 'one')
  const first = await real(hub, token, '')
  for (const cursor of ['', 'v1.other.99', 'Q2hpbmVzZQ==', '💥'])
    expect(textsOf(await real(hub, token, cursor)), cursor).toEqual([])
  await hub.say('ann', 'two')
  const second = await real(hub, token, first.body.get_updates_buf)
  expect(textsOf(second)).toEqual(['two'])
  // It was not acknowledged, so the same cursor gets it again, and a client that lost its state too.
  expect(textsOf(await real(hub, token, first.body.get_updates_buf))).toEqual(['two'])
  expect(textsOf(await real(hub, token, 'nonsense'))).toEqual(['two'])
  expect(textsOf(await real(hub, token, second.body.get_updates_buf))).toEqual([])
})

verifies('wire:rule:one-poll', async () => {
  const hub = await startTestHub({ holdMs: 5_000 })
  const token = await onlineClient(hub, 'bot')
  const older = hub.poll(token)
  await until(() => hub.hub.delivery.parked === 1)
  const newer = hub.poll(token)
  expect((await older).status).toBe(409)
  await hub.say('ann', 'hello')
  expect((await newer).body.messages).toMatchObject([{ content: 'hello' }])
})

verifies('wire:rule:message-id', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  const ids = [
    '7497484083968569736',
    '7497484083968569736000',
    '5',
    '7497484083968569737',
    '"text"',
    '7497484083968570001',
  ]
  for (const [index, id] of ids.entries())
    hub.sim.control.say({ user: 'ann', text: String(index), raw: `{"message_id":${id},"seq":${index}}` })
  await until(async () => (await hub.store.messages.list({ limit: 10 })).length === ids.length)
  const { text } = await hub.poll(token)
  const sent = [...text.slice(text.indexOf('"msgs"')).matchAll(/"message_id":(\d+)[,}]/g)].map(
    ([, digits = '']) => digits,
  )
  expect(sent).toHaveLength(ids.length)
  expect(sent[0]).toBe(ids[0])
  expect(sent.at(-1)).toBe(ids.at(-1))
  expect(sent.map(BigInt).every((id, index, all) => index === 0 || id > (all[index - 1] ?? 0n))).toBe(true)
})

verifies('wire:rule:no-echoes', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  await hub.say('ann', 'an echo', { raw: { message_type: 2 } })
  await hub.say('ann', 'from a user')
  expect((await hub.poll(token)).body.messages.map(({ content }: { content: string }) => content)).toEqual([
    'from a user',
  ])
})

verifies(['wire:rule:user-ids', 'wire:rule:missing-token'], async () => {
  const hub = await startTestHub()
  const [token, stranger] = [await onlineClient(hub, 'bot'), await onlineClient(hub, 'stranger')]
  await hub.say('AnN@im.WeChat', 'hello')
  const { body } = await hub.poll(token)
  expect(body.msgs[0].from_user_id).toBe('AnN@im.WeChat')
  const send = (client: string, more: object) =>
    relayCall(hub, client, 'sendmessage', { msg: { to_user_id: ANN, item_list: [textItem('hi')], ...more } })
  expect((await send(token, {})).status).toBe(200)
  expect((await send(token, { context_token: '' })).status).toBe(200)
  expect((await relayCall(hub, token, 'sendtyping', { ilink_user_id: ANN.toUpperCase(), status: 1 })).status).toBe(200)
  expect((await send(stranger, {})).status).toBe(404)
  expect((await send(stranger, { context_token: body.msgs[0].context_token })).status).toBe(404)
  expect((await send(token, { to_user_id: 'nobody@im.wechat' })).status).toBe(404)
  expect(await hub.answers('AnN@im.WeChat', 2)).toEqual(['hi', 'hi'])
})

verifies(['wire:rule:several-items', 'wire:fields:outbound'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const items =
    '{"type":1,"text_item":{"text":"caption","deep":{"id":7497484083968569736}},"is_completed":true},' +
    '{"type":2,"image_item":{"media":{"encrypt_query_param":"p","new":[1.50]},"odd":9007199254740993}},' +
    '{"type":77,"future_item":{"x":null}}'
  const answer = await relayCall(
    hub,
    token,
    'sendmessage',
    `{"msg":{"to_user_id":"${ANN}","context_token":"${context('ann')}","run_id":9223372036854775807,"item_list":[${items}]}}`,
  )
  expect(answer.text).toMatch(/"message_id":\d{17,}/)
  const { messages } = await hub.sim.control.conversation({ user: 'ann' })
  const sent = messages.filter(({ from }) => from === 'bot')
  expect(sent.map(({ item_list }) => item_list)).toEqual([
    [{ type: 1, text_item: { text: 'caption', deep: { id: '7497484083968569736' } }, is_completed: true }],
    [{ type: 2, image_item: { media: { encrypt_query_param: 'p', new: [1.5] }, odd: '9007199254740993' } }],
    [{ type: 77, future_item: { x: null } }],
  ])
  for (const message of sent) expect(message).toMatchObject({ run_id: '9223372036854775807' })
  const [digits] = /\d{17,}/.exec(answer.text) ?? []
  expect(sent[0]?.message_id).toBe(digits)
})

verifies('wire:rule:tool-items', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const item = (type: number) => ({ type, tool_call_start_item: { tool_name: 'grep', tool_call_id: 'c1' } })
  const send = (...item_list: object[]) =>
    relayCall(hub, token, 'sendmessage', { msg: { context_token: context('ann'), item_list } })
  expect((await send(item(11))).body).toMatchObject(OK)
  expect((await hub.sim.control.conversation({ user: 'ann' })).messages.at(-1)?.item_list).toEqual([item(11)])
  hub.sim.control.faults.add({ kind: 'refuse_send', ret: -2, errmsg: 'param invalid', count: 1 })
  const refused = await send(item(12))
  expect(refused).toMatchObject({ status: 200, body: { ...OK, send_state: 'failed' } })
  hub.sim.control.faults.add({ kind: 'refuse_send', ret: -2, errmsg: 'param invalid', count: 1 })
  expect((await send(textItem('an answer'), item(12))).status).toBe(422)
})

verifies('wire:rule:same-client-id', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const msg = { context_token: context('ann'), client_id: 'same', item_list: [textItem('once')] }
  const first = await relayCall(hub, token, 'sendmessage', { msg })
  expect((await relayCall(hub, token, 'sendmessage', { msg })).text).toBe(first.text)
  await relayCall(hub, token, 'sendmessage', { msg: { ...msg, client_id: 'last', item_list: [textItem('last')] } })
  expect(await hub.answers('ann', 2)).toEqual(['once', 'last'])
})

verifies(['wire:rule:spec-typing', 'wire:rule:config-without-user'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  expect((await relayCall(hub, token, 'getconfig', {})).body).toEqual({
    ...OK,
    typing_ticket: expect.stringMatching(/.+/),
  })
  await relayCall(hub, token, 'sendtyping', { context_token: context('ann') })
  await until(() => isTyping(hub, 'ann'))
  await hub.send(token, context('ann'), 'done')
  await until(async () => !(await isTyping(hub, 'ann')))
})

verifies('wire:rule:upload-forms', async () => {
  const { hub, token } = await hubWithContexts(['ann'])
  const { body } = await relayCall(hub, token, 'getuploadurl', { filekey: 'f', filesize: 16, thumb_filesize: 16 })
  expect(body).toEqual({
    ...OK,
    upload_param: expect.any(String),
    thumb_upload_param: expect.any(String),
    upload_full_url: expect.any(String),
  })
  expect(body.upload_full_url).toContain(`encrypted_query_param=${body.upload_param}`)
})

verifies(['wire:rule:notify', 'wire:rule:liveness'], async () => {
  const hub = await startTestHub({ holdMs: 5_000 })
  const token = await hub.register('bot')
  const status = async () => (await hub.call('GET', '/hub/clients/bot')).body.status
  expect((await relayCall(hub, token, 'msg/notifystart')).body).toEqual(OK)
  expect(await status()).toBe('online')
  expect((await relayCall(hub, token, 'msg/notifystop')).body).toEqual(OK)
  expect(await status()).toBe('offline')
  await relayCall(hub, token, 'getconfig')
  hub.advance(89_000)
  expect(await status()).toBe('online')
  hub.advance(2_000)
  expect(await status()).toBe('offline')
  const poll = hub.poll(token)
  await until(() => hub.hub.delivery.parked === 1)
  hub.advance(600_000)
  expect(await status()).toBe('online')
  await hub.say('ann', 'hello')
  expect((await poll).status).toBe(200)
})

verifies('wire:rule:no-minus-14', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 300 })
  hub.sim.control.faults.add({ kind: 'expired' })
  await until(() => hub.hub.link.view().state === 'needs_login')
  expect((await hub.poll(token)).body).toMatchObject(OK)
  for (const answer of [
    await hub.send(token, context('ann'), 'hi'),
    await relayCall(hub, token, 'getuploadurl', { filekey: 'f' }),
  ]) {
    expect(answer.status).toBe(503)
    expect(answer.text).not.toMatch(/-1[34]/)
  }
})

verifies(['wire:rule:bad-token', 'wire:rule:no-instant-errors', 'wire:rule:body-token'], async () => {
  const { hub, token } = await hubWithContexts(['ann'])
  for (const endpoint of ENDPOINTS) {
    for (const [header, body] of [
      [undefined, { token }],
      ['vhub_wrong', {}],
      [token, { token: 'another' }],
    ] as const) {
      const answer = await hub.call('POST', `/ilink/bot/${endpoint}`, { token: header, body })
      expect(answer.status, endpoint).toBe(401)
      expect(answer.body).toMatchObject({ ret: 401, errcode: 401 })
      expect(answer.text).not.toContain('-14')
    }
    const bad = await hub.call('POST', `/ilink/bot/${endpoint}`, { token, body: '[' })
    expect(bad.status).toBe(400)
  }
})

verifies('wire:rule:refusals', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  hub.sim.control.faults.add({ kind: 'refuse_send', ret: -3, errmsg: 'unknown user', count: 1 })
  const refused = await hub.send(token, context('ann'), 'hi')
  expect(refused).toMatchObject({
    status: 422,
    body: { ret: 422, errcode: 422, upstream_code: -3, send_state: 'failed' },
  })
})

verifies('wire:rule:tolerance', async () => {
  const hub = await startTestHub({ holdMs: 50 })
  const token = await onlineClient(hub, 'bot')
  const body = JSON.stringify({ get_updates_buf: '', base_info: { channel_version: 'x' }, extra: { deep: [1] } })
  for (const type of ['', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense']) {
    const lines = [`authorization: Bearer ${token}`, 'SKRouteTag: ', `content-length: ${body.length}`]
    const head = [
      'POST /ilink/bot/getupdates HTTP/1.1',
      'host: hub',
      ...lines,
      ...(type === '' ? [] : [`content-type: ${type}`]),
      'connection: close',
    ]
    const answer = await rawRequest(Number(new URL(hub.url).port), `${head.join('\r\n')}\r\n\r\n${body}`)
    expect(answer.status, type).toBe(200)
  }
  const hungUp = new AbortController()
  const poll = hub.poll(token, {}, hungUp.signal).catch(() => 'gone')
  await until(() => hub.hub.delivery.parked === 1)
  hungUp.abort()
  expect(await poll).toBe('gone')
  await hub.say('ann', 'after the hang-up')
  expect((await hub.poll(token)).body.messages).toMatchObject([{ content: 'after the hang-up' }])
})

function textItem(text: string) {
  return { type: 1, text_item: { text } }
}

function real(hub: TestHub, token: string, cursor: string): Promise<Answer> {
  return hub.call('POST', '/ilink/bot/getupdates', { token, body: { get_updates_buf: cursor } })
}

function textsOf({ body }: Answer): string[] {
  return body.messages.map(({ content }: { content: string }) => content)
}
