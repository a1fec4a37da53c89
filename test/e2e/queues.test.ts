import { expect } from 'vitest'
import { startTestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const contents = (answer: { body: { messages: { content: string }[] } }) =>
  answer.body.messages.map(({ content }) => content)

verifies(
  ['delivery:bounds:messages', 'delivery:bounds:reason', 'delivery:bounds:counted', 'delivery:bounds:user-told'],
  'past 10,000 messages the oldest become dead letters, counted, and the user hears of it once',
  async () => {
    const hub = await startTestHub()
    const token = await hub.register('bot')
    const texts = Array.from({ length: 10_005 }, (_, number) => ({ user: 'ann', text: `m${number}` }))
    for (let from = 0; from < texts.length; from += 1_000) hub.sim.control.sayAll(texts.slice(from, from + 1_000))
    await hub.say('ann', 'last')
    const { clients } = (await hub.call('GET', '/hub/clients')).body
    expect(clients[0].queue_size).toBe(10_000)
    const letters = (await hub.call('GET', '/hub/dead-letters')).body
    expect(letters.total).toBe(6)
    expect(
      letters.dead_letters.map((letter: { content: string; reason: string }) => [letter.content, letter.reason]),
    ).toEqual([5, 4, 3, 2, 1, 0].map((number) => [`m${number}`, 'overflow']))
    expect((await hub.call('GET', '/metrics')).text).toContain(
      'switchboard_hub_dead_letters_total{reason="overflow"} 6',
    )
    expect(contents(await hub.poll(token))[0]).toBe('m6')
    // One notice that the client is offline, one that its queue is full, whatever the number of messages.
    const told = await hub.answers('ann', 2)
    expect(told.filter((text) => text.includes('more messages waiting'))).toHaveLength(1)
    expect(told).toHaveLength(2)
  },
  60_000,
)

verifies(
  'delivery:bounds:bytes',
  async () => {
    const hub = await startTestHub()
    await hub.register('bot')
    // 100 messages of 700 kB are 70 MB, six too many.
    const text = 'x'.repeat(700_000)
    for (let number = 0; number < 100; number++) hub.sim.control.say({ user: 'ann', text })
    hub.sim.control.say({ user: 'ann', text: 'last' })
    await until(
      async () => (await hub.call('GET', '/hub/messages?limit=1')).body.messages[0]?.content === 'last',
      50_000,
    )
    const { clients } = (await hub.call('GET', '/hub/clients')).body
    const letters = (await hub.call('GET', '/hub/dead-letters')).body
    expect(letters.total).toBeGreaterThan(2)
    expect(letters.total).toBeLessThan(12)
    expect(clients[0].queue_size + letters.total).toBe(101)
    expect(hub.hub.delivery.position(1).pendingBytes).toBeLessThanOrEqual(64 * 1024 * 1024)
  },
  60_000,
)

verifies(['delivery:duplicates:same-id', 'delivery:duplicates:visible'], async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  hub.sim.control.faults.add({ kind: 'duplicate', count: 1 })
  await hub.say('ann', 'once')
  await hub.say('ann', 'more')
  expect(contents(await hub.poll(token))).toEqual(['once', 'more'])
  expect((await hub.poll(token)).body.messages).toEqual([])
  const { messages } = (await hub.call('GET', '/hub/messages?state=suppressed')).body
  expect(messages).toMatchObject([{ content: 'once', duplicate_of: 1, deliveries: [] }])
  expect((await hub.call('GET', '/metrics')).text).toContain('switchboard_hub_messages_total{state="suppressed"} 1')
})

verifies('delivery:duplicates:same-message', async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  hub.sim.control.faults.add({ kind: 'duplicate', count: 1, fresh_id: true })
  await hub.say('ann', 'once')
  await hub.say('ann', 'more')
  expect(contents(await hub.poll(token))).toEqual(['once', 'more'])
})

verifies(
  'delivery:duplicates:incomplete',
  'the same words again are a new message when nothing shows that they are not',
  async () => {
    const hub = await startTestHub()
    const token = await hub.register('bot')
    const raw = {
      from_user_id: 'ann@im.wechat',
      item_list: [{ type: 1, text_item: { text: 'ping' } }],
      context_token: 'c',
    }
    for (const id of [1001, 1002])
      hub.sim.control.say({ user: 'ann', text: '', raw: { ...raw, message_id: id }, replace: true })
    for (const id of [1003, 1004])
      hub.sim.control.say({ user: 'ann', text: '', raw: { ...raw, message_id: id, create_time_ms: 5 }, replace: true })
    for (const id of [1005, 1006])
      hub.sim.control.say({ user: 'ann', text: '', raw: { ...raw, message_id: id, seq: 5 }, replace: true })
    await hub.say('ann', 'end')
    expect(contents(await hub.poll(token))).toEqual([...Array(6).fill('ping'), 'end'])
  },
)

verifies('delivery:batch:order', 'conversations interleave, each in its own order', async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  const said = Array.from({ length: 90 }, (_, number) => ({
    user: ['ann', 'bob', 'cy'][number % 3] ?? '',
    text: `m${number}`,
  }))
  hub.sim.control.sayAll(said)
  await hub.say('ann', 'end')
  expect(contents(await hub.poll(token))).toEqual([...said.map(({ text }) => text), 'end'])
})
