import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { type TestSim, testSim } from '../support.contract.ts'

describe('say', () => {
  verifies('sim:control:say', 'takes a free name or an id, and answers with the id as a string', async () => {
    const sim = await testSim()
    const said = await sim.post('/sim/say', { user: 'ann', text: 'hello' })
    expect(said.json).toEqual({
      message_id: expect.stringMatching(/^\d{19}$/),
      user_id: 'ann@im.wechat',
      context_token: expect.any(String),
    })
    expect((await sim.post('/sim/say', { user: 'X@chatroom', text: 'a' })).json).toMatchObject({
      user_id: 'X@chatroom',
    })
    expect((await sim.poll()).texts).toEqual(['hello', 'a'])
  })

  test('gives every message a context token of its own', async () => {
    const sim = await testSim()
    const tokens = ['a', 'b'].map((text) => sim.control.say({ user: 'ann', text }).context_token)
    expect(new Set(tokens).size).toBe(2)
  })

  test('says many at once, in order, or none when one is wrong', async () => {
    const sim = await testSim()
    const many = { messages: ['1', '2', '3'].map((text) => ({ user: `u${text}`, text })) }
    expect((await sim.post('/sim/say', many)).json).toMatchObject({
      messages: [{ user_id: 'u1@im.wechat' }, { user_id: 'u2@im.wechat' }, { user_id: 'u3@im.wechat' }],
    })
    const wrong = { messages: [...many.messages, { user: 'u4' }] }
    expect(await sim.post('/sim/say', wrong)).toMatchObject({ status: 400, json: { error: { field: 'text' } } })
    expect((await sim.poll()).texts).toEqual(['1', '2', '3'])
  })

  test('quotes an earlier message, the bot’s too, with its id to the digit', async () => {
    const sim = await testSim()
    const { message_id: own } = sim.control.say({ user: 'ann', text: 'mine' })
    const sent = await sim.send('ann', 'yours')
    const theirs = /\d{19}/.exec(sent.text)?.[0] ?? ''
    await sim.post('/sim/say', { user: 'ann', text: 'about mine', quote: own })
    await sim.post('/sim/say', { user: 'ann', text: 'about yours', quote: theirs })
    const { text } = await sim.poll()
    const quoted = (id: string | null, of: string) =>
      `"ref_msg":{"svr_id":${id},"message_item":{"type":1,"text_item":{"text":"${of}"}}}`
    expect(text).toContain(quoted(own, 'mine'))
    expect(text).toContain(quoted(theirs, 'yours'))
    const unknown = await sim.post('/sim/say', { user: 'ann', text: 'x', quote: '1' })
    expect(unknown).toMatchObject({ status: 404, json: { error: { code: 'unknown_message', field: 'quote' } } })
  })

  test('a voice message comes with its words', async () => {
    const sim = await testSim()
    sim.control.say({ user: 'ann', voice_text: 'spoken' })
    expect((await sim.poll()).json).toMatchObject({
      msgs: [{ item_list: [{ type: 3, voice_item: { text: 'spoken' } }] }],
    })
    expect((await sim.control.conversation({ user: 'ann' })).messages).toMatchObject([{ text: 'spoken' }])
  })

  test('raw goes over the made members, and its numbers keep their digits', async () => {
    const sim = await testSim()
    const raw = '{"message_id":9223372036854775807,"new":{"big":12345678901234567890,"s":"\\u00e9"},"message_type":7}'
    const said = await sim.post('/sim/say', `{"user":"ann","text":"odd","raw":${raw}}`)
    expect(said.json).toMatchObject({ message_id: '9223372036854775807' })
    const { text, texts } = await sim.poll()
    expect(texts).toEqual(['odd'])
    expect(text).toContain('"message_id":9223372036854775807,"new":{"big":12345678901234567890,"s":"\\u00e9"}')
    expect(text.match(/"message_(id|type)":/g)).toHaveLength(2)
    expect(text).toContain('"from_user_id":"ann@im.wechat"')
  })

  test('raw is exact among many, and as a JSON text from a program that cannot write such numbers', async () => {
    const sim = await testSim()
    await sim.post(
      '/sim/say',
      '{"messages":[{"user":"a","text":"1"},{"user":"a","text":"2","raw":{"n":9007199254740993}}]}',
    )
    await sim.post('/sim/say', { user: 'a', text: '3', raw: '{"n":9007199254740995}' })
    const { text } = await sim.poll()
    expect(text).toContain('"n":9007199254740993')
    expect(text).toContain('"n":9007199254740995')
  })

  test('raw replaces the whole message when told', async () => {
    const sim = await testSim()
    const raw = { from_user_id: 'ann@im.wechat', item_list: [{ type: 99, odd_item: {} }] }
    const said = await sim.post('/sim/say', { user: 'ann', raw, replace: true })
    expect(said.json).toEqual({ message_id: null, user_id: 'ann@im.wechat', context_token: null })
    expect((await sim.poll()).text).toContain(`"msgs":[${JSON.stringify(raw)}]`)
  })
})

describe('a body that is wrong is refused with the name of the field:', () => {
  test.each([
    ['/sim/say', { text: 'x' }, 'user', /is missing/],
    ['/sim/say', { user: '', text: 'x' }, 'user', /must not be empty/],
    ['/sim/say', { user: 'ann' }, 'text', /is missing/],
    ['/sim/say', { user: 'ann', text: 5 }, 'text', /must be a string/],
    ['/sim/say', { user: 'ann', txt: 'x' }, 'txt', /not a field that is known here/],
    ['/sim/say', { user: 'ann', image_base64: '***' }, 'image_base64', /not allowed/],
    ['/sim/say', { user: 'ann', text: 'x', file_name: 'a' }, 'file_base64', /is missing/],
    ['/sim/say', { user: 'ann', text: 'x', raw: [] }, 'raw', /must be an object/],
    ['/sim/say', { user: 'ann', text: 'x', raw: '{' }, 'raw', /must be an object/],
    ['/sim/say', { user: 'ann', text: 'x', raw: '[]' }, 'raw', /must be an object/],
    ['/sim/say', { user: 'ann', replace: true }, 'raw', /is missing/],
    ['/sim/say', { messages: [] }, 'messages', /fewer than 1/],
    ['/sim/say', { messages: [{ user: 'ann', text: 'x' }, { text: 'x' }] }, 'messages.1.user', /is missing/],
    ['/sim/say', { messages: [{ user: 'ann', text: 'x', tex: 1 }] }, 'messages.0.tex', /not a field/],
    ['/sim/fault', {}, 'kind', /is missing/],
    ['/sim/fault', { kind: 'dow' }, 'kind', /must be one of "down", "expired"/],
    ['/sim/fault', { kind: 'slow' }, 'delay_ms', /slow needs it/],
    ['/sim/fault', { kind: 'http_error' }, 'status', /http_error needs it/],
    ['/sim/fault', { kind: 'http_error', status: 200 }, 'status', />= 400/],
    ['/sim/fault', { kind: 'refuse_send' }, 'ret', /refuse_send needs it/],
    ['/sim/fault', { kind: 'down', count: 0 }, 'count', />= 1/],
    ['/sim/fault', { kind: 'down', for_ms: '5' }, 'for_ms', /must be an integer/],
    ['/sim/fault', { kind: 'expired', fresh_id: true }, 'fresh_id', /does not go with expired/],
    ['/sim/fault', { kind: 'down', only: 'x' }, 'only', /must be one of/],
    ['/sim/qr/scan', {}, 'qrcode', /is missing/],
    ['/sim/bots', { name: 'a b' }, 'name', /not allowed/],
  ])('%s %j', async (path, body, field, message) => {
    const sim = await testSim()
    const got = await sim.post(path, body)
    expect(got).toMatchObject({ status: 400, json: { error: { code: 'bad_request', field } } })
    expect(got.json).toMatchObject({ error: { message: expect.stringMatching(message) } })
    expect(sim.control.state()).toMatchObject({ said: 0, faults: [] })
  })

  test.each(['', '{', '[]', '"x"', 'null'])('no JSON object: %s', async (body) => {
    const sim = await testSim()
    const got = await sim.post('/sim/say', body)
    expect(got).toMatchObject({ status: 400, json: { error: { code: 'bad_request' } } })
  })

  test('an unknown bot', async () => {
    const sim = await testSim()
    const unknown = { status: 404, json: { error: { code: 'unknown_bot', field: 'bot' } } }
    expect(await sim.post('/sim/say', { user: 'ann', text: 'x', bot: 'nobody' })).toMatchObject(unknown)
    expect(await sim.post('/sim/fault', { kind: 'down', bot: 'nobody' })).toMatchObject(unknown)
    expect(await sim.get('/sim/conversation?user=ann&bot=nobody')).toMatchObject(unknown)
  })
})

describe('a conversation', () => {
  verifies('sim:control:conversation', 'has both sides in order, and after skips what was seen', async () => {
    const sim = await testSim()
    sim.control.say({ user: 'ann', text: 'ping' })
    await sim.send('ann', 'pong')
    const all = await sim.get('/sim/conversation?user=ann')
    expect(all.json).toMatchObject({
      user_id: 'ann@im.wechat',
      typing: false,
      messages: [
        { index: 1, from: 'user', text: 'ping', at: expect.any(Number), item_list: [{ type: 1 }] },
        { index: 2, from: 'bot', text: 'pong', client_id: 'c1', context_token: 'ctx' },
      ],
    })
    expect((await sim.get('/sim/conversation?user=ann&after=1')).json).toMatchObject({ messages: [{ text: 'pong' }] })
    expect((await sim.get('/sim/conversation?user=nobody')).json).toMatchObject({ messages: [] })
  })

  test('is waited for, before it has begun too', async () => {
    const sim = await testSim()
    const waiting = sim.get('/sim/conversation?user=ann&wait_ms=5000')
    await sim.get('/health')
    sim.control.say({ user: 'ann', text: 'first' })
    expect((await waiting).json).toMatchObject({ messages: [{ text: 'first' }] })
    const idle = await sim.get('/sim/conversation?user=ann&after=1&wait_ms=10')
    expect(idle.json).toMatchObject({ messages: [] })
  })

  test('has news when typing has changed since the caller looked', async () => {
    const sim = await testSim()
    sim.control.say({ user: 'ann', text: 'x' })
    await typing(sim, 1)
    const changed = await sim.get('/sim/conversation?user=ann&after=1&typing=false&wait_ms=5000')
    expect(changed.json).toMatchObject({ typing: true, messages: [] })
    const waiting = sim.control.conversation({ user: 'ann', after: 1, waitMs: 5_000 })
    await typing(sim, 2)
    expect(await waiting).toMatchObject({ typing: false, messages: [] })
  })

  test.each([
    ['', 'user'],
    ['?user=ann&after=-1', 'after'],
    ['?user=ann&wait_ms=x', 'wait_ms'],
    ['?user=ann&typing=maybe', 'typing'],
    ['?user=ann&afte=1', 'afte'],
  ])('refuses the query %s', async (query, field) => {
    const sim = await testSim()
    expect(await sim.get(`/sim/conversation${query}`)).toMatchObject({ status: 400, json: { error: { field } } })
  })
})

test('users and state tell what there is', async () => {
  const sim = await testSim()
  sim.control.sayAll([
    { user: 'ann', text: '1' },
    { user: 'bob', text: '2' },
    { user: 'ann', text: '3' },
  ])
  const users = [
    { user_id: 'bob@im.wechat', messages: 1, typing: false },
    { user_id: 'ann@im.wechat', messages: 2, typing: false },
  ]
  expect((await sim.get('/sim/users')).json).toMatchObject({ users })
  const poll = sim.poll((await sim.poll()).cursor)
  await sim.parked()
  const counts = { polls: 2, polls_in_flight: 1, said: 3, delivered: 3, acknowledged: 3, not_fetched: 0, sends: 0 }
  const state = await sim.get('/sim/state')
  expect(state.json).toMatchObject({ ...counts, users: 2, bots: [{ name: 'default', ...counts }], faults: [] })
  expect(state.text).not.toContain(sim.botToken)
  sim.control.say({ user: 'ann', text: 'end' })
  await poll
})

test('a new bot account comes with its token, once', async () => {
  const sim = await testSim()
  const made = await sim.post('/sim/bots', { name: 'second', token: 'my-own-token' })
  expect(made.json).toMatchObject({
    name: 'second',
    bot_id: expect.stringMatching(/@im\.bot$/),
    bot_token: 'my-own-token',
  })
  expect(await sim.post('/sim/bots', { name: 'second' })).toMatchObject({
    status: 409,
    json: { error: { code: 'bot_exists' } },
  })
})

test('the front page says what this is and how to call it; health is ok; other paths are not there', async () => {
  const sim = await testSim()
  const page = await sim.get('/')
  expect(page.headers.get('content-type')).toMatch(/^text\/plain/)
  for (const path of ['say', 'conversation', 'media', 'users', 'state', 'fault', 'qr/scan', 'bots']) {
    expect(page.text).toContain(`curl`)
    expect(page.text).toContain(`${sim.url}/sim/${path}`)
  }
  expect((await sim.get('/health')).json).toEqual({ status: 'ok' })
  expect(await sim.get('/nothing')).toMatchObject({ status: 404, json: { error: { code: 'not_found' } } })
  const wrong = await sim.get('/sim/say')
  expect(wrong).toMatchObject({ status: 405, json: { error: { code: 'method_not_allowed' } } })
  expect(wrong.headers.get('allow')).toBe('POST')
})

describe('a page of another site', () => {
  test('may not speak as a user', async () => {
    const sim = await testSim()
    const say = { user: 'ann', text: 'do something' }
    const refused = { status: 403, json: { error: { code: 'foreign_origin' } } }
    expect(await sim.post('/sim/say', say, { origin: 'https://elsewhere.example' })).toMatchObject(refused)
    expect(await sim.post('/sim/say', say, { origin: 'null' })).toMatchObject(refused)
    expect((await sim.post('/sim/say', say, { origin: sim.url })).status).toBe(200)
    expect(sim.control.state().said).toBe(1)
  })

  test('may not do so under a name that points here', async () => {
    const sim = await testSim()
    expect(await statusUnder(sim, 'elsewhere.example')).toBe(403)
    expect(await statusUnder(sim, `localhost:${sim.port}`)).toBe(200)
  })
})

function statusUnder(sim: TestSim, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(`${sim.url}/sim/state`, { headers: { host } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject).end()
  })
}

async function typing(sim: TestSim, status: number): Promise<void> {
  const user = { ilink_user_id: 'ann@im.wechat' }
  const ticket = /"typing_ticket":"([^"]+)"/.exec((await sim.bot('getconfig', user)).text)?.[1]
  expect((await sim.bot('sendtyping', { ...user, typing_ticket: ticket, status })).json).toMatchObject({ ret: 0 })
}
