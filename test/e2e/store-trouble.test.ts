import { expect, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import type { HubStore } from '../../src/hub/store/port.ts'
import { AppError } from '../../src/kit/errors.ts'
import { startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies('health:ready:store', 'while messages cannot be stored the hub says so, and mends itself', async () => {
  const memory = await openMemoryStore()
  let full = true
  const ingest: HubStore['messages']['ingest'] = async (batch) => {
    if (full) throw new AppError('store_failed', 'disk full')
    return memory.messages.ingest(batch)
  }
  const hub = await startTestHub({ store: { ...memory, messages: { ...memory.messages, ingest } } })
  const token = await hub.register('bot')
  await until(async () => (await hub.call('GET', '/ready')).status === 200)
  hub.sim.control.say({ user: 'ann', text: 'kept' })
  await until(async () => (await hub.call('GET', '/ready')).status === 503)
  const { body } = await hub.call('GET', '/health')
  expect(body).toMatchObject({ status: 'degraded', upstream_detail: { reason: expect.stringContaining('disk') } })
  full = false
  await until(async () => (await hub.call('GET', '/ready')).status === 200)
  expect((await hub.call('GET', '/health')).body.status).toBe('ok')
  expect((await hub.poll(token)).body.messages).toMatchObject([{ content: 'kept' }])
})

test('letters are replayed to the client that is named beside their ids', async () => {
  const hub = await startTestHub()
  await hub.say('ann', 'for nobody yet')
  const token = await hub.register('late')
  const [letter] = (await hub.call('GET', '/hub/dead-letters')).body.dead_letters
  const alone = await hub.call('POST', '/hub/dead-letters/replay', { body: { ids: [letter.id] } })
  expect(alone.body).toMatchObject({ replayed: [], failed: [{ id: letter.id, code: 'client_gone' }] })
  const named = await hub.call('POST', '/hub/dead-letters/replay', { body: { ids: [letter.id], client: 'late' } })
  expect(named.body).toEqual({ replayed: [letter.id], failed: [] })
  expect((await hub.poll(token)).body.messages).toMatchObject([{ content: 'for nobody yet' }])
})

test('a replay does not push out what waits', async () => {
  const lines: { message: string; fields: object }[] = []
  const note = (message: string, fields: object = {}) => void lines.push({ message, fields })
  const hub = await startTestHub({ log: { debug: note, info: note, warn: note, error: note } })
  await hub.register('bot')
  const texts = Array.from({ length: 10_003 }, (_, number) => ({ user: 'ann', text: `m${number}` }))
  for (let from = 0; from < texts.length; from += 1_000) hub.sim.control.sayAll(texts.slice(from, from + 1_000))
  await hub.say('ann', 'last')
  const replayed = await hub.call('POST', '/hub/dead-letters/replay', { body: { client: 'bot' } })
  expect(replayed.body.replayed).toEqual([])
  expect(replayed.body.failed[0]).toMatchObject({ code: 'queue_full' })
  expect((await hub.call('GET', '/hub/clients')).body.clients[0].queue_size).toBe(10_000)
  expect(lines).toContainEqual({
    message: 'messages became dead letters',
    fields: expect.objectContaining({ reason: 'overflow' }),
  })
}, 60_000)
