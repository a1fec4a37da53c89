import { expect, onTestFinished, test } from 'vitest'
import { openMemoryStore } from '../../src/hub/store/memory.ts'
import { ilinkUpstream } from '../../src/hub/upstream/ilink.ts'
import type { Upstream } from '../../src/hub/upstream/port.ts'
import { gate } from '../support/gate.ts'
import { freePort, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { hubWithContexts, lastingSim, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { type Answer, startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

/** A send in the real shape. */
function sendMessage(hub: TestHub, token: string, contextToken: string, text: string, clientId: string) {
  const msg = { context_token: contextToken, client_id: clientId, item_list: [{ type: 1, text_item: { text } }] }
  return relayCall(hub, token, 'sendmessage', { msg })
}

/** A send in the spec's shape with an Idempotency-Key. */
function sendWithKey(hub: TestHub, token: string, contextToken: string, content: string, key: string) {
  const body = { token, context_token: contextToken, content, msg_type: 'text' }
  return hub.call('POST', '/relay/bot/sendmessage', { token, body, headers: { 'idempotency-key': key } })
}

verifies(['sends:repeat:client-id', 'sends:repeat:other-body'], async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const first = await sendMessage(hub, token, context('ann'), 'pong', 'id-1')
  expect(first.body).toMatchObject(OK)
  const again = await sendMessage(hub, token, context('ann'), 'pong', 'id-1')
  expect([again.status, again.text]).toEqual([200, first.text])
  const other = await sendMessage(hub, token, context('ann'), 'another', 'id-1')
  expect(other.body).toMatchObject(OK)
  expect(other.text).not.toBe(first.text)
  expect(await hub.answers('ann', 2)).toEqual(['pong', 'another'])
})

verifies('sends:repeat:header', async () => {
  const { hub, token, context } = await hubWithContexts(['ann', 'bob'])
  const first = await sendWithKey(hub, token, context('ann'), 'pong', 'key-1')
  expect((await sendWithKey(hub, token, context('ann'), 'pong', 'key-1')).text).toBe(first.text)
  // The same words to somebody else are another message, whatever the key.
  expect((await sendWithKey(hub, token, context('bob'), 'pong', 'key-1')).body).toMatchObject(OK)
  expect(await hub.answers('bob', 1)).toEqual(['pong'])
  expect(await hub.answers('ann', 1)).toEqual(['pong'])
  const long = await sendWithKey(hub, token, context('ann'), 'pong', 'k'.repeat(257))
  expect([long.status, long.body.errcode]).toEqual([400, 400])
})

verifies(['sends:repeat:not-by-content', 'sends:repeat:per-client'], async () => {
  const hub = await startTestHub()
  const tokens = [await onlineClient(hub, 'one'), await onlineClient(hub, 'two')]
  await hub.say('ann', '/broadcast ping')
  for (const token of tokens) {
    const { body } = await hub.poll(token)
    const context = body.messages[0].context_token
    await hub.send(token, context, 'pong')
    await hub.send(token, context, 'pong')
    await sendMessage(hub, token, context, 'pong', 'same-id')
  }
  const pongs = (await hub.answers('ann', 7)).filter((text) => text === 'pong')
  expect(pongs).toHaveLength(6)
})

verifies('sends:repeat:in-flight', 'a client that repeats too early waits, and the user sees it once', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  hub.sim.control.faults.add({ kind: 'slow', only: 'sendmessage', delay_ms: 300 })
  const sends = [1, 2, 3].map(() => sendMessage(hub, token, context('ann'), 'pong', 'id-1'))
  const answers = await Promise.all(sends)
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  expect(answers[0]?.body).toMatchObject(OK)
  expect(await hub.answers('ann', 1)).toEqual(['pong'])
})

verifies(['sends:repeat:window', 'sends:repeat:durable'], async () => {
  const store = await openMemoryStore()
  const sim = await lastingSim()
  let aheadMs = 0
  const now = () => Date.now() + aheadMs
  const { hub, token, context } = await hubWithContexts(['ann'], { store, sim, now })
  const first = await sendMessage(hub, token, context('ann'), 'pong', 'id-1')
  await hub.stop()
  const next = await startTestHub({ store, sim, now })
  aheadMs = 9 * 60_000
  expect((await sendMessage(next, token, context('ann'), 'pong', 'id-1')).text).toBe(first.text)
  aheadMs = 10 * 60_000 + 1_000
  expect((await sendMessage(next, token, context('ann'), 'pong', 'id-1')).text).not.toBe(first.text)
  expect(await next.answers('ann', 2)).toEqual(['pong', 'pong'])
  await next.stop()
  await store.close()
})

verifies(['sends:answer:only-accepted', 'sends:retry:not-on-throttle'], async () => {
  let at = Date.now()
  const { hub, token, context } = await hubWithContexts(['ann'], { now: () => at })
  const faults = hub.sim.control.faults
  faults.add({ kind: 'throttle' })
  const throttled = await hub.send(token, context('ann'), 'one')
  expect(throttled.status).toBe(429)
  expect(throttled.body).toMatchObject({ ret: 429, errcode: 429, upstream_code: -2 })
  expect(Number(throttled.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  faults.clear()
  // While the service wants silence nothing is tried, for anybody.
  expect((await hub.send(token, context('ann'), 'two')).status).toBe(429)
  at += 2_000
  faults.add({ kind: 'refuse_send', ret: -3, errmsg: 'unknown user' })
  const refused = await hub.send(token, context('ann'), 'three')
  expect([refused.status, refused.body.errcode, refused.body.upstream_code]).toEqual([422, 422, -3])
  faults.clear()
  faults.add({ kind: 'expired' })
  const expired = await hub.send(token, context('ann'), 'four')
  expect([expired.status, expired.body.errcode]).toEqual([503, 503])
  expect(expired.text).not.toContain('-14')
  faults.clear()
  faults.add({ kind: 'down' })
  const down = await hub.send(token, context('ann'), 'five')
  expect([down.status, down.body.retry_after_ms > 0]).toEqual([503, true])
  faults.clear()
  expect((await hub.send(token, context('ann'), 'six')).body).toMatchObject(OK)
  expect(await hub.answers('ann', 1)).toEqual(['six'])
  expect(hub.sim.control.state().sends).toBe(1)
})

test('what the service accepts without an id is a yes without an id, and is counted apart', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  hub.sim.control.faults.add({ kind: 'unconfirmed', count: 1 })
  const { status, body } = await hub.send(token, context('ann'), 'hello')
  expect([status, body]).toEqual([200, { ...OK, send_state: 'unconfirmed' }])
  const metrics = (await hub.call('GET', '/metrics')).text
  expect(metrics).toContain('switchboard_hub_sends_total{outcome="unconfirmed"} 1')
})

verifies('sends:split:long-text', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const text = Array.from({ length: 1_000 }, (_, n) => `word ${n} 😀`).join('\n')
  expect((await hub.send(token, context('ann'), text)).body).toMatchObject(OK)
  const parts = await hub.answers('ann', Math.ceil(text.length / 2_000))
  await until(async () => (await hub.answers('ann', 1)).join('') === text)
  for (const part of parts) expect(part.length).toBeLessThanOrEqual(2_000)
})

verifies('sends:context:counter', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const used = async () => (await hub.store.conversations.get('main', 'ann@im.wechat'))?.sendsUsed
  for (const text of ['one', 'two', 'three']) await hub.send(token, context('ann'), text)
  expect(await used()).toBe(3)
  await hub.say('ann', 'again')
  expect(await used()).toBe(0)
})

verifies(['sends:lane:fifo', 'sends:lane:fair'], async () => {
  const sim = await lastingSim()
  const link = ilinkUpstream({ baseUrl: sim.url, botToken: sim.botToken })
  const memory = await openMemoryStore()
  onTestFinished(() => Promise.all([memory.close(), link.close()]).then(() => undefined))
  let begun = 0
  const begin: typeof memory.sends.begin = async (send) => {
    const stored = await memory.sends.begin(send)
    begun += 1
    return stored
  }
  const first = gate()
  const order: string[] = []
  const upstream: Upstream = {
    ...link,
    async send(message, signal) {
      order.push(message.userId)
      await first.pass()
      return link.send(message, signal)
    },
  }
  // With a pause, however short, there is one call at a time.
  const hub = await startTestHub({
    sim,
    upstream,
    pacingMs: 1,
    store: { ...memory, sends: { ...memory.sends, begin } },
  })
  const [greedy, modest] = [await onlineClient(hub, 'greedy'), await onlineClient(hub, 'modest')]
  await hub.say('ann', '@greedy hi')
  await hub.say('bob', '@modest hi')
  const contextOf = async (token: string) => (await hub.poll(token)).body.messages[0].context_token
  const [ann, bob] = [await contextOf(greedy), await contextOf(modest)]
  const sends: Promise<Answer>[] = []
  for (let n = 0; n < 25; n += 1) {
    sends.push(hub.send(greedy, ann, String(n)))
    await until(() => begun > n)
  }
  sends.push(hub.send(modest, bob, 'me too'))
  await until(() => begun === 26)
  first.open()
  for (const { body } of await Promise.all(sends)) expect(body).toMatchObject(OK)
  expect(await hub.answers('ann', 25)).toEqual(Array.from({ length: 25 }, (_, n) => String(n)))
  // One of the flood was under way, one had its turn; then it was the other client's.
  expect(order.indexOf('bob@im.wechat')).toBeLessThanOrEqual(2)
  await hub.stop()
})

/** The built hub as a process of its own, in front of a sim in this one. */
async function hubProcess() {
  const sim = await lastingSim()
  const [port, dataDir] = [await freePort(), temporaryFolder()]
  const url = `http://127.0.0.1:${port}`
  const env = {
    RELAY_ADDR: `127.0.0.1:${port}`,
    RELAY_DATA_DIR: dataDir,
    RELAY_UPSTREAM_URL: sim.url,
    RELAY_UPSTREAM_TOKEN: sim.botToken,
    RELAY_LOG_LEVEL: 'error',
  }
  const start = async () => {
    const program = runCli(['hub'], { env })
    await untilAnswers(`${url}/health`, program)
    return program
  }
  const post = async (path: string, token: string, body: object) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  /** A client that is online and was spoken to. */
  const greeted = async () => {
    const { token } = (await post('/hub/register', '', { name: 'bot' })).body
    await post('/relay/bot/msg/notifystart', token, {})
    sim.control.say({ user: 'ann', text: 'ping' })
    const { messages } = (await post('/relay/bot/getupdates', token, {})).body
    return { token, contextToken: String(messages[0].context_token) }
  }
  return { sim, start, post, greeted }
}

verifies(
  'sends:crash:unknown',
  'a hub killed while it sends does not send again, and says that it does not know',
  async () => {
    const { sim, start, post, greeted } = await hubProcess()
    const program = await start()
    const { token, contextToken } = await greeted()
    const item = { type: 1, text_item: { text: 'pong' } }
    const msg = { context_token: contextToken, client_id: 'id-1', item_list: [item] }
    const pongs = async () => {
      const { messages } = await sim.control.conversation({ user: 'ann' })
      return messages.filter(({ text }) => text === 'pong').length
    }
    // The user has it, and the hub does not hear of it.
    sim.control.faults.add({ kind: 'slow', only: 'sendmessage', delay_ms: 60_000 })
    const cut = post('/relay/bot/sendmessage', token, { msg }).catch(() => 'cut off')
    await until(async () => (await pongs()) === 1)
    await program.kill('SIGKILL')
    expect(await cut).toBe('cut off')
    sim.control.faults.clear()
    await start()
    const again = await post('/relay/bot/sendmessage', token, { msg })
    expect([again.status, again.body.errcode, again.body.send_state]).toEqual([503, 503, 'unknown'])
    const fresh = await post('/relay/bot/sendmessage', token, { msg: { ...msg, client_id: 'id-2' } })
    expect(fresh.body).toMatchObject(OK)
    expect(await pongs()).toBe(2)
  },
  60_000,
)

verifies(
  'sends:lane:sim-unpaced',
  async () => {
    const { start, post, greeted } = await hubProcess()
    await start()
    const { token, contextToken } = await greeted()
    const send = (content: string) => post('/relay/bot/sendmessage', token, { context_token: contextToken, content })
    await send('first')
    const startedAt = Date.now()
    for (let n = 0; n < 20; n += 1) expect((await send(`pong ${n}`)).body).toMatchObject(OK)
    // With the pause that a real service needs this takes half a minute.
    expect(Date.now() - startedAt).toBeLessThan(20_000)
  },
  60_000,
)
