import { expect, onTestFinished, test } from 'vitest'
import { gate } from '../../../test/support/gate.ts'
import { type RawHandler, startRawService } from '../../../test/support/raw-service.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { type IlinkOptions, ilinkUpstream } from './ilink.ts'
import { UpstreamError } from './port.ts'

const TOKEN = '0123456789ab@im.bot:secret'
const anySignal = () => new AbortController().signal

/** The adapter towards a service that answers every call so. */
async function against(handler: RawHandler | string, more: Partial<IlinkOptions> = {}) {
  const service = await startRawService(handler)
  const upstream = ilinkUpstream({ baseUrl: service.url, botToken: TOKEN, ...more })
  onTestFinished(() => upstream.close())
  return { ...service, upstream }
}

/** What a call was rejected with. */
async function failure(call: Promise<unknown>): Promise<UpstreamError> {
  const error = await call.then(
    (value) => `it resolved: ${JSON.stringify(value)}`,
    (reason: unknown) => reason,
  )
  if (!(error instanceof UpstreamError)) throw new Error(`no UpstreamError: ${String(error)}`)
  return error
}

test('every call carries the headers of the bot protocol, and base_info', async () => {
  const { upstream, requests } = await against('{"ret":0,"typing_ticket":"t"}')
  const user = { userId: 'ann@im.wechat', contextToken: 'ctx' }
  await upstream.notify('start', anySignal())
  await upstream.poll('', anySignal())
  await upstream.send({ ...user, body: '{}' }, anySignal())
  await upstream.typingTicket(user, anySignal())
  await upstream.typing({ userId: user.userId, ticket: 't', on: true }, anySignal())
  await upstream.uploadUrl('{"filekey":"k"}', anySignal())
  await upstream.notify('stop', anySignal())
  expect(requests.map(({ path }) => path.replace('/ilink/bot/', ''))).toEqual([
    'msg/notifystart',
    'getupdates',
    'sendmessage',
    'getconfig',
    'sendtyping',
    'getuploadurl',
    'msg/notifystop',
  ])
  for (const { headers, body } of requests) {
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      authorizationtype: 'ilink_bot_token',
      authorization: `Bearer ${TOKEN}`,
      'ilink-app-id': 'bot',
      'ilink-app-clientversion': '132105',
    })
    expect(JSON.parse(body).base_info).toEqual({ channel_version: '2.4.9', bot_agent: 'Switchboard' })
    const uin = Buffer.from(String(headers['x-wechat-uin']), 'base64').toString()
    expect(uin).toMatch(/^\d+$/)
    expect(Number(uin)).toBeLessThan(2 ** 32)
  }
  expect(new Set(requests.map(({ headers }) => headers['x-wechat-uin'])).size).toBeGreaterThan(1)
})

test.each(['', '/', '/base', '/base/path/'])('an address with the path "%s" is kept in front', async (path) => {
  const { url, requests } = await startRawService('{"ret":0}')
  const upstream = ilinkUpstream({ baseUrl: url + path, botToken: TOKEN })
  onTestFinished(() => upstream.close())
  await upstream.poll('', anySignal())
  expect(requests[0]?.path).toBe(`${path.replace(/\/$/, '')}/ilink/bot/getupdates`)
})

test('messages come as they stand in the answer, ids with all their digits', async () => {
  const first = '{ "message_id" : 7497484083968569736,"x":[1.0,"\\u00e4"] ,"item_list":[]}'
  const { upstream, requests } = await against(
    `{"ret":0,"msgs":[${first},"odd" , null,{"message_id":"7"}],"get_updates_buf":"next \\"cursor\\""}`,
  )
  const { messages, cursor } = await upstream.poll('old "cursor"', anySignal())
  expect(messages).toEqual([first, '"odd"', 'null', '{"message_id":"7"}'])
  expect(cursor).toBe('next "cursor"')
  expect(JSON.parse(requests[0]?.body ?? '').get_updates_buf).toBe('old "cursor"')
})

test.each([
  ['{}', 0],
  ['{"ret":0}', 0],
  ['{"ret":0,"msgs":null,"get_updates_buf":null}', 0],
  ['{"ret":0,"errcode":0,"msgs":[],"get_updates_buf":""}', 0],
  ['{"ret":null,"errcode":null,"msgs":[{}],"get_updates_buf":5}', 1],
  [' \n{"msgs":[ ] } ', 0],
])('the odd answer %s to a poll is read, and leaves the cursor where it is', async (text, count) => {
  const { upstream } = await against(text)
  const { messages, cursor } = await upstream.poll('c', anySignal())
  expect([messages.length, cursor]).toEqual([count, null])
})

test.each([
  '',
  'null',
  '[]',
  '"ok"',
  '0',
  '<html>502</html>',
  '{"ret":0,"msgs":[{"a',
  '{"ret":0,"msgs":{}}',
  '{"msgs":"x"}',
])('the answer %s to a poll is not the protocol', async (text) => {
  const { upstream } = await against(text)
  expect(await failure(upstream.poll('c', anySignal()))).toMatchObject({ kind: 'bad_answer', upstreamCode: null })
})

test.each([
  ['{"ret":-14,"errmsg":"session timeout"}', 'expired', -14],
  ['{"ret":0,"errcode":-14}', 'expired', -14],
  ['{"errcode":-13}', 'expired', -13],
  ['{"ret":-2,"errmsg":"rate limited"}', 'throttled', -2],
  ['{"ret":-2}', 'throttled', -2],
  ['{"ret":-2,"errmsg":"prepare failed"}', 'throttled', -2],
  ['{"ret":-2,"errmsg":"ilink_user_id required"}', 'refused', -2],
  ['{"ret":-2,"errmsg":"invalid context token"}', 'refused', -2],
  ['{"ret":-1}', 'throttled', -1],
  ['{"errcode":45011}', 'throttled', 45011],
  ['{"errcode":210205,"ret":0}', 'throttled', 210205],
  ['{"ret":-3,"errmsg":"unknown user"}', 'refused', -3],
  ['{"ret":"-14"}', 'expired', -14],
  ['{"errcode":"40001","ret":"0"}', 'refused', 40001],
  ['{"ret":99999999999999999999}', 'refused', null],
])('the answer %s means %s, to a poll and to a send', async (text, kind, code) => {
  const { upstream } = await against(text)
  const calls = [
    upstream.poll('c', anySignal()),
    upstream.send({ userId: 'u', contextToken: null, body: '{}' }, anySignal()),
  ]
  for (const call of calls) {
    const error = await failure(call)
    expect(error).toMatchObject({ kind, ambiguous: false })
    if (code !== null) expect(error.upstreamCode).toBe(code)
    // What the service says may hold a user's words.
    expect(error.message).not.toMatch(/context token|unknown user|secret/)
  }
})

test.each([
  [401, 'expired', false],
  [403, 'expired', false],
  [404, 'bad_answer', false],
  [302, 'bad_answer', false],
  [429, 'throttled', false],
  [500, 'unreachable', true],
  [503, 'unreachable', true],
])('HTTP %i means %s', async (status, kind, ambiguous) => {
  const { upstream, requests } = await against((_request, response) => {
    response.writeHead(status, { location: '/elsewhere' }).end('{"ret":0,"msgs":[{}]}')
  })
  expect(await failure(upstream.poll('c', anySignal()))).toMatchObject({ kind, ambiguous, upstreamCode: status })
  expect(requests).toHaveLength(1)
})

test('a connection that is refused carried nothing; one that breaks may have', async () => {
  const { upstream, stop } = await against((_request, response) => void response.destroy())
  const send = () => upstream.send({ userId: 'u', contextToken: null, body: '{}' }, anySignal())
  expect(await failure(send())).toMatchObject({ kind: 'unreachable', ambiguous: true })
  expect(await failure(upstream.poll('c', anySignal()))).toMatchObject({ kind: 'unreachable' })
  await stop()
  expect(await failure(send())).toMatchObject({ kind: 'unreachable', ambiguous: false })
  expect(await failure(upstream.notify('start', anySignal()))).toMatchObject({ kind: 'unreachable', ambiguous: false })
})

test('an answer that is cut off in the middle is a broken connection, not half an answer', async () => {
  const { upstream } = await against((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"ret":0,"msgs":[]}')
    setImmediate(() => response.destroy())
  })
  expect(await failure(upstream.poll('c', anySignal()))).toMatchObject({ kind: 'unreachable', ambiguous: true })
})

verifies('upstream:link:watchdog', 'after a poll that nobody answered the connections are made anew', async () => {
  const both = gate()
  const sending = gate()
  let waiting = 0
  let frozen = false
  const dead = new Set<number>()
  const { upstream, requests } = await against(
    async ({ path, connection }, response) => {
      if (path.endsWith('sendmessage')) await sending.pass()
      else if (frozen || dead.has(connection)) return
      waiting += 1
      if (waiting === 2) both.open()
      await both.pass()
      response.end('{"ret":0,"message_id":7}')
    },
    { pollTimeoutMs: 800 },
  )
  // Two connections at least, kept alive, and dead from here on without a word: as after a night in a laptop bag.
  await Promise.all([upstream.poll('1', anySignal()), upstream.poll('2', anySignal())])
  const send = upstream.send({ userId: 'u', contextToken: null, body: '{}' }, anySignal())
  await sending.reached
  frozen = true
  expect(await failure(upstream.poll('3', anySignal()))).toMatchObject({
    kind: 'unreachable',
    message: 'getupdates was not answered in time',
  })
  for (const { connection } of requests) dead.add(connection)
  frozen = false
  await expect(upstream.poll('4', anySignal())).resolves.toEqual({ messages: [], cursor: null })
  expect([dead.size >= 2, dead.has(requests.at(-1)?.connection ?? 0)]).toEqual([true, false])
  // What was under way elsewhere is not torn down with them.
  sending.open()
  expect(await send).toEqual({ upstreamId: '7' })
})

test('a poll whose answer trickles in for ever is given up', async () => {
  const { upstream } = await against(
    (_request, response) => {
      response.writeHead(200).write('{"ret":0,"msgs":[')
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(timer))
    },
    { pollTimeoutMs: 200 },
  )
  expect(await failure(upstream.poll('c', anySignal()))).toMatchObject({
    message: 'getupdates was not answered in time',
  })
})

test('an abort ends a call at once', async () => {
  const asked = gate()
  const { upstream } = await against(() => asked.pass())
  const giveUp = new AbortController()
  const poll = failure(upstream.poll('c', giveUp.signal))
  await asked.reached
  giveUp.abort()
  expect(await poll).toMatchObject({ kind: 'unreachable', message: 'getupdates was given up' })
})

test('a message goes out with recipient and token, and all its fields to the digit', async () => {
  const { upstream, requests } = await against('{"ret":0}')
  const body =
    '{"client_id":"c","run_id":12345678901234567890,"item_list":[{"type":1.0,"text_item":{"text":"\\ud83d\\ude00"}}]}'
  await upstream.send({ userId: 'a"b@im.wechat', contextToken: 'ctx\\', body }, anySignal())
  await upstream.send({ userId: 'u', contextToken: null, body: '{}' }, anySignal())
  const [full, bare] = requests.map((request) => request.body)
  expect(
    full?.startsWith(
      `{"msg":{"from_user_id":"","to_user_id":"a\\"b@im.wechat","context_token":"ctx\\\\",${body.slice(1)}`,
    ),
  ).toBe(true)
  expect(JSON.parse(bare ?? '').msg).toEqual({ from_user_id: '', to_user_id: 'u' })
})

test.each([
  ['', null],
  ['{}', null],
  ['{"ret":0}', null],
  ['{"ret":0,"message_id":0}', null],
  ['{"ret":0,"message_id":""}', null],
  ['{"ret":0,"message_id":null}', null],
  ['{"ret":0,"message_id":{"a":1}}', null],
  ['{"ret":0,"message_id":7497484083968569736}', '7497484083968569736'],
  ['{"ret":0,"message_id":"7497484083968569736"}', '7497484083968569736'],
  ['{"ret":0,"errcode":0,"message_id":12}', '12'],
])('the answer %s to a send means yes, with the id %s', async (text, upstreamId) => {
  const { upstream } = await against(text)
  const message = { userId: 'u', contextToken: null, body: '{}' }
  expect(await upstream.send(message, anySignal())).toEqual({ upstreamId })
})

test.each(['null', '{"ret":0,"mess', '<html>'])(
  'after the answer %s nobody knows whether the message went out',
  async (text) => {
    const { upstream } = await against(text)
    const message = { userId: 'u', contextToken: null, body: '{}' }
    expect(await failure(upstream.send(message, anySignal()))).toMatchObject({ kind: 'bad_answer', ambiguous: true })
  },
)

test('typing takes a ticket, tells on and off, and stands an empty answer', async () => {
  const { upstream, requests } = await against(({ path }, response) => {
    response.end(path.endsWith('getconfig') ? '{"ret":0,"typing_ticket":"t="}' : '')
  })
  expect(await upstream.typingTicket({ userId: 'u', contextToken: 'ctx' }, anySignal())).toBe('t=')
  await upstream.typingTicket({ userId: 'u', contextToken: null }, anySignal())
  await upstream.typing({ userId: 'u', ticket: 't=', on: true }, anySignal())
  await upstream.typing({ userId: 'u', ticket: 't=', on: false }, anySignal())
  const bodies = requests.map(({ body }) => ({ ...JSON.parse(body), base_info: undefined }))
  expect(bodies).toEqual([
    { ilink_user_id: 'u', context_token: 'ctx' },
    { ilink_user_id: 'u' },
    { ilink_user_id: 'u', typing_ticket: 't=', status: 1 },
    { ilink_user_id: 'u', typing_ticket: 't=', status: 2 },
  ])
  const without = await against('{"ret":0}')
  expect(await failure(without.upstream.typingTicket({ userId: 'u', contextToken: null }, anySignal()))).toMatchObject({
    kind: 'bad_answer',
  })
})

test('a request for an upload address and its answer pass through as they are', async () => {
  const answer = '{"ret":0,"upload_param":"p","upload_full_url":"https://x/?a=1","n":7497484083968569736}'
  const { upstream, requests } = await against(answer)
  expect(await upstream.uploadUrl('{"filekey":"k","filesize":7497484083968569736,"x":[1.0]}', anySignal())).toBe(answer)
  expect(requests[0]?.body).toContain('"filekey":"k","filesize":7497484083968569736,"x":[1.0]}')
})

test('a call that is not answered ends in time, and no error holds the token', async () => {
  const { upstream } = await against(() => {}, { callTimeoutMs: 100 })
  const error = await failure(upstream.notify('start', AbortSignal.timeout(200)))
  expect(error).toMatchObject({ kind: 'unreachable', message: 'msg/notifystart was not answered in time' })
  expect(JSON.stringify([error.message, String(error.cause), error.stack])).not.toContain('secret')
})
