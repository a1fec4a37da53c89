import { expect, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import { lastingSim, onlineClient } from '../support/relay-calls.ts'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

/** Says something as a user and tells why it went to whom: `reason > clients`. */
async function route(hub: TestHub, user: string, text: string, more: object = {}): Promise<string> {
  await hub.say(user, text, more)
  const [message] = (await hub.call('GET', `/hub/messages?user=${user}@im.wechat&limit=1`)).body.messages
  return `${message.reason} > ${message.deliveries.map(({ client }: { client: string }) => client).join()}`
}

/** The texts a poll brings. */
async function received(hub: TestHub, token: string): Promise<string[]> {
  const { body } = await hub.poll(token)
  return body.messages.map(({ content }: { content: string }) => content)
}

verifies(['routing:mention:one-message', 'routing:mention:keeps-route', 'routing:reason:stored'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const [one, two] = [await onlineClient(hub, 'one'), await onlineClient(hub, 'two')]
  await hub.say('ann', '/use one')
  expect(await route(hub, 'ann', '@two only you')).toBe('mention > two')
  expect(await route(hub, 'ann', 'back to you')).toBe('chosen > one')
  expect(await received(hub, one)).toEqual(['back to you'])
  expect(await received(hub, two)).toEqual([expect.stringContaining('only you')])
})

verifies(
  ['routing:order:quote'],
  'a quote of an answer goes to who wrote it, though the user talks to another',
  async () => {
    const hub = await startTestHub({ holdMs: 20 })
    await onlineClient(hub, 'one')
    const two = await onlineClient(hub, 'two')
    await hub.say('ann', '@two what do you think?')
    const { body } = await hub.poll(two)
    expect((await hub.send(two, body.messages[0].context_token, 'this is what I think')).status).toBe(200)
    const { messages } = await hub.sim.control.conversation({ user: 'ann' })
    const quote = String(messages.findLast(({ from }) => from === 'bot')?.message_id)
    expect(await route(hub, 'ann', 'why?', { quote })).toBe('quote > two')
    expect(await route(hub, 'ann', 'and you?')).toBe('first_online > one')
    // Her own words are no answer of anybody's.
    const own = String(messages.find(({ from }) => from === 'user')?.message_id)
    expect(await route(hub, 'ann', 'I mean this', { quote: own })).toBe('first_online > one')
  },
)

verifies(
  [
    'routing:order:default',
    'routing:order:first-online',
    'routing:order:first-registered',
    'routing:order:fallback-last',
  ],
  async () => {
    const hub = await startTestHub({ holdMs: 20 })
    const bridge = await hub.register('bridge', { fallback: true })
    const [one, two] = [await hub.register('one'), await hub.register('two')]
    expect(await route(hub, 'ann', 'hi')).toBe('first_registered > one')
    await hub.poll(bridge)
    expect(await route(hub, 'ann', 'hi')).toBe('fallback_online > bridge')
    await hub.poll(two)
    expect(await route(hub, 'ann', 'hi')).toBe('first_online > two')
    await hub.poll(one)
    expect(await route(hub, 'ann', 'hi')).toBe('first_online > one')
    await hub.call('PUT', '/hub/default', { body: { name: 'two' } })
    expect(await route(hub, 'ann', 'hi')).toBe('default > two')
    await hub.say('ann', '/use one')
    expect(await route(hub, 'ann', 'hi')).toBe('chosen > one')
    expect(await route(hub, 'bob', 'hi')).toBe('default > two')
    // A client that goes takes the users' choice with it.
    await hub.call('DELETE', '/hub/clients/one')
    expect(await route(hub, 'ann', 'hi')).toBe('default > two')
  },
)

verifies('routing:order:nobody', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  expect(await route(hub, 'ann', 'is anybody there?')).toBe('nobody > ')
  expect(await hub.answers('ann', 1)).toEqual([expect.stringContaining('/help')])
  expect((await hub.call('GET', '/hub/dead-letters')).body.dead_letters).toMatchObject([
    { reason: 'no_client', content: 'is anybody there?', client: null },
  ])
})

verifies(['routing:commands:list', 'routing:commands:use-number', 'routing:commands:status'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  await onlineClient(hub, 'zoe')
  await hub.register('Bob')
  for (const text of ['/list', '/use 1', '/list', '/status']) await route(hub, 'ann', text)
  const [before, used, after, status] = await hub.answers('ann', 4)
  expect(before?.split('\n').slice(0, 2)).toEqual(['1. Bob (offline)', '2. zoe (online) ← you talk to this one'])
  expect(used).toContain('You now talk to Bob')
  expect(after).toContain('1. Bob (offline) ← you talk to this one')
  expect(status).toContain('You talk to Bob (offline): you chose it.')
})

verifies(['routing:order:command', 'routing:commands:use-name', 'routing:commands:use-unknown'], async () => {
  const store = await openMemoryStore()
  const sim = await lastingSim()
  const hub = await startTestHub({ holdMs: 20, store, sim })
  const [one, two] = [await onlineClient(hub, 'one'), await onlineClient(hub, 'two')]
  expect(await route(hub, 'ann', '/USE Two')).toBe('command:use > ')
  expect(await route(hub, 'ann', '/use three')).toBe('command:use > ')
  expect(await route(hub, 'ann', 'hi')).toBe('chosen > two')
  expect(await received(hub, one)).toEqual([])
  expect(await received(hub, two)).toEqual(['hi'])
  expect(await hub.answers('ann', 2)).toEqual(['You now talk to two.', 'There is no "three" here. /list shows who is.'])
  // The choice outlives the hub.
  await hub.stop()
  const next = await startTestHub({ holdMs: 20, store, sim })
  expect(await route(next, 'ann', 'still there?')).toBe('chosen > two')
  await next.stop()
  await store.close()
})

verifies('routing:commands:broadcast', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const tokens = [await onlineClient(hub, 'one'), await hub.register('two'), await onlineClient(hub, 'three')]
  await hub.say('ann', '/broadcast hello, all of you')
  expect(await Promise.all(tokens.map((token) => received(hub, token)))).toEqual(
    tokens.map(() => ['hello, all of you']),
  )
  expect(await hub.answers('ann', 1)).toEqual(['Sent to all 3 clients. Offline now, and given it later: 1.'])
})

verifies(['routing:commands:prefix', 'routing:commands:escape', 'routing:commands:unknown'], async () => {
  const hub = await startTestHub({ holdMs: 20, commandPrefix: '#' })
  const token = await onlineClient(hub, 'bot')
  for (const text of ['#help', '##help', '/help', '//x', '#new thing']) await route(hub, 'ann', text)
  const { body } = await hub.poll(token)
  expect(body.messages.map(({ content }: { content: string }) => content)).toEqual([
    '#help',
    '/help',
    '//x',
    '#new thing',
  ])
  // In the real shape too.
  expect(body.msgs[0].item_list[0].text_item.text).toBe('#help')
  const [help, ...others] = await hub.answers('ann', 1)
  expect([help?.includes('#use <name or number>'), others]).toEqual([true, []])
})

verifies('routing:commands:passthrough', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const [one, two] = [await onlineClient(hub, 'one'), await onlineClient(hub, 'two')]
  const { status } = await hub.call('PATCH', '/hub/clients/two', { body: { passthrough: ['/Status', 'model'] } })
  expect(status).toBe(200)
  expect(await route(hub, 'ann', '/status')).toBe('command:status > ')
  await hub.say('ann', '/use two')
  expect(await route(hub, 'ann', '/status of things')).toBe('passthrough:status > two')
  expect(await route(hub, 'ann', '/list')).toBe('command:list > ')
  expect(await received(hub, two)).toEqual(['/status of things'])
  expect(await received(hub, one)).toEqual([])
})

verifies('routing:commands:own-view', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const [one] = [await onlineClient(hub, 'one'), await onlineClient(hub, 'two')]
  await hub.say('ann', '/use two')
  await hub.say('ann', 'the secret of ann')
  await hub.say('eve', 'hi')
  const { body } = await hub.poll(one)
  await hub.send(one, body.messages[0].context_token, 'hello eve')
  for (const text of ['/list', '/status', '/help', '/use the secret of eve']) await route(hub, 'eve', text)
  const shown = (await hub.answers('eve', 5)).join('\n')
  expect(shown).toContain('one (online) ← you talk to this one')
  expect(shown).not.toMatch(/ann/i)
  // And nothing of Eve's reaches Ann.
  expect((await hub.answers('ann', 1)).join()).not.toMatch(/eve/i)
})

verifies(['routing:offline:queued', 'routing:offline:told'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('bot')
  for (const text of ['one', 'two', 'three']) await hub.say('ann', text)
  const told = await hub.answers('ann', 1)
  expect(told).toEqual(['bot is offline. Your message is kept and goes to it as soon as it is back.'])
  hub.advance(10 * 60_000 - 1_000)
  await hub.say('ann', 'four')
  hub.advance(2_000)
  await hub.say('ann', 'five')
  await hub.say('bob', 'six')
  expect(await hub.answers('ann', 2)).toEqual([...told, ...told])
  expect(await hub.answers('bob', 1)).toEqual(told)
  expect(await received(hub, token)).toEqual(['one', 'two', 'three', 'four', 'five', 'six'])
  // Now it is there, and nobody is told anything.
  hub.advance(20_000)
  await hub.say('ann', 'seven')
  expect(await received(hub, token)).toEqual(['seven'])
  expect(await hub.answers('ann', 2)).toHaveLength(2)
})

test('a message with no text, such as an image, goes where the user’s messages go', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  await onlineClient(hub, 'one')
  const two = await onlineClient(hub, 'two')
  await hub.say('ann', '/use two')
  const { message_id: id } = hub.sim.control.say({ user: 'ann', image_base64: 'AAAA' })
  await until(async () => (await hub.store.messages.list({ limit: 1 }))[0]?.upstreamId === id)
  expect(await received(hub, two)).toEqual(['[image]'])
})
