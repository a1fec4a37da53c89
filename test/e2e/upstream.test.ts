import { expect, onTestFinished, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import { ilinkUpstream } from '../../src/hub/upstream/ilink.ts'
import type { Upstream } from '../../src/hub/upstream/port.ts'
import { freePort } from '../support/processes.ts'
import { hubWithContexts, lastingSim, OK, onlineClient } from '../support/relay-calls.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const EMPTY = { ...OK, messages: [], msgs: [] }

async function health({ call }: TestHub): Promise<{ status: string; upstream: string; state: string }> {
  const answer = await call('GET', '/health')
  expect(answer.status).toBe(200)
  const { status, upstream, upstream_detail: detail } = answer.body
  return { status, upstream, state: detail.state }
}

async function untilHealth(hub: TestHub, state: string): Promise<void> {
  await until(async () => (await health(hub)).state === state)
}

const CONNECTED = { status: 'ok', upstream: 'connected', state: 'connected' }
const DOWN = { status: 'degraded', upstream: 'reconnecting' }

/** A poll, and whether it has been answered. */
function openPoll(hub: TestHub, token: string) {
  const poll = { answered: false, answer: hub.poll(token) }
  void poll.answer.finally(() => {
    poll.answered = true
  })
  return poll
}

function contents({ body }: { body: { messages: { content: string }[] } }): string[] {
  return body.messages.map(({ content }) => content)
}

verifies(['upstream:link:recovers', 'upstream:link:refused'], async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const token = await onlineClient(hub, 'bot')
  const other = await onlineClient(hub, 'other')
  await untilHealth(hub, 'connected')
  const polls = [openPoll(hub, token), openPoll(hub, other)]
  await until(() => hub.hub.delivery.parked === 2)

  hub.sim.control.faults.add({ kind: 'down' })
  await untilHealth(hub, 'reconnecting')
  expect(await health(hub)).toMatchObject(DOWN)
  const said = Array.from({ length: 30 }, (_, n) => `message ${n}`)
  hub.sim.control.sayAll(said.flatMap((text) => ['ann', 'bob'].map((user) => ({ user, text: `@bot ${user} ${text}` }))))
  hub.sim.control.say({ user: 'ann', text: '@other for you' })
  // It has tried, and failed, more than once by then; the polls know nothing of it.
  await until(() => (hub.hub.link.view().nextRetryAt ?? 0) - hub.hub.link.view().since > 100)
  expect([...polls.map(({ answered }) => answered), hub.hub.delivery.parked]).toEqual([false, false, 2])

  hub.sim.control.faults.clear()
  await untilHealth(hub, 'connected')
  expect(await health(hub)).toEqual(CONNECTED)
  const got = contents(await polls[0]!.answer)
  while (got.length < 60) got.push(...contents(await hub.poll(token)))
  const expected = (user: string) => said.map((text) => `@bot ${user} ${text}`)
  for (const user of ['ann', 'bob']) expect(got.filter((text) => text.includes(user))).toEqual(expected(user))
  expect(contents(await polls[1]!.answer)).toEqual(['@other for you'])
})

test('a service that comes and goes all the time loses nothing and repeats nothing', async () => {
  const hub = await startTestHub({ holdMs: 200 })
  const token = await onlineClient(hub, 'bot')
  const got: string[] = []
  for (let round = 0; round < 8; round += 1) {
    const kind = round % 2 ? 'down' : 'bad_json'
    hub.sim.control.faults.add({ kind, count: 3, only: 'getupdates' })
    hub.sim.control.sayAll([0, 1, 2].map((n) => ({ user: 'ann', text: `${round}.${n}` })))
    while (got.length < 3 * (round + 1)) got.push(...contents(await hub.poll(token)))
    hub.sim.control.faults.clear()
  }
  expect(got).toEqual(Array.from({ length: 24 }, (_, n) => `${Math.floor(n / 3)}.${n % 3}`))
})

verifies(
  ['upstream:session:one-retry', 'upstream:session:polls-hang', 'upstream:session:http-up', 'upstream:link:states'],
  'with an expired login the hub asks for a person, and its clients notice nothing',
  async () => {
    const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 15_000 })
    await untilHealth(hub, 'connected')
    const poll = openPoll(hub, token)
    await until(() => hub.hub.delivery.parked === 1)
    hub.sim.control.faults.add({ kind: 'expired' })
    await untilHealth(hub, 'needs_login')
    expect(await health(hub)).toMatchObject(DOWN)
    const { body } = await hub.call('GET', '/hub/upstream')
    expect(body.accounts[0].action).toContain('Log in again')

    // Everything that does not need the service works; what does says so, and never with -14.
    const idle = await onlineClient(hub, 'late')
    expect((await hub.call('GET', '/hub/clients')).body.total).toBe(2)
    const refused = await hub.send(token, context('ann'), 'hello')
    expect([refused.status, refused.body.errcode]).toEqual([503, 503])
    expect(refused.text).not.toMatch(/-14|session/)
    const second = openPoll(hub, idle)
    await until(() => hub.hub.delivery.parked === 2)
    expect([poll.answered, second.answered]).toEqual([false, false])

    hub.sim.control.say({ user: 'ann', text: '@bot are you back?' })
    hub.sim.control.faults.clear()
    await untilHealth(hub, 'connected')
    expect(contents(await poll.answer)).toEqual(['@bot are you back?'])
  },
)

test('while the login is expired an empty poll ends as ever', async () => {
  const hub = await startTestHub({ holdMs: 50 })
  const token = await hub.register('bot')
  hub.sim.control.faults.add({ kind: 'expired' })
  await untilHealth(hub, 'needs_login')
  const { status, body } = await hub.poll(token)
  expect([status, body]).toEqual([200, { ...EMPTY, get_updates_buf: expect.any(String) }])
})

verifies('upstream:session:http-up', 'the hub serves before it has ever reached the service', async () => {
  const link = ilinkUpstream({ baseUrl: `http://127.0.0.1:${await freePort()}`, botToken: 'nobody@im.bot:there' })
  onTestFinished(() => link.close())
  const hub = await startTestHub({ holdMs: 20, upstream: link })
  const token = await hub.register('bot')
  expect((await hub.poll(token)).body).toEqual({ ...EMPTY, get_updates_buf: expect.any(String) })
  expect((await hub.call('GET', '/ready')).status).toBe(200)
  await untilHealth(hub, 'reconnecting')
  expect(await health(hub)).toMatchObject(DOWN)
})

test('before the service has answered at all the link is connecting, and degraded', async () => {
  const sim = await lastingSim()
  const link = ilinkUpstream({ baseUrl: sim.url, botToken: sim.botToken })
  onTestFinished(() => link.close())
  const notify: Upstream['notify'] = (what, signal) =>
    what === 'stop'
      ? Promise.resolve()
      : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const hub = await startTestHub({ sim, upstream: { ...link, notify } })
  expect(await health(hub)).toEqual({ ...DOWN, state: 'connecting' })
  await hub.stop()
  expect(sim.control.state().polls).toBe(0)
})

verifies('upstream:poll:resumes', async () => {
  const store = await openMemoryStore()
  const sim = await lastingSim()
  const link = ilinkUpstream({ baseUrl: sim.url, botToken: sim.botToken })
  onTestFinished(() => Promise.all([store.close(), link.close()]).then(() => undefined))
  const cursors: string[] = []
  const upstream: Upstream = {
    ...link,
    poll(cursor, signal) {
      cursors.push(cursor)
      return link.poll(cursor, signal)
    },
  }
  const before = await startTestHub({ store, sim, upstream, holdMs: 20 })
  const token = await onlineClient(before, 'bot')
  await before.say('ann', 'before')
  await until(() => cursors.length === 2)
  await before.stop()
  sim.control.say({ user: 'ann', text: 'meanwhile' })
  const after = await startTestHub({ store, sim, upstream, holdMs: 20 })
  await after.say('ann', 'after')
  const got = [...contents(await after.poll(token)), ...contents(await after.poll(token))]
  expect(got).toEqual(['before', 'meanwhile', 'after'])
  expect(cursors[0]).toBe('')
  expect(cursors[2]).toBe(cursors[1])
  expect(cursors[2]).not.toBe('')
  // Nothing was fetched twice, so nothing had to be suppressed.
  expect((await after.call('GET', '/hub/messages?state=suppressed')).body.messages).toEqual([])
  await after.stop()
})

verifies(['upstream:poll:notifystart', 'upstream:link:connected'], async () => {
  const sim = await lastingSim()
  const link = ilinkUpstream({ baseUrl: sim.url, botToken: sim.botToken })
  onTestFinished(() => link.close())
  const calls: string[] = []
  const upstream: Upstream = {
    ...link,
    async notify(what, signal) {
      calls.push(what)
      await link.notify(what, signal)
    },
    poll(cursor, signal) {
      calls.push('poll')
      return link.poll(cursor, signal)
    },
  }
  const hub = await startTestHub({ sim, upstream })
  await untilHealth(hub, 'connected')
  await until(() => calls.length >= 2)
  expect(calls).toEqual(['start', 'poll'])
  expect(sim.control.state().bots[0]?.started).toBe(true)
  await hub.stop()
  expect(calls.at(-1)).toBe('stop')
  expect(sim.control.state().bots[0]?.started).toBe(false)
})

verifies(
  'upstream:link:watchdog',
  'a poll that is open for too long degrades the link until one is answered',
  async () => {
    const hub = await startTestHub({ upstreamHoldMs: 35_000 })
    await hub.say('ann', 'hi')
    await untilHealth(hub, 'connected')
    hub.advance(70_000 + 1_000)
    expect(await health(hub)).toEqual({ ...DOWN, state: 'reconnecting' })
    await hub.say('ann', 'hi again')
    expect(await health(hub)).toEqual(CONNECTED)
  },
)

verifies(
  ['upstream:link:states', 'upstream:link:detail'],
  'throttled sends show in the detail, and count as connected',
  async () => {
    let at = Date.now()
    const { hub, token, context } = await hubWithContexts(['ann'], { now: () => at })
    await untilHealth(hub, 'connected')
    hub.sim.control.faults.add({ kind: 'throttle', count: 1 })
    expect((await hub.send(token, context('ann'), 'hello')).status).toBe(429)
    expect(await health(hub)).toEqual({ status: 'ok', upstream: 'connected', state: 'throttled' })
    const [body] = (await hub.call('GET', '/hub/upstream')).body.accounts
    expect(body).toMatchObject({ state: 'throttled', reason: expect.stringMatching(/./), action: null })
    expect(Date.parse(body.next_retry_at)).toBeGreaterThan(Date.parse(body.since))
    // Messages come in all the while.
    await hub.say('ann', 'still here')
    expect(contents(await hub.poll(token))).toEqual(['still here'])
    at += 5_000
    expect(await health(hub)).toEqual(CONNECTED)
    expect((await hub.send(token, context('ann'), 'hello')).status).toBe(200)
  },
)

test('slow answers delay and lose nothing', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 5_000 })
  hub.sim.control.faults.add({ kind: 'slow', delay_ms: 200 })
  const poll = openPoll(hub, token)
  hub.sim.control.sayAll([
    { user: 'ann', text: 'one' },
    { user: 'ann', text: 'two' },
  ])
  expect(contents(await poll.answer)).toEqual(['one', 'two'])
  expect((await hub.send(token, context('ann'), 'three')).body).toMatchObject(OK)
  expect(await hub.answers('ann', 1)).toEqual(['three'])
})

test.each([
  ['the same id', false],
  ['a fresh id', true],
])('a message that the service sends twice, with %s, reaches the client once', async (_how, freshId) => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await onlineClient(hub, 'bot')
  hub.sim.control.faults.add({ kind: 'duplicate', fresh_id: freshId, count: 2 })
  for (const text of ['one', 'two', 'three', 'three']) await hub.say('ann', text)
  await until(async () => (await hub.store.messages.list({ limit: 50 })).length === 6)
  const { body } = await hub.poll(token)
  expect(contents({ body })).toEqual(['one', 'two', 'three', 'three'])
  const { messages } = (await hub.call('GET', '/hub/messages?state=suppressed')).body
  expect(messages).toHaveLength(2)
  for (const { duplicate_of: original, deliveries } of messages) expect([original > 0, deliveries]).toEqual([true, []])
  expect((await hub.call('GET', '/metrics')).text).toContain('messages_total{state="suppressed"} 2')
})

verifies('upstream:poll:quarantine', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await onlineClient(hub, 'bot')
  const shapes = ['not_an_object', 'no_sender', 'bad_items'] as const
  for (const shape of shapes) {
    hub.sim.control.faults.add({ kind: 'malformed', shape })
    hub.sim.control.sayAll([1, 2, 3, 4].map((n) => ({ user: 'ann', text: `${shape} ${n}` })))
    await until(async () => hub.sim.control.state().acknowledged >= hub.sim.control.state().said)
  }
  expect(contents(await hub.poll(token))).toEqual(shapes.flatMap((shape) => [1, 2, 3, 4].map((n) => `${shape} ${n}`)))
  const { messages } = (await hub.call('GET', '/hub/messages?state=quarantined')).body
  expect(messages.map(({ reason }: { reason: string }) => reason).sort()).toEqual([
    'malformed: item_list is no list',
    'malformed: no from_user_id',
    'malformed: not an object',
  ])
  expect((await hub.call('GET', '/metrics')).text).toContain('messages_total{state="quarantined"} 3')
  expect(await health(hub)).toEqual(CONNECTED)
})

test.each([
  ['http_error', { status: 500 }, 'reconnecting'],
  ['http_error', { status: 404 }, 'misconfigured'],
  ['http_error', { status: 401 }, 'needs_login'],
  ['bad_json', {}, 'reconnecting'],
] as const)('when polls are answered with %s %j the link is %s, and mends itself', async (kind, more, state) => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await onlineClient(hub, 'bot')
  await untilHealth(hub, 'connected')
  hub.sim.control.faults.add({ kind, ...more })
  // A poll that is held learns of it only when it ends.
  hub.sim.control.say({ user: 'ann', text: 'hello' })
  await untilHealth(hub, state)
  hub.sim.control.faults.clear()
  await untilHealth(hub, 'connected')
  await until(async () => (await hub.store.messages.list({ limit: 1 })).length === 1)
  expect(contents(await hub.poll(token))).toEqual(['hello'])
})
