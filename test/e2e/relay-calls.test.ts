import { expect } from 'vitest'
import type { Upstream } from '../../src/hub/upstream/port.ts'
import { hubWithContexts, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies(
  ['relay:getuploadurl:forwards', 'relay:getuploadurl:both-forms'],
  'a file goes up at the address the service gave, and the user gets it',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'])
    const cipherBytes = Buffer.from('0123456789abcdef')
    const wanted = { filekey: 'f0', media_type: 3, to_user_id: 'ann@im.wechat', filesize: cipherBytes.length }
    const { status, body } = await relayCall(hub, token, 'getuploadurl', { token, ...wanted, base_info: {} })
    expect(status).toBe(200)
    expect(body).toEqual({
      ...OK,
      upload_param: expect.stringMatching(/.+/),
      upload_full_url: expect.stringMatching(/^http.*\/c2c\/upload\?/),
    })
    expect(new URL(body.upload_full_url).searchParams.get('encrypted_query_param')).toBe(body.upload_param)
    const uploaded = await fetch(body.upload_full_url, { method: 'POST', body: cipherBytes })
    expect(uploaded.status).toBe(200)
    const media = { encrypt_query_param: uploaded.headers.get('x-encrypted-param') }
    const item_list = [{ type: 4, file_item: { media, file_name: 'a.bin', len: '5' } }]
    const sent = await relayCall(hub, token, 'sendmessage', { msg: { context_token: context('ann'), item_list } })
    expect(sent.body).toMatchObject(OK)
    const { messages } = await hub.sim.control.conversation({ user: 'ann' })
    expect(messages.at(-1)?.item_list).toEqual(item_list)
  },
)

verifies('relay:getuploadurl:forwards', 'the body goes on to the letter, without what is the hub’s own', async () => {
  const bodies: string[] = []
  const hub = await hubOnFake({
    async uploadUrl(body) {
      bodies.push(body)
      return '{"ret":0,"upload_full_url":"https://cdn.example/u?encrypted_query_param=p","new":12345678901234567890}'
    },
  })
  const token = await hub.register('bot')
  const rest = '"filekey":"f","rawsize" : 7497484083968569736,"odd":{"x":[ 1.50 ]}'
  const { text } = await relayCall(hub, token, 'getuploadurl', `{"token":"${token}",${rest},"base_info":{"a":1}}`)
  expect(bodies).toEqual([`{${rest}}`])
  expect(text).toBe(
    '{"ret":0,"errcode":0,"errmsg":"","upload_param":"p",' +
      '"upload_full_url":"https://cdn.example/u?encrypted_query_param=p","new":12345678901234567890}',
  )
  for (const body of ['', '  ', '{}', `{"token":"${token}"}`]) await relayCall(hub, token, 'getuploadurl', body)
  expect(bodies.slice(1)).toEqual(['{}', '{}', '{}', '{}'])
})

verifies('relay:notifystart:answer', async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  expect(await statusOf(hub, 'bot')).toBe('offline')
  expect((await relayCall(hub, token, 'msg/notifystart', { base_info: {} })).body).toEqual(OK)
  expect(await statusOf(hub, 'bot')).toBe('online')
})

verifies(
  'relay:notifystop:answer',
  'it is offline at once, although a poll of it is open, until it calls again',
  async () => {
    const hub = await startTestHub({ holdMs: 20_000 })
    const token = await onlineClient(hub, 'bot')
    const poll = hub.poll(token)
    await until(() => hub.hub.delivery.parked === 1)
    expect(await statusOf(hub, 'bot')).toBe('online')
    const { status, body } = await relayCall(hub, token, 'msg/notifystop', { token })
    expect([status, body]).toEqual([200, OK])
    expect(await statusOf(hub, 'bot')).toBe('offline')
    await relayCall(hub, token, 'msg/notifystart')
    expect(await statusOf(hub, 'bot')).toBe('online')
    await hub.say('ann', 'hello')
    expect((await poll).body.messages).toHaveLength(1)
  },
)

/** A hub before a service that does nothing but what is given. */
function hubOnFake(calls: Partial<Upstream>): Promise<TestHub> {
  const no = async () => Promise.reject(new Error('not expected'))
  const upstream: Upstream = {
    poll: (_cursor, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    async notify() {},
    send: no,
    typing: no,
    typingTicket: no,
    uploadUrl: no,
    ...calls,
  }
  return startTestHub({ upstream })
}

async function statusOf(hub: TestHub, name: string): Promise<string> {
  const { body } = await hub.call('GET', '/hub/clients')
  return body.clients.find((client: { name: string }) => client.name === name).status
}
