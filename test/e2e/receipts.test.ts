import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const contents = (answer: { body: { messages: { content: string }[] } }) =>
  answer.body.messages.map(({ content }) => content)

async function stateOfNewest({ store }: TestHub): Promise<string | undefined> {
  await store.deliveries.flush()
  return (await store.messages.list({ limit: 1 }))[0]?.deliveries[0]?.state
}

verifies('delivery:implicit:unread', async () => {
  const hub = await startTestHub({ holdMs: 10_000 })
  const token = await hub.register('bot')
  const script = fileURLToPath(new URL('../support/unread-client.mjs', import.meta.url))
  const client = spawn(process.execPath, [script, new URL(hub.url).port, token], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void client.kill('SIGKILL'))
  await once(client.stdout, 'data')
  await until(() => hub.hub.delivery.parked === 1)
  await hub.say('ann', 'are you there?')
  // Written and finished as far as this side can tell.
  await until(async () => (await stateOfNewest(hub)) === 'sent')
  client.kill('SIGKILL')
  await until(async () => (await stateOfNewest(hub)) === 'queued')
  expect(contents(await hub.poll(token))).toEqual(['are you there?'])
})

verifies(
  ['delivery:hold:hang-up', 'delivery:poll:closed-socket'],
  'a client that hangs up before the answer loses nothing, and is no conflict',
  async () => {
    const hub = await startTestHub({ holdMs: 10_000 })
    const token = await hub.register('bot')
    const hangUp = new AbortController()
    const poll = hub.poll(token, {}, hangUp.signal).catch(() => 'hung up')
    await until(() => hub.hub.delivery.parked === 1)
    hangUp.abort()
    expect(await poll).toBe('hung up')
    await until(() => hub.hub.delivery.parked === 0)
    await hub.say('ann', 'one')
    const answer = await hub.poll(token)
    expect(answer.status).toBe(200)
    expect(contents(answer)).toEqual(['one'])
  },
)

verifies(
  'delivery:hold:body-read',
  'a poll stays open after its body was read, also when the body comes late',
  async () => {
    const hub = await startTestHub({ holdMs: 10_000 })
    const token = await hub.register('bot')
    let finished = false
    const slowBody = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode('{"tok'))
        await new Promise((resolve) => setTimeout(resolve, 50))
        controller.enqueue(new TextEncoder().encode(`en":"${token}"}`))
        controller.close()
      },
    })
    const request = new Request(`${hub.url}/relay/bot/getupdates`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: slowBody,
      ...{ duplex: 'half' },
    })
    const poll = fetch(request).then((response) => {
      finished = true
      return response.json()
    })
    await until(() => hub.hub.delivery.parked === 1)
    await hub.say('bob', 'late')
    expect(await poll).toMatchObject({ messages: [{ content: 'late' }] })
    expect(finished).toBe(true)
  },
)

verifies('delivery:implicit:other-connection', async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  await hub.say('ann', 'one')
  const overNew = { connection: 'close' }
  const first = await hub.call('POST', '/relay/bot/getupdates', { token, body: {}, headers: overNew })
  const second = await hub.call('POST', '/relay/bot/getupdates', { token, body: {}, headers: overNew })
  expect([first, second].map(contents)).toEqual([['one'], []])
})

verifies(
  ['delivery:cursor:never-echoed', 'delivery:cursor:same-again'],
  'what is read and thrown away comes again to a client with a cursor, not to one that never had any',
  async () => {
    const hub = await startTestHub({ holdMs: 100 })
    const token = await hub.register('bot')
    const poll = (get_updates_buf: string) => hub.poll(token, { get_updates_buf })
    await hub.say('ann', 'one')
    expect(contents(await poll(''))).toEqual(['one'])
    const second = await poll('')
    expect(contents(second)).toEqual([])
    const cursor: string = second.body.get_updates_buf
    await hub.say('ann', 'two')
    expect(contents(await poll(cursor))).toEqual(['two'])
    expect(contents(await poll(cursor))).toEqual(['two'])
  },
)

verifies(
  ['relay:errors:displaced', 'relay:errors:displaced-damped', 'delivery:poll:none-to-older'],
  'two cursorless pollers on one token: the newest wins, no hot loop, no message twice',
  async () => {
    const hub = await startTestHub({ holdMs: 400 })
    const token = await hub.register('bot')
    const got: string[] = []
    let polls = 0
    let conflicts = 0
    let running = true
    const poller = async () => {
      while (running) {
        const answer = await hub.poll(token)
        polls += 1
        if (answer.status === 409) conflicts += 1
        else got.push(...contents(answer))
      }
    }
    const both = [poller(), poller()]
    for (let number = 0; number < 40; number++) {
      await hub.say('ann', `m${number}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await until(() => got.length >= 40)
    running = false
    await Promise.all(both)
    expect(got.toSorted()).toEqual(Array.from({ length: 40 }, (_, number) => `m${number}`).toSorted())
    expect(conflicts).toBeGreaterThan(0)
    // Each message answers a poll; beyond those only the held and the damped ones may come.
    expect(polls).toBeLessThan(40 + 60)
  },
)

test('a client with a cursor that gives up around the end of the hold loses nothing', async () => {
  const hub = await startTestHub({ holdMs: 60 })
  const token = await hub.register('bot')
  const got = new Set<string>()
  const total = 60
  let cursor: string = (await hub.poll(token, { get_updates_buf: '' })).body.get_updates_buf
  const talking = (async () => {
    for (let said = 0; said < total; said++) {
      hub.sim.control.say({ user: 'ann', text: `m${said}` })
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 40))
    }
  })()
  await until(async () => {
    const giveUp = AbortSignal.timeout(40 + Math.round(Math.random() * 40))
    const answer = await hub.poll(token, { get_updates_buf: cursor }, giveUp).catch(() => null)
    if (answer?.status !== 200) return false
    for (const content of contents(answer)) got.add(content)
    cursor = answer.body.get_updates_buf
    return got.size === total
  }, 30_000)
  await talking
  expect(got.size).toBe(total)
})

verifies(['delivery:implicit:assumed-replay', 'hub:messages:reasons'], async () => {
  const hub = await startTestHub()
  const token = await hub.register('bot')
  await hub.say('ann', 'read me again')
  const first = await hub.poll(token)
  await hub.poll(token)
  expect(await stateOfNewest(hub)).toBe('acked_assumed')
  const [message] = (await hub.call('GET', '/hub/messages')).body.messages
  expect(message).toMatchObject({ reason: 'first_registered', deliveries: [{ client: 'bot', state: 'acked_assumed' }] })
  hub.advance(23 * 60 * 60_000)
  expect((await hub.call('POST', `/hub/messages/${message.id}/replay`, { body: { client: 'bot' } })).status).toBe(200)
  const again = await hub.poll(token)
  expect(again.body.messages).toEqual(first.body.messages)
})
