import { expect, test } from 'vitest'
import { hubWithContexts, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies(
  ['relay:sendmessage:reaches-user', 'relay:sendmessage:answer', 'relay:sendmessage:flat-body'],
  'a reply goes to the user its context token stands for, and to nobody else',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann', 'ben'])
    const answer = await hub.send(token, context('ben'), 'for ben')
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject(OK)
    expect(answer.text).toMatch(/"message_id":\d{15,}/)
    await hub.send(token, context('ann'), 'for ann')
    expect(await hub.answers('ben', 1)).toEqual(['for ben'])
    expect(await hub.answers('ann', 1)).toEqual(['for ann'])
    const { messages } = await hub.sim.control.conversation({ user: 'ben' })
    expect(messages.at(-1)?.item_list).toEqual([{ type: 1, text_item: { text: 'for ben' } }])
  },
)

verifies(
  ['relay:message:context-token', 'relay:sendmessage:answer'],
  'a context token is good for many replies and for typing',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'])
    expect((await relayCall(hub, token, 'sendtyping', { context_token: context('ann') })).body).toEqual(OK)
    for (const text of ['one', 'two', 'three'])
      expect((await hub.send(token, context('ann'), text)).body).toMatchObject(OK)
    expect((await relayCall(hub, token, 'sendtyping', { context_token: context('ann') })).body).toEqual(OK)
    expect(await hub.answers('ann', 3)).toEqual(['one', 'two', 'three'])
  },
)

verifies('relay:sendmessage:flat-body', 'every character of the content arrives', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const text = ' "x" \\ \u0000\u001b[31m\u2028 😀 \ud800 </script>\n\t.'
  expect((await hub.send(token, context('ann'), text)).status).toBe(200)
  expect(await hub.answers('ann', 1)).toEqual([text])
})

verifies('relay:sendmessage:msg-body', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const msg =
    `{"from_user_id":"","to_user_id":"ann@im.wechat","client_id":"c-1","message_type":2,"message_state":2,` +
    `"run_id":"r","big":7497484083968569736,"context_token":"${context('ann')}",` +
    `"item_list":[{"type":1,"text_item":{"text":"first"},"odd":1.50},{"type":12,"tool_call_result_item":{"status":"completed"}}]}`
  const answer = await relayCall(hub, token, 'sendmessage', `{"msg":${msg},"base_info":{"channel_version":"2.4.9"}}`)
  expect(answer.status).toBe(200)
  expect(answer.body).toMatchObject(OK)
  const { messages } = await hub.sim.control.conversation({ user: 'ann' })
  const sent = messages.filter(({ from }) => from === 'bot')
  expect(sent).toMatchObject([
    { client_id: 'c-1', run_id: 'r', big: '7497484083968569736', item_list: [{ type: 1, odd: 1.5 }] },
    { client_id: 'c-1-2', run_id: 'r', item_list: [{ type: 12 }] },
  ])
})

test('the msg shape may name the user by a token, by an id this client knows in any case, or by both', async () => {
  const { hub, token, context } = await hubWithContexts(['Ann_X@im.wechat'])
  const context_token = context('Ann_X@im.wechat')
  const item_list = [{ type: 1, text_item: { text: 'hi' } }]
  for (const named of [
    { context_token },
    { to_user_id: 'Ann_X@im.wechat' },
    { to_user_id: 'ann_x@IM.wechat', context_token: '' },
    { to_user_id: 'ANN_X@im.wechat', context_token },
  ]) {
    const answer = await relayCall(hub, token, 'sendmessage', { msg: { ...named, item_list } })
    expect(answer.body, JSON.stringify(named)).toMatchObject(OK)
  }
  expect(await hub.answers('Ann_X@im.wechat', 4)).toEqual(['hi', 'hi', 'hi', 'hi'])
})

test('a user whom this client has never heard of cannot be written to by name', async () => {
  const { hub } = await hubWithContexts(['ann'])
  const other = await hub.register('other')
  const item_list = [{ type: 1, text_item: { text: 'hi' } }]
  for (const to_user_id of ['ann@im.wechat', 'nobody@im.wechat']) {
    const answer = await relayCall(hub, other, 'sendmessage', { msg: { to_user_id, item_list } })
    expect(answer.status).toBe(404)
  }
  expect(hub.sim.control.state().sends).toBe(0)
})

verifies('relay:sendmessage:msg-type-default', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const answer = await relayCall(hub, token, 'sendmessage', { context_token: context('ann'), content: 'plain' })
  expect(answer.body).toMatchObject(OK)
  const { messages } = await hub.sim.control.conversation({ user: 'ann' })
  expect(messages.at(-1)?.item_list).toEqual([{ type: 1, text_item: { text: 'plain' } }])
})

verifies(
  ['contexts:token:own', 'contexts:token:per-delivery'],
  'context tokens are the hub’s, random, and another one for each client and message',
  async () => {
    const hub = await startTestHub()
    const clients = [await onlineClient(hub, 'first'), await onlineClient(hub, 'second')]
    const upstreamTokens = Array.from({ length: 20 }, (_, index) => {
      const said = hub.sim.control.say({ user: 'ann', text: `/broadcast ${index}` })
      return String(said.context_token)
    })
    await until(async () => (await hub.store.messages.list({ limit: 50 })).length === 20)
    const answers = await Promise.all(clients.map((token) => hub.poll(token)))
    const tokens = answers.flatMap(({ body }) => body.messages.map(contextOf))
    expect(tokens).toHaveLength(40)
    expect(new Set(tokens).size).toBe(40)
    for (const token of tokens) {
      const [, random = ''] = /^ctx_[0-9a-z]{9}([\w-]+)$/.exec(token) ?? []
      expect(Buffer.from(random, 'base64url')).toHaveLength(16)
    }
    for (const { text } of answers) for (const token of upstreamTokens) expect(text).not.toContain(token)
  },
)

verifies('contexts:token:redelivery', async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  const { body: start } = await hub.poll(token, { get_updates_buf: '' })
  await hub.say('ann', 'one')
  const first = await hub.poll(token, { get_updates_buf: start.get_updates_buf })
  const again = await hub.poll(token, { get_updates_buf: start.get_updates_buf })
  expect(first.body.messages).toHaveLength(1)
  expect(again.body.messages).toEqual(first.body.messages)
  expect(again.body.msgs).toEqual(first.body.msgs)
})

verifies('contexts:token:newest', async () => {
  const hub = await startTestHub()
  const [first, second] = [await onlineClient(hub, 'first'), await onlineClient(hub, 'second')]
  const old = await said(hub, '@first one')
  const { body } = await hub.poll(first)
  expect(await sentWith(hub, first, contextOf(body.messages[0]))).toBe(old)
  const newer = await said(hub, '@first two')
  expect(await sentWith(hub, first, contextOf(body.messages[0]))).toBe(newer)
  // What the user said to somebody else counts too: it is one conversation with the bot.
  const newest = await said(hub, '@second three')
  expect(await sentWith(hub, first, contextOf(body.messages[0]))).toBe(newest)
  expect(new Set([old, newer, newest]).size).toBe(3)
  expect((await hub.poll(second)).body.messages).toHaveLength(1)
})

/** Says it as ann; the service's context token. */
async function said(hub: TestHub, text: string): Promise<string> {
  const { message_id: id, context_token: token } = hub.sim.control.say({ user: 'ann', text })
  await until(async () => (await hub.store.messages.list({ limit: 50 })).some(({ upstreamId }) => upstreamId === id))
  return String(token)
}

/** Replies to ann; the context token the service saw. */
async function sentWith(hub: TestHub, token: string, contextToken: string): Promise<unknown> {
  expect((await hub.send(token, contextToken, 'hi')).status).toBe(200)
  return (await hub.sim.control.conversation({ user: 'ann' })).messages.at(-1)?.context_token
}

function contextOf(message: { context_token: string }): string {
  return message.context_token
}
