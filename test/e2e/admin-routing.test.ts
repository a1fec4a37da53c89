import { expect, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import { type ErrorFields, silentLog } from '../../src/kit/log.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const dryRun = async ({ call }: TestHub, text: string, user = 'ann@im.wechat') =>
  (await call('POST', '/hub/route/dry-run', { body: { user, text } })).body

verifies('hub:dry-run:answers', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  expect(await dryRun(hub, 'hello')).toMatchObject({ state: 'unrouted', reason: 'nobody', clients: [] })
  const token = await hub.register('first')
  await hub.register('second')
  await hub.poll(token)
  expect(await dryRun(hub, 'hello')).toEqual({
    state: 'routed',
    reason: 'first_online',
    clients: ['first'],
    chooses: null,
    text: 'hello',
    replies: [],
  })
  expect(await dryRun(hub, '@second hello')).toMatchObject({
    reason: 'mention',
    clients: ['second'],
    replies: [expect.stringContaining('second is offline')],
  })
  expect(await dryRun(hub, '/use second')).toMatchObject({ state: 'command', clients: [], chooses: 'second' })
  expect(await dryRun(hub, '/broadcast all')).toMatchObject({ clients: ['first', 'second'], text: 'all' })
  expect(await dryRun(hub, '//list')).toMatchObject({ state: 'routed', clients: ['first'], text: '/list' })
  expect(await dryRun(hub, '')).toMatchObject({ clients: ['first'] })
  // What really happens then is what the dry run said.
  for (const text of ['hello', '@second hello', '/use second', '/broadcast all', '//list']) {
    const { state, reason, clients } = await dryRun(hub, text, 'bob@im.wechat')
    await hub.say('bob', text)
    const [message] = (await hub.call('GET', '/hub/messages?user=bob@im.wechat')).body.messages
    expect([message.state, message.reason], text).toEqual([state, reason])
    expect(message.deliveries.map(({ client }: { client: string }) => client)).toEqual(clients)
  }
})

verifies('hub:dry-run:changes-nothing', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  await hub.register('first')
  await hub.register('second')
  await hub.say('ann', 'hello')
  await hub.answers('ann', 1)
  const state = async () => ({
    clients: (await hub.call('GET', '/hub/clients')).body,
    messages: (await hub.call('GET', '/hub/messages')).body,
    letters: (await hub.call('GET', '/hub/dead-letters')).body,
    conversation: await hub.sim.control.conversation({ user: 'ann' }),
    chosen: await hub.store.conversations.get('main', 'ann@im.wechat'),
    stranger: await hub.store.conversations.get('main', 'new@im.wechat'),
    sends: hub.sim.control.state().sends,
  })
  const before = await state()
  for (const text of ['hello', '/use second', '/list', '/broadcast x', '@second y', '//z'])
    for (const user of ['ann@im.wechat', 'new@im.wechat']) await dryRun(hub, text, user)
  expect(await state()).toEqual(before)
  expect(await dryRun(hub, 'hello')).toMatchObject({ clients: ['first'] })
})

verifies(['hub:upstream:link-state', 'health:report:detail'], async () => {
  const hub = await startTestHub()
  const upstream = async () => (await hub.call('GET', '/hub/upstream')).body.accounts[0]
  await until(async () => (await upstream()).state === 'connected')
  expect(await upstream()).toEqual({
    account: 'main',
    state: 'connected',
    reason: expect.stringMatching(/./),
    since: expect.stringMatching(ISO_UTC),
    next_retry_at: null,
    action: null,
    last_poll_at: null,
    bot_id: null,
    user_id: null,
    base_url: hub.sim.url,
  })
  await hub.say('ann', 'hello')
  expect((await upstream()).last_poll_at).toMatch(ISO_UTC)

  hub.sim.control.faults.add({ kind: 'down' })
  await until(async () => (await upstream()).state === 'reconnecting')
  expect(await upstream()).toMatchObject({
    reason: expect.stringMatching(/./),
    since: expect.stringMatching(ISO_UTC),
    next_retry_at: expect.stringMatching(ISO_UTC),
    action: null,
  })
  hub.sim.control.faults.clear()
  await until(async () => (await upstream()).state === 'connected')

  hub.sim.control.faults.add({ kind: 'expired' })
  await until(async () => (await upstream()).state === 'needs_login')
  const { action, ...rest } = await upstream()
  expect(action).toMatch(/Log in again/)
  // The same as /health shows.
  expect((await hub.call('GET', '/health')).body.upstream_detail).toMatchObject({ state: rest.state, action })
})

verifies('hub:errors:shape', async () => {
  const hub = await startTestHub({ adminToken: 'secret' })
  const admin = { token: 'secret' }
  await hub.register('bot')
  const failures: [number, string, Promise<{ status: number; body: unknown }>][] = [
    [400, 'bad_request', hub.call('POST', '/hub/register', { ...admin, body: {} })],
    [400, 'bad_request', hub.call('POST', '/hub/register', { ...admin, body: '{' })],
    [401, 'unauthorized', hub.call('GET', '/hub/clients')],
    [404, 'not_found', hub.call('GET', '/hub/clients/nobody', admin)],
    [405, 'method_not_allowed', hub.call('DELETE', '/hub/clients', admin)],
    [409, 'name_taken', hub.call('POST', '/hub/register', { ...admin, body: { name: 'bot' } })],
    [413, 'too_large', hub.call('POST', '/hub/register', { ...admin, body: { name: 'x'.repeat(300_000) } })],
  ]
  for (const [status, code, failure] of failures) {
    const answer = await failure
    expect(answer.status, code).toBe(status)
    expect(answer.body).toEqual({
      error: expect.objectContaining({ code, message: expect.stringMatching(/^[A-Z/a-z].{8,}\.$/) }),
    })
    expect(
      Object.keys(Object(Object(answer.body).error)).every((key) => ['code', 'message', 'details'].includes(key)),
    ).toBe(true)
  }
})

verifies('hub:errors:unknown-path', async () => {
  const hub = await startTestHub()
  for (const path of [
    '/hub/',
    '/hub/x',
    '/hub/clients/',
    '/hub/clients/a/b',
    '/hub/Register',
    '/hub/register/',
    '/hub/ui/x',
    '/hub/..%2f',
  ]) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { status, body } = await hub.call(method, path, method === 'POST' ? { body: '{"broken' } : {})
      expect(status, `${method} ${path}`).toBe(404)
      expect(body.error.code).toBe('not_found')
    }
  }
  const wrong: [string, string, string][] = [
    ['GET', '/hub/register', 'POST'],
    ['PUT', '/hub/register', 'POST'],
    ['POST', '/hub/clients', 'GET, HEAD'],
    ['POST', '/hub/clients/bot', 'GET, HEAD, PATCH, DELETE'],
    ['GET', '/hub/clients/bot/rotate', 'POST'],
    ['DELETE', '/hub/default', 'GET, HEAD, PUT'],
    ['GET', '/hub/route/dry-run', 'POST'],
    ['POST', '/hub/ui', 'GET, HEAD'],
    ['OPTIONS', '/hub/clients', 'GET, HEAD'],
  ]
  for (const [method, path, allow] of wrong) {
    const { status, headers, body } = await hub.call(method, path)
    expect(status, `${method} ${path}`).toBe(405)
    expect(headers.get('allow')?.split(', ').sort()).toEqual(allow.split(', ').sort())
    expect(headers.get('access-control-allow-origin')).toBe(null)
    expect(body.error.code).toBe('method_not_allowed')
  }
})

verifies('hub:errors:bugs-hidden', async () => {
  const store = await openMemoryStore()
  const messages = { ...store.messages, list: () => Promise.reject(new TypeError('secret of line 7')) }
  const lines: ErrorFields[] = []
  const log = { ...silentLog, error: (_text: string, fields: ErrorFields = {}) => void lines.push(fields) }
  const hub = await startTestHub({ store: { ...store, messages }, log })
  const { status, text, body } = await hub.call('GET', '/hub/messages?user=private')
  await hub.stop()
  await store.close()
  expect(status).toBe(500)
  expect(body.error.code).toBe('internal')
  for (const secret of ['secret', 'TypeError', 'line 7', '.ts', 'at '])
    expect(text.replace('its log says', '')).not.toContain(secret)
  // Who runs the hub finds it by the reference, and finds no query there.
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({ reference: body.error.details.reference, route: '/hub/messages' })
  expect(JSON.stringify(lines[0])).not.toContain('private')
})

test('a store that fails is a 503 that says so, and the hub goes on', async () => {
  const hub = await startTestHub()
  await hub.store.close()
  const { status, body } = await hub.call('POST', '/hub/register', { body: { name: 'bot' } })
  expect(status).toBe(503)
  expect(body.error.code).toBe('store_failed')
  expect((await hub.call('GET', '/health')).status).toBe(200)
})
