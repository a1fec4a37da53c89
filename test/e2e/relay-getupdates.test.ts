import { afterEach, expect, vi } from 'vitest'
import { parseHubConfig } from '../../src/hub/config.ts'
import { onlineClient } from '../support/relay-calls.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const FIVE = ['content', 'context_token', 'from_user', 'msg_type', 'timestamp']
const SIX = ['ret', 'errcode', 'errmsg', 'messages', 'msgs', 'get_updates_buf']

afterEach(() => {
  vi.useRealTimers()
})

verifies(['relay:getupdates:waits', 'relay:getupdates:delivers'], async () => {
  const hub = await startTestHub({ holdMs: 20_000 })
  const token = await onlineClient(hub, 'bot')
  let answered = false
  const poll = hub.poll(token).finally(() => {
    answered = true
  })
  await until(() => hub.hub.delivery.parked === 1)
  // Another call has come and gone meanwhile, so the poll is not merely slow.
  expect((await hub.call('GET', '/health')).status).toBe(200)
  expect(answered).toBe(false)
  await hub.say('ann', 'hello')
  const { status, body } = await poll
  expect(status).toBe(200)
  expect(body.errcode).toBe(0)
  expect(body.messages).toMatchObject([{ content: 'hello', from_user: 'ann@im.wechat' }])
})

verifies('relay:getupdates:delivers', 'what waits is answered at once, all of it, oldest first', async () => {
  const hub = await startTestHub({ holdMs: 20_000 })
  const token = await onlineClient(hub, 'bot')
  for (const text of ['one', 'two', 'three']) await hub.say('ann', text)
  const { body } = await hub.poll(token)
  expect(body.errcode).toBe(0)
  expect(body.messages.map(({ content }: { content: string }) => content)).toEqual(['one', 'two', 'three'])
})

verifies('relay:getupdates:empty-after-hold', async () => {
  const holdMs = parseHubConfig({}, {}).settings.pollHoldMs
  expect(holdMs).toBe(30_000)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'], shouldAdvanceTime: true })
  const hub = await startTestHub({ holdMs })
  const token = await onlineClient(hub, 'bot')
  let answered = false
  const poll = hub.poll(token).finally(() => {
    answered = true
  })
  await until(() => hub.hub.delivery.parked === 1)
  await vi.advanceTimersByTimeAsync(20_000)
  expect((await hub.call('GET', '/health')).status).toBe(200)
  expect(answered).toBe(false)
  await vi.advanceTimersByTimeAsync(11_000)
  const { status, body } = await poll
  expect(status).toBe(200)
  expect(body).toMatchObject({ errcode: 0, messages: [] })
})

verifies(
  ['relay:getupdates:success-shape', 'relay:getupdates:empty-shape', 'relay:getupdates:no-timeout-hint'],
  async () => {
    const hub = await startTestHub({ holdMs: 20 })
    const token = await onlineClient(hub, 'bot')
    for (const more of [{}, { get_updates_buf: '' }, { get_updates_buf: 'from elsewhere' }]) {
      const empty = await hub.poll(token, more)
      expect(empty.status).toBe(200)
      expect(empty.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(Object.keys(empty.body)).toEqual(SIX)
      expect(empty.body).toMatchObject({ ret: 0, errcode: 0, errmsg: '', messages: [], msgs: [] })
      expect(empty.body.get_updates_buf).toEqual(expect.stringMatching(/.+/))
      expect(empty.text).not.toContain('longpolling_timeout_ms')
    }
    await hub.say('ann', 'hello')
    const full = await hub.poll(token)
    expect(full.status).toBe(200)
    expect(Object.keys(full.body)).toEqual(SIX)
    expect(full.body).toMatchObject({ ret: 0, errcode: 0, errmsg: '', messages: [{}], msgs: [{}] })
    expect(full.body.get_updates_buf).toEqual(expect.stringMatching(/.+/))
    // The service itself sends the hint in every answer.
    expect(full.text).not.toContain('longpolling_timeout_ms')
  },
)

verifies(
  ['relay:message:five-fields', 'relay:message:from-user', 'relay:message:content', 'relay:message:msg-type'],
  'a text arrives in the spec’s shape, to the letter',
  async () => {
    const hub = await startTestHub()
    const token = await onlineClient(hub, 'bot')
    const text = ' "quoted" \\ \u0000\u001f\u2028 😀 \ud800 </script>\n\tend '
    await hub.say('Ann_X@im.wechat', text)
    const { body } = await hub.poll(token)
    expect(Object.keys(body.messages[0]).sort()).toEqual(FIVE)
    expect(body.messages).toEqual([
      {
        context_token: expect.any(String),
        from_user: 'Ann_X@im.wechat',
        content: text,
        msg_type: 'text',
        timestamp: expect.any(Number),
      },
    ])
  },
)

verifies('relay:message:timestamp', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  const before = Math.floor(Date.now() / 1000)
  await hub.say('ann', 'now')
  await hub.say('ann', 'then', { raw: { create_time_ms: 1_700_000_000_999 } })
  const { body } = await hub.poll(token)
  const [now, then] = body.messages.map(({ timestamp }: { timestamp: number }) => timestamp)
  expect(Number.isInteger(now)).toBe(true)
  expect(now).toBeGreaterThanOrEqual(before)
  expect(now).toBeLessThanOrEqual(Math.floor(Date.now() / 1000))
  expect(then).toBe(1_700_000_000)
})

verifies(
  ['relay:message:voice-transcript', 'relay:message:media-label', 'relay:message:media-type'],
  'media arrive with words for those who read only those',
  async () => {
    const hub = await startTestHub()
    const token = await onlineClient(hub, 'bot')
    const bytes = Buffer.from('bytes').toString('base64')
    hub.sim.control.sayAll([
      { user: 'ann', voice_text: 'spoken words' },
      { user: 'ann', image_base64: bytes },
      { user: 'ann', file_base64: bytes, file_name: 'a.txt' },
      { user: 'ann', raw: { item_list: [{ type: 3, voice_item: {} }] } },
      { user: 'ann', raw: { item_list: [{ type: 5, video_item: {} }] } },
      { user: 'ann', image_base64: bytes, text: 'a caption' },
    ])
    expect((await messages(hub, token, 6)).map(({ content, msg_type }) => [content, msg_type])).toEqual([
      ['spoken words', 'text'],
      ['[image]', 'image'],
      ['[file: a.txt]', 'file'],
      ['[voice]', 'voice'],
      ['[video]', 'video'],
      ['a caption', 'text'],
    ])
  },
)

verifies(
  ['relay:real-message:keeps-fields', 'relay:real-message:spliced', 'relay:real-message:id-digits'],
  'a message passes through to the letter, but for its context token',
  async () => {
    const hub = await startTestHub()
    const token = await onlineClient(hub, 'bot')
    const rest =
      '"from_user_id":"ann@im.wechat","b" : 1e3,"a":1.50,"big":[12345678901234567890,-0.0, 1E+2],' +
      '"item_list":[ {"type":1,"text_item":{"text":"caf\\u00e9\\/", "new":{"deep":[null, true]}},"msg_id":9007199254740993} ],"zz":"\\ud83d\\ude00"'
    say(hub, `{ "message_id":7497484083968569736,${rest}, "context_token":"the service's own" }`)
    const { text, body } = await polled(hub, token, 1)
    const contextToken = body.messages[0].context_token
    const [real] = /(?<="msgs":\[).*(?=\],"get_updates_buf")/.exec(text) ?? []
    expect(real).toBe(`{"context_token":"${contextToken}","message_id":7497484083968569736,${rest}}`)
    expect(body.messages[0]).toMatchObject({ content: 'café/' })
  },
)

verifies('relay:real-message:own-context-token', async () => {
  const hub = await startTestHub()
  const token = await onlineClient(hub, 'bot')
  const { context_token: upstreamToken } = hub.sim.control.say({ user: 'ann', text: 'hello' })
  const { text, body } = await polled(hub, token, 1)
  expect(upstreamToken).toEqual(expect.stringMatching(/.{20}/))
  expect(text).not.toContain(upstreamToken)
  expect(body.msgs[0].context_token).toBe(body.messages[0].context_token)
  expect(text.split('"context_token":')).toHaveLength(3)
})

verifies('relay:real-message:id-missing', async () => {
  const hub = await startTestHub()
  const [first, second] = [await onlineClient(hub, 'first'), await onlineClient(hub, 'second')]
  const message = (text: string, id: string) =>
    `{"from_user_id":"ann@im.wechat",${id}"item_list":[{"type":1,"text_item":{"text":"${text}"}}]}`
  say(
    hub,
    message('@first 1', '"message_id":7497484083968569736,'),
    message('@second 2', '"message_id":9,'),
    message('@first 3', ''),
    message('@first 4', '"message_id":0,'),
    message('@first 5', '"message_id":null,'),
    message('@first 6', '"message_id":"no number",'),
    message('@second 7', ''),
  )
  const ids = ({ text }: { text: string }) => [...text.matchAll(/"message_id":([^,}]*)/g)].map(([, id]) => id)
  expect(ids(await polled(hub, first, 5))).toEqual([
    '7497484083968569736',
    '7497484083968569737',
    '7497484083968569738',
    '7497484083968569739',
    '7497484083968569740',
  ])
  expect(ids(await polled(hub, second, 2))).toEqual(['9', '10'])
})

/** Says exactly this JSON, as the service would send it, all in one answer. */
function say({ sim }: TestHub, ...raws: string[]): void {
  sim.control.sayAll(raws.map((raw) => ({ user: 'ann', raw, replace: true })))
}

/** One answer with exactly `count` messages, once they are all there. */
async function polled({ store, poll }: TestHub, token: string, count: number) {
  await until(async () => {
    const all = await store.messages.list({ limit: 50 })
    return all.flatMap(({ deliveries }) => deliveries).length >= count
  })
  const answer = await poll(token)
  expect(answer.body.messages).toHaveLength(count)
  return answer
}

async function messages(hub: TestHub, token: string, count: number): Promise<{ content: string; msg_type: string }[]> {
  return (await polled(hub, token, count)).body.messages
}
