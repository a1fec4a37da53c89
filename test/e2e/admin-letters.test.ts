import { expect, test } from 'vitest'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const DAY_MS = 24 * 60 * 60_000
const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const lettersAt = async ({ call }: TestHub, query = '') => (await call('GET', `/hub/dead-letters${query}`)).body
const contents = (letters: { content: string }[]) => letters.map(({ content }) => content)
const pollContents = async ({ poll }: TestHub, token: string) => contents((await poll(token)).body.messages)
const idOf = async (hub: TestHub, content: string): Promise<number> =>
  (await lettersAt(hub)).dead_letters.find((letter: { content: string }) => letter.content === content).id

/** Two letters of `gone`, which was deleted, one that had nobody to go to, and the client `heir` with nothing in its queue. */
async function hubWithLetters(holdMs = 20) {
  const hub = await startTestHub({ holdMs })
  await hub.say('ann', 'for nobody')
  await hub.register('gone')
  await hub.say('ann', 'one')
  await hub.say('bob', 'two')
  await hub.call('DELETE', '/hub/clients/gone')
  const token = await hub.register('heir')
  return { hub, token }
}

verifies('hub:dead-letters:list', async () => {
  const { hub } = await hubWithLetters()
  const { dead_letters: letters, total } = await lettersAt(hub)
  expect(total).toBe(3)
  expect(contents(letters)).toEqual(['two', 'one', 'for nobody'])
  expect(letters[0]).toEqual({
    id: expect.any(Number),
    client: 'gone',
    message_id: expect.any(Number),
    reason: 'client_removed',
    from_user: 'bob@im.wechat',
    content: 'two',
    msg_type: 'text',
    created_at: expect.stringMatching(ISO_UTC),
  })
  expect(letters[2]).toMatchObject({ client: null, reason: 'no_client' })
  expect(contents((await lettersAt(hub, '?reason=no_client')).dead_letters)).toEqual(['for nobody'])
  expect(contents((await lettersAt(hub, '?reason=expired')).dead_letters)).toEqual([])
  expect(contents((await lettersAt(hub, '?client=heir')).dead_letters)).toEqual([])
  const first = await lettersAt(hub, '?limit=2')
  expect(contents(first.dead_letters)).toEqual(['two', 'one'])
  expect(contents((await lettersAt(hub, `?before=${first.dead_letters[1].id}`)).dead_letters)).toEqual(['for nobody'])
})

test('what waited for more than a day is a dead letter of its client', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  await hub.register('bot')
  await hub.say('ann', 'old')
  hub.advance(DAY_MS + 1_000)
  await hub.hub.delivery.expire()
  expect((await lettersAt(hub, '?client=bot')).dead_letters).toMatchObject([
    { client: 'bot', reason: 'expired', content: 'old' },
  ])
})

verifies('hub:dead-letters:replay', async () => {
  const { hub, token } = await hubWithLetters()
  const id = await idOf(hub, 'one')
  const replay = (body?: object) => hub.call('POST', `/hub/dead-letters/${id}/replay`, { body })
  // Its client is gone, so it needs another, and stays until it gets one.
  const nowhere = await replay()
  expect(nowhere.status).toBe(409)
  expect(nowhere.body.error).toMatchObject({ code: 'client_gone', message: expect.stringContaining('name a') })
  expect((await lettersAt(hub)).total).toBe(3)
  const { status, body } = await replay({ client: 'HEIR' })
  expect([status, body]).toEqual([200, { replayed: [id] }])
  expect((await lettersAt(hub)).total).toBe(2)
  const { body: polled } = await hub.poll(token)
  expect(polled.messages).toMatchObject([{ content: 'one', from_user: 'ann@im.wechat' }])
  expect((await hub.send(token, polled.messages[0].context_token, 'late answer')).body.errcode).toBe(0)
  expect(await hub.answers('ann', 1)).toContain('late answer')
  expect((await replay({ client: 'heir' })).status).toBe(404)
})

test('a replayed letter goes back to its own client without being told', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  await hub.say('ann', 'old')
  hub.advance(DAY_MS + 1_000)
  await hub.hub.delivery.expire()
  expect(await pollContents(hub, token)).toEqual([])
  expect((await hub.call('POST', `/hub/dead-letters/${await idOf(hub, 'old')}/replay`)).status).toBe(200)
  expect((await hub.call('GET', '/hub/clients/bot')).body.queue_size).toBe(1)
  expect(await pollContents(hub, token)).toEqual(['old'])
})

test('a replay wakes a poll that waits', async () => {
  const { hub, token } = await hubWithLetters(15_000)
  const poll = hub.poll(token)
  await until(() => hub.hub.delivery.parked === 1)
  await hub.call('POST', `/hub/dead-letters/${await idOf(hub, 'two')}/replay`, { body: { client: 'heir' } })
  expect(contents((await poll).body.messages)).toEqual(['two'])
})

verifies('hub:dead-letters:discard', async () => {
  const { hub, token } = await hubWithLetters()
  const id = await idOf(hub, 'one')
  const { status, text } = await hub.call('DELETE', `/hub/dead-letters/${id}`)
  expect([status, text]).toEqual([204, ''])
  expect(contents((await lettersAt(hub)).dead_letters)).toEqual(['two', 'for nobody'])
  for (const [method, path] of [
    ['DELETE', `/hub/dead-letters/${id}`],
    ['POST', `/hub/dead-letters/${id}/replay`],
  ]) {
    const answer = await hub.call(String(method), String(path), {
      ...(method === 'POST' ? { body: { client: 'heir' } } : {}),
    })
    expect(answer.status).toBe(404)
    expect(answer.body.error.message).toContain(`no dead letter ${id}`)
  }
  expect(await pollContents(hub, token)).toEqual([])
})

verifies(
  'hub:dead-letters:replay',
  'letters that come back together keep the order of their conversation',
  async () => {
    const hub = await startTestHub({ holdMs: 20 })
    for (const text of ['first', 'second', 'third']) await hub.say('ann', text)
    const token = await hub.register('late')
    const ids = (await lettersAt(hub)).dead_letters.map(({ id }: { id: number }) => id)
    expect(ids).toHaveLength(3)
    await hub.call('POST', '/hub/dead-letters/replay', { body: { ids, client: 'late' } })
    expect(await pollContents(hub, token)).toEqual(['first', 'second', 'third'])
  },
)

verifies(['hub:dead-letters:replay', 'hub:dead-letters:discard'], 'many at once, and again without harm', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  await hub.register('other')
  for (const text of ['one', 'two', 'three', 'four', '@other five']) await hub.say('ann', text)
  hub.advance(DAY_MS + 1_000)
  await hub.hub.delivery.expire()
  const [one, two] = [await idOf(hub, 'one'), await idOf(hub, 'two')]
  const bulk = (what: string, body: unknown) => hub.call('POST', `/hub/dead-letters/${what}`, { body })
  expect((await bulk('replay', { ids: [one, 999_999, one] })).body).toEqual({ replayed: [one], failed: [] })
  expect((await bulk('replay', { ids: [one] })).body).toEqual({ replayed: [], failed: [] })
  expect((await bulk('discard', { ids: [two, two, 999_999] })).body).toEqual({ discarded: [two] })
  expect((await bulk('replay', { client: 'bot' })).body.replayed).toHaveLength(2)
  expect((await bulk('replay', { client: 'bot' })).body).toEqual({ replayed: [], failed: [] })
  expect(await pollContents(hub, token)).toEqual(['one', 'three', 'four'])
  expect((await bulk('discard', { client: 'other' })).body.discarded).toHaveLength(1)
  expect(await lettersAt(hub)).toEqual({ dead_letters: [], total: 0 })
  for (const body of [undefined, {}, { ids: null }, { ids: [0] }, { ids: ['1'] }, { client: 5 }]) {
    expect((await bulk('replay', body)).status, JSON.stringify(body)).toBe(400)
    expect((await bulk('discard', body)).status, JSON.stringify(body)).toBe(400)
  }
  expect((await bulk('replay', { ids: [] })).body).toEqual({ replayed: [], failed: [] })
})

test('a letter that has nowhere to go does not hold up the others of its bulk', async () => {
  const { hub, token } = await hubWithLetters()
  await hub.say('ann', 'kept')
  hub.advance(DAY_MS + 1_000)
  await hub.hub.delivery.expire()
  const [gone, kept, nobody] = [await idOf(hub, 'one'), await idOf(hub, 'kept'), await idOf(hub, 'for nobody')]
  const { status, body } = await hub.call('POST', '/hub/dead-letters/replay', { body: { ids: [gone, kept, nobody] } })
  expect(status).toBe(200)
  expect(body.replayed).toEqual([kept])
  expect(new Set(body.failed.map(({ id, code }: { id: number; code: string }) => `${id} ${code}`))).toEqual(
    new Set([`${gone} client_gone`, `${nobody} client_gone`]),
  )
  expect(await pollContents(hub, token)).toEqual(['kept'])
  expect((await lettersAt(hub)).total).toBe(3)
})

verifies('hub:messages:reasons', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  await hub.say('ann', 'nobody there')
  const token = await hub.register('a')
  await hub.register('b')
  await hub.say('ann', 'plain')
  await hub.say('bob', '@b to b')
  await hub.say('ann', '/list')
  await hub.say('ann', '/use b')
  await hub.say('ann', 'chosen')
  const list = async (query = '') => (await hub.call('GET', `/hub/messages${query}`)).body.messages
  const brief = (messages: Record<string, string>[]) =>
    messages.map(({ content, state, reason }) => [content, state, reason])
  expect(brief(await list())).toEqual([
    ['chosen', 'routed', 'chosen'],
    ['/use b', 'command', 'command:use'],
    ['/list', 'command', 'command:list'],
    ['@b to b', 'routed', 'mention'],
    ['plain', 'routed', 'first_registered'],
    ['nobody there', 'unrouted', 'nobody'],
  ])
  const [plain] = await list('?client=a')
  expect(plain).toEqual({
    id: expect.any(Number),
    account: 'main',
    upstream_id: expect.stringMatching(/^\d+$/),
    from_user: 'ann@im.wechat',
    received_at: expect.stringMatching(ISO_UTC),
    state: 'routed',
    reason: 'first_registered',
    duplicate_of: null,
    content: 'plain',
    msg_type: 'text',
    deliveries: [{ client: 'a', state: 'queued', failures: 0 }],
  })
  expect(contents(await list('?client=b'))).toEqual(['chosen', '@b to b'])
  expect(contents(await list('?user=bob@im.wechat'))).toEqual(['@b to b'])
  expect(contents(await list('?state=command'))).toEqual(['/use b', '/list'])
  expect(contents(await list('?client=b&user=ann@im.wechat&state=routed'))).toEqual(['chosen'])
  expect(contents(await list(`?limit=2&before=${plain.id}`))).toEqual(['nobody there'])
  await hub.poll(token)
  await hub.store.deliveries.flush()
  expect((await list('?client=a'))[0].deliveries).toEqual([{ client: 'a', state: 'sent', failures: 0 }])
})

test('a message that was delivered can be delivered again', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  await hub.register('other')
  await hub.say('ann', 'again')
  const { body: first } = await hub.poll(token)
  expect(await pollContents(hub, token)).toEqual([])
  const [{ id }] = (await hub.call('GET', '/hub/messages')).body.messages
  const replay = (body?: object, of: unknown = id) => hub.call('POST', `/hub/messages/${of}/replay`, { body })
  expect((await replay({ client: 'bot' })).body).toEqual({ replayed: id, client: 'bot' })
  const { body: second } = await hub.poll(token)
  expect(second.messages).toEqual(first.messages)
  expect((await replay({ client: 'other' })).status).toBe(404)
  expect((await replay({})).body.error.details).toEqual({ field: 'client' })
  for (const bad of ['0', '-1', 'x', '1.5', '1e3', '9'.repeat(20)])
    expect((await replay({ client: 'bot' }, bad)).status, bad).toBe(400)
  expect((await replay({ client: 'bot' }, 999_999)).status).toBe(404)
  expect(await pollContents(hub, token)).toEqual([])
})

test('a wrong question about messages or dead letters is a 400', async () => {
  const hub = await startTestHub()
  const wrong = ['limit=0', 'limit=-1', 'limit=x', 'limit=', 'limit=10000', 'before=0', 'before=1.5', 'before=abc']
  for (const query of [
    ...wrong,
    'state=lost',
    'reason=hunger',
    'limit=1&limit=2',
    'user=a&user=b',
    'client=a&client=b',
  ]) {
    for (const path of ['/hub/messages', '/hub/dead-letters']) {
      const { status, body } = await hub.call('GET', `${path}?${query}`)
      expect(status, `${path}?${query}`).toBe(400)
      expect(body.error.details.field).toBe(query.split('=')[0])
    }
  }
})
