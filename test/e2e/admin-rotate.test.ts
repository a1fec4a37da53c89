import { expect, test } from 'vitest'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const rotate = ({ call }: TestHub, name: string, body?: object) => call('POST', `/hub/clients/${name}/rotate`, { body })
const clientAt = async ({ call }: TestHub) => (await call('GET', '/hub/clients/bot')).body

verifies(['hub:rotate:new-token', 'auth:virtual:revoked'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const old = await hub.register('bot')
  const { status, body } = await rotate(hub, 'bot')
  expect(status).toBe(200)
  expect(body).toEqual({ name: 'bot', token: expect.stringMatching(/^vhub_[0-9a-f]{32}$/), overlap_seconds: 0 })
  expect(body.token).not.toBe(old)
  expect((await hub.poll(old)).status).toBe(401)
  expect((await hub.send(old, 'any', 'x')).status).toBe(401)
  expect((await hub.poll(body.token)).status).toBe(200)
})

verifies(['hub:rotate:cuts-polls', 'presence:offline:revoked'], async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const old = await hub.register('bot')
  const poll = hub.poll(old)
  await until(() => hub.hub.delivery.parked === 1)
  expect(await clientAt(hub)).toMatchObject({ status: 'online' })
  const [{ body: rotated }, cut] = await Promise.all([rotate(hub, 'bot'), poll])
  expect(cut.status).toBe(401)
  expect(cut.headers.get('www-authenticate')).toBe('Bearer')
  expect(cut.body).toMatchObject({ ret: 401, errcode: 401 })
  expect(await clientAt(hub)).toMatchObject({ status: 'offline' })
  expect((await hub.call('GET', '/health')).body.clients).toEqual({ online: 0, total: 1 })
  const next = hub.poll(rotated.token)
  await until(() => hub.hub.delivery.parked === 1)
  expect(await clientAt(hub)).toMatchObject({ status: 'online' })
  await hub.say('ann', 'hello')
  expect((await next).body.messages).toHaveLength(1)
})

verifies('hub:rotate:keeps-queue', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const old = await hub.register('bot')
  for (const text of ['one', 'two']) await hub.say('ann', text)
  const { body: handed } = await hub.poll(old)
  await hub.say('ann', 'three')
  const { body } = await rotate(hub, 'bot')
  expect((await clientAt(hub)).queue_size).toBe(3)
  // The cursor of the old token still counts: nothing is lost and nothing comes twice.
  const next = await hub.poll(body.token, { get_updates_buf: handed.get_updates_buf })
  expect(next.body.messages.map(({ content }: { content: string }) => content)).toEqual(['three'])
  // What was handed out before the rotation can still be answered.
  expect((await hub.send(body.token, handed.messages[0].context_token, 'pong')).body.errcode).toBe(0)
})

verifies('hub:rotate:overlap', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const old = await hub.register('bot')
  const { body } = await rotate(hub, 'bot', { overlap_seconds: 60 })
  expect(body.overlap_seconds).toBe(60)
  expect((await hub.poll(old)).status).toBe(200)
  expect((await hub.poll(body.token)).status).toBe(200)
  expect(await clientAt(hub)).toMatchObject({ status: 'online' })
  hub.advance(50_000)
  expect((await hub.poll(old)).status).toBe(200)
  hub.advance(10_001)
  expect((await hub.poll(old)).status).toBe(401)
  expect((await hub.poll(body.token)).status).toBe(200)
})

test('a poll that waits when the overlap ends gets no message any more, and its message is not lost', async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const old = await hub.register('bot')
  const { body } = await rotate(hub, 'bot', { overlap_seconds: 60 })
  const poll = hub.poll(old)
  await until(() => hub.hub.delivery.parked === 1)
  hub.advance(60_001)
  await hub.say('ann', 'for the new one')
  expect((await poll).status).toBe(401)
  const { body: next } = await hub.poll(body.token)
  expect(next.messages.map(({ content }: { content: string }) => content)).toEqual(['for the new one'])
})

test('with an overlap an open poll of the old token goes on', async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const old = await hub.register('bot')
  const poll = hub.poll(old)
  await until(() => hub.hub.delivery.parked === 1)
  await rotate(hub, 'bot', { overlap_seconds: 60 })
  await hub.say('ann', 'hello')
  expect((await poll).body.messages).toHaveLength(1)
})

test('rotating one client leaves the polls of another alone', async () => {
  const hub = await startTestHub({ holdMs: 15_000 })
  const token = await hub.register('bot')
  await hub.register('other')
  const poll = hub.poll(token)
  await until(() => hub.hub.delivery.parked === 1)
  await rotate(hub, 'other')
  await hub.say('ann', 'hello')
  expect((await poll).body.messages).toHaveLength(1)
})

test.each([-1, 86_401, 1.5, '60', null, true])('an overlap of %j is refused and the token stays', async (overlap) => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  const { status, body } = await rotate(hub, 'bot', { overlap_seconds: overlap })
  expect(status).toBe(400)
  expect(body.error.details.field).toBe('overlap_seconds')
  expect((await hub.poll(token)).status).toBe(200)
})
