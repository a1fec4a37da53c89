import { expect, onTestFinished, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const clientsAt = async ({ call }: TestHub) => (await call('GET', '/hub/clients')).body
const clientAt = async ({ call }: TestHub, name: string) =>
  (await call('GET', `/hub/clients/${encodeURIComponent(name)}`)).body

verifies(['hub:clients:fields', 'hub:clients:totals', 'hub:clients:status', 'hub:clients:sorted'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  expect(await clientsAt(hub)).toEqual({ clients: [], total: 0, online: 0 })
  const token = await hub.register('cello', { label: 'low' })
  for (const name of ['Bass', 'alto', 'Duo', 'cello 2']) await hub.register(name)
  await hub.poll(token)
  const list = await clientsAt(hub)
  expect(Object.keys(list)).toEqual(['clients', 'total', 'online'])
  expect(list).toMatchObject({ total: 5, online: 1 })
  expect(list.clients.map(({ name }: { name: string }) => name)).toEqual(['alto', 'Bass', 'cello', 'cello 2', 'Duo'])
  for (const client of list.clients) {
    expect(Object.keys(client)).toEqual(['name', 'label', 'status', 'last_seen', 'queue_size'])
    expect(client).toMatchObject({
      label: expect.any(String),
      last_seen: expect.stringMatching(ISO_UTC),
      queue_size: 0,
    })
    expect(client.status).toBe(client.name === 'cello' ? 'online' : 'offline')
  }
  expect(list.clients[2].label).toBe('low')
})

verifies(['hub:clients:last-seen-start', 'presence:last-seen:moves'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const { body: registered } = await hub.call('POST', '/hub/register', { body: { name: 'bot' } })
  expect((await clientsAt(hub)).clients[0].last_seen).toBe(registered.created_at)
  hub.advance(1_000)
  expect((await clientsAt(hub)).clients[0].last_seen).toBe(registered.created_at)
  // Every kind of call counts, also one that is refused for what it asks; a stranger's does not.
  const { token } = registered
  const calls: [string, object, number][] = [
    ['getupdates', {}, 200],
    ['sendmessage', { context_token: 'unknown', content: 'x' }, 404],
    ['sendtyping', { context_token: 'unknown' }, 404],
    ['getconfig', {}, 200],
    ['msg/notifystart', {}, 200],
    ['getupdates', { get_updates_buf: 5 }, 400],
  ]
  let seen = Date.parse(registered.created_at)
  for (const [path, body, status] of calls) {
    hub.advance(1_000)
    const answer = await hub.call('POST', `/relay/bot/${path}`, { token, body })
    expect(answer.status, `${path}: ${answer.text}`).toBe(status)
    const now = Date.parse((await clientAt(hub, 'bot')).last_seen)
    expect(now - seen, path).toBeGreaterThanOrEqual(1_000)
    seen = now
  }
  hub.advance(1_000)
  await hub.call('POST', '/relay/bot/getupdates', { token: `${token}0` })
  expect(Date.parse((await clientAt(hub, 'bot')).last_seen)).toBe(seen)
})

verifies('hub:clients:queue-size', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  const size = async () => (await clientsAt(hub)).clients[0].queue_size
  for (const text of ['one', 'two', 'three']) await hub.say('ann', text)
  expect(await size()).toBe(3)
  // Handed out is not acknowledged.
  const { body } = await hub.poll(token)
  expect(body.messages).toHaveLength(3)
  expect(await size()).toBe(3)
  await hub.say('ann', 'four')
  expect(await size()).toBe(4)
  await hub.poll(token, { get_updates_buf: body.get_updates_buf })
  expect(await size()).toBe(1)
})

verifies('hub:client:get', async () => {
  const hub = await startTestHub()
  const names = [
    'plain',
    'two words',
    'a/b',
    'a?b#c',
    '%41',
    'naïve 名',
    '"<b>&\'',
    '\\',
    '+',
    ':name',
    '*',
    'constructor',
  ]
  for (const name of [...names, '__proto__', 'n'.repeat(64), '名'.repeat(64)]) {
    await hub.register(name, { label: `label of ${name}`.slice(0, 128) })
    const { status, body } = await hub.call('GET', `/hub/clients/${encodeURIComponent(name)}`)
    expect(status, name).toBe(200)
    expect(body).toEqual({
      name,
      label: `label of ${name}`.slice(0, 128),
      status: 'offline',
      last_seen: body.created_at,
      queue_size: 0,
      created_at: expect.stringMatching(ISO_UTC),
      default: false,
      fallback: false,
      passthrough: [],
      account: null,
    })
  }
  expect((await clientAt(hub, 'PLAIN')).name).toBe('plain')
})

verifies('hub:client:unknown', async () => {
  const hub = await startTestHub()
  await hub.register('bot')
  const calls: [string, string, unknown?][] = [
    ['GET', '/hub/clients/nobody'],
    ['PATCH', '/hub/clients/nobody', { label: 'x' }],
    ['DELETE', '/hub/clients/nobody'],
    ['POST', '/hub/clients/nobody/rotate', {}],
    ['PUT', '/hub/default', { name: 'nobody' }],
    ['GET', '/hub/messages?client=nobody'],
    ['GET', '/hub/dead-letters?client=nobody'],
    ['POST', '/hub/dead-letters/replay', { client: 'nobody' }],
    ['POST', '/hub/dead-letters/discard', { client: 'nobody' }],
    ['POST', '/hub/messages/1/replay', { client: 'nobody' }],
    ['POST', '/hub/dead-letters/1/replay', { client: 'nobody' }],
    ['GET', `/hub/clients/${'x'.repeat(900)}`],
    ['GET', '/hub/clients/%E0%A4%A'],
  ]
  for (const [method, path, body] of calls) {
    const answer = await hub.call(method, path, { body })
    const broken = path.includes('%E0')
    expect(answer.status, `${method} ${path}`).toBe(broken ? 400 : 404)
    expect(answer.body.error.code).toBe(broken ? 'bad_request' : 'not_found')
    expect(answer.text.length).toBeLessThan(400)
  }
  expect((await clientsAt(hub)).total).toBe(1)
})

verifies('hub:client:patch', async () => {
  const hub = await startTestHub()
  await hub.register('bot', { label: 'first' })
  await hub.register('other', { label: 'untouched' })
  const patch = (body: object) => hub.call('PATCH', '/hub/clients/bot', { body })
  let expected = await clientAt(hub, 'bot')
  const other = await clientAt(hub, 'other')
  const changes: [object, object][] = [
    [{ label: ' second ' }, { label: 'second' }],
    [{ fallback: true }, { fallback: true }],
    [{ default: true }, { default: true }],
    [{ passthrough: ['/List', 'status', '!help'] }, { passthrough: ['list', 'status', 'help'] }],
    [{}, {}],
    [{ unknown: 1, name: 'renamed', token: 'vhub_x', queue_size: 7 }, {}],
    [{ label: '' }, { label: 'bot' }],
    [
      { default: false, fallback: false, passthrough: [], label: 'all' },
      { default: false, fallback: false, passthrough: [], label: 'all' },
    ],
  ]
  for (const [body, changed] of changes) {
    const answer = await patch(body)
    expected = { ...expected, ...changed }
    expect(answer.status).toBe(200)
    expect(answer.body, JSON.stringify(body)).toEqual(expected)
    expect(await clientAt(hub, 'bot')).toEqual(expected)
    expect(await clientAt(hub, 'other')).toEqual(other)
  }
  // One field wrong, and nothing of the rest is done.
  const wrong = [{ label: 'a\u0007b' }, { passthrough: ['/'] }, { passthrough: [''] }, { default: 'yes' }, { label: 5 }]
  for (const body of wrong) {
    expect((await patch({ label: 'half', fallback: true, ...body })).status, JSON.stringify(body)).toBe(400)
    expect(await clientAt(hub, 'bot')).toEqual(expected)
  }
})

verifies(['hub:client:delete', 'presence:offline:deleted', 'auth:virtual:revoked'], async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const token = await hub.register('bot')
  await hub.register('other')
  await hub.say('ann', 'one')
  await hub.poll(token)
  await hub.say('ann', 'two')
  expect((await clientsAt(hub)).online).toBe(1)
  const { status, text } = await hub.call('DELETE', '/hub/clients/bot')
  expect([status, text]).toEqual([204, ''])
  expect(await clientsAt(hub)).toMatchObject({ total: 1, online: 0, clients: [{ name: 'other' }] })
  expect((await hub.poll(token)).status).toBe(401)
  const { body } = await hub.call('GET', '/hub/dead-letters')
  expect(
    body.dead_letters.map(({ content, reason, client }: Record<string, string>) => [content, reason, client]),
  ).toEqual([
    ['two', 'client_removed', 'bot'],
    ['one', 'client_removed', 'bot'],
  ])
  expect((await hub.call('DELETE', '/hub/clients/bot')).status).toBe(404)
  // Who takes the name later starts with nothing of what the first one had.
  const again = await hub.register('bot')
  expect(await clientAt(hub, 'bot')).toMatchObject({ queue_size: 0, status: 'offline' })
  expect((await hub.poll(token)).status).toBe(401)
  expect(again).not.toBe(token)
})

test('deleting a client ends its open poll at once', async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const token = await hub.register('bot')
  const poll = hub.poll(token)
  await parked(hub)
  await hub.call('DELETE', '/hub/clients/bot')
  expect((await poll).status).toBe(401)
})

verifies('hub:default:set', async () => {
  const hub = await startTestHub()
  for (const name of ['a', 'b', 'c']) await hub.register(name)
  const put = (name: unknown) => hub.call('PUT', '/hub/default', { body: { name } })
  const defaults = async () => {
    const marked = await Promise.all(['a', 'b', 'c'].map(async (name) => (await clientAt(hub, name)).default))
    return [...marked, (await hub.call('GET', '/hub/default')).body.name]
  }
  expect(await defaults()).toEqual([false, false, false, null])
  expect((await put('B')).body).toEqual({ name: 'b' })
  expect(await defaults()).toEqual([false, true, false, 'b'])
  expect((await put('c')).status).toBe(200)
  expect(await defaults()).toEqual([false, false, true, 'c'])
  expect((await put('nobody')).status).toBe(404)
  expect(await defaults()).toEqual([false, false, true, 'c'])
  await hub.call('PATCH', '/hub/clients/a', { body: { default: true } })
  expect(await defaults()).toEqual([true, false, false, 'a'])
  await hub.call('PATCH', '/hub/clients/b', { body: { default: false } })
  expect(await defaults()).toEqual([true, false, false, 'a'])
  expect((await put(null)).body).toEqual({ name: null })
  expect(await defaults()).toEqual([false, false, false, null])
  // Many at once: still one at most.
  await Promise.all(['a', 'b', 'c', 'a', 'b'].map(put))
  expect((await defaults()).filter((mark) => mark === true)).toHaveLength(1)
  await hub.call('DELETE', `/hub/clients/${(await hub.call('GET', '/hub/default')).body.name}`)
  expect((await hub.call('GET', '/hub/default')).body).toEqual({ name: null })
})

verifies('presence:offline:stop', 'notifystop shows in the list at once', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  await hub.poll(token)
  expect(await clientsAt(hub)).toMatchObject({ online: 1, clients: [{ status: 'online' }] })
  await hub.call('POST', '/relay/bot/msg/notifystop', { token })
  expect(await clientsAt(hub)).toMatchObject({ online: 0, clients: [{ status: 'offline' }] })
  await hub.call('POST', '/relay/bot/msg/notifystart', { token })
  expect(await clientsAt(hub)).toMatchObject({ online: 1, clients: [{ status: 'online' }] })
})

verifies(['presence:online:open-poll', 'presence:offline:silent'], 'the list follows polls and silence', async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const token = await hub.register('bot')
  const poll = hub.poll(token)
  await parked(hub)
  hub.advance(3_600_000)
  expect((await clientsAt(hub)).clients[0].status).toBe('online')
  await hub.say('ann', 'hello')
  await poll
  expect((await clientsAt(hub)).clients[0].status).toBe('online')
  hub.advance(91_000)
  expect((await clientsAt(hub)).clients[0].status).toBe('offline')
})

test('clients, labels and the default are there after a restart', async () => {
  const store = await openMemoryStore()
  onTestFinished(() => store.close())
  const first = await startTestHub({ holdMs: 20, store })
  const token = await first.register('bot', { label: 'Label' })
  await first.call('PATCH', '/hub/clients/bot', { body: { default: true, fallback: true, passthrough: ['list'] } })
  await first.poll(token)
  const before = await clientAt(first, 'bot')
  await store.deliveries.flush()
  await first.stop()
  const second = await startTestHub({ holdMs: 20, store })
  expect(await clientAt(second, 'bot')).toMatchObject({ ...before, last_seen: expect.stringMatching(ISO_UTC) })
  expect((await second.poll(token)).status).toBe(200)
})

function parked({ hub }: TestHub): Promise<void> {
  return until(() => hub.delivery.parked === 1)
}
