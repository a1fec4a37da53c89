import { expect } from 'vitest'
import { composeText } from '../../src/hub/compose.ts'
import type { Upstream } from '../../src/hub/upstream/port.ts'
import type { FaultBody } from '../../src/wire/sim.ts'
import { type Gate, gate } from '../support/gate.ts'
import { hubWithContexts, lastingSim, OK, onlineClient, relayCall } from '../support/relay-calls.ts'
import { type Answer, startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

/** Every call that needs the service. */
async function needyCalls(hub: TestHub, token: string, contextToken: string): Promise<Answer[]> {
  const item_list = [{ type: 1, text_item: { text: 'x' } }]
  return [
    await hub.send(token, contextToken, 'x'),
    await relayCall(hub, token, 'sendmessage', { msg: { context_token: contextToken, item_list } }),
    await relayCall(hub, token, 'sendtyping', { context_token: contextToken }),
    await relayCall(hub, token, 'getuploadurl', { filekey: 'f' }),
  ]
}

verifies('relay:errors:upstream-down', 'a service that hangs up or answers 5xx is a 503, and recovers', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const faults: FaultBody[] = [{ kind: 'down' }, { kind: 'http_error', status: 502 }]
  for (const fault of faults) {
    hub.sim.control.faults.add(fault)
    for (const answer of await needyCalls(hub, token, context('ann'))) isDown(answer)
    hub.sim.control.faults.clear()
  }
  expect((await hub.send(token, context('ann'), 'back again')).body).toMatchObject(OK)
  expect(await hub.answers('ann', 1)).toEqual(['back again'])
})

verifies('relay:errors:upstream-down', 'so is a service that is not there at all', async () => {
  const sim = await lastingSim()
  const { hub, token, context } = await hubWithContexts(['ann'], { sim })
  await sim.stop()
  for (const answer of await needyCalls(hub, token, context('ann'))) isDown(answer)
})

verifies('relay:errors:needs-login', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  hub.sim.control.faults.add({ kind: 'expired' })
  await until(() => hub.hub.link.view().state === 'needs_login')
  for (const answer of await needyCalls(hub, token, context('ann'))) isDown(answer)
})

verifies('relay:errors:no-session-codes', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'], { holdMs: 20 })
  const faults: FaultBody[] = [
    { kind: 'expired' },
    { kind: 'http_error', status: 401 },
    { kind: 'refuse_send', ret: -13, errmsg: 'session -14 timeout' },
    { kind: 'refuse_send', ret: -14 },
  ]
  for (const fault of faults) {
    hub.sim.control.faults.add(fault)
    const answers = await needyCalls(hub, token, context('ann'))
    answers.push(await hub.poll(token), await relayCall(hub, token, 'getconfig'))
    answers.push(await relayCall(hub, token, 'msg/notifystart'), await relayCall(hub, token, 'getupdates'))
    for (const { status, text } of answers) {
      expect(text, JSON.stringify(fault)).not.toMatch(/-1[34]/)
      // A 401 would make clients throw their own token away.
      expect([200, 422, 503]).toContain(status)
    }
    expect(answers[0]?.status).toBe(503)
    hub.sim.control.faults.clear()
  }
})

verifies(['relay:errors:upstream-throttles', 'relay:errors:retry-after'], async () => {
  const faults: FaultBody[] = [
    { kind: 'throttle', ret: -2 },
    { kind: 'refuse_send', ret: -1 },
    { kind: 'refuse_send', ret: 45011 },
    { kind: 'refuse_send', ret: 210205 },
  ]
  for (const fault of faults) {
    const { hub, token, context } = await hubWithContexts(['ann'])
    hub.sim.control.faults.add({ ...fault, count: 1 })
    const { status, headers, body } = await hub.send(token, context('ann'), 'x')
    expect(status).toBe(429)
    expect(body).toMatchObject({ ret: 429, errcode: 429, errmsg: expect.any(String), upstream_code: fault.ret })
    expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(body.retry_after_ms).toBeGreaterThan(0)
    // Until then the hub itself holds back, and says so too.
    const next = await hub.send(token, context('ann'), 'y')
    expect(next.status).toBe(429)
    expect(next.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    hub.advance(body.retry_after_ms)
    expect((await hub.send(token, context('ann'), 'z')).body).toMatchObject(OK)
    expect(await hub.answers('ann', 1)).toEqual(['z'])
    await hub.stop()
  }
})

verifies('relay:errors:upstream-refuses', async () => {
  const { hub, token, context } = await hubWithContexts(['ann'])
  const said = [
    { ret: -3 },
    { ret: -99 },
    { ret: 1 },
    { ret: 40001 },
    { ret: 503 },
    { ret: -2, errmsg: 'context_token required' },
    { ret: -2, errmsg: 'invalid param' },
  ]
  for (const { ret, errmsg } of said) {
    hub.sim.control.faults.add({ kind: 'refuse_send', ret, ...(errmsg === undefined ? {} : { errmsg }), count: 1 })
    const { status, body } = await hub.send(token, context('ann'), 'x')
    expect(status, JSON.stringify({ ret, errmsg })).toBe(422)
    expect(body).toMatchObject({ ret: 422, errcode: 422, errmsg: expect.any(String), upstream_code: ret })
    expect(body.retry_after_ms).toBeUndefined()
  }
  expect(hub.sim.control.state().sends).toBe(0)
})

verifies(['relay:errors:too-many-queued-sends', 'relay:errors:retry-after'], async () => {
  const [speak, door] = [gate(), gate()]
  const hub = await startTestHub({ upstream: slowService(speak, door) })
  const token = await onlineClient(hub, 'bot')
  speak.open()
  await until(async () => (await hub.store.messages.list({ limit: 1 })).length === 1)
  const { body } = await hub.poll(token)
  const contextToken: string = body.messages[0].context_token
  const client = hub.hub.registry.byName('bot')
  const order = { clientId: client?.id ?? 0, account: 'main', userId: 'ann@im.wechat' }
  // Filled from inside: a thousand sockets would show nothing more.
  const waiting = Array.from({ length: 1_001 }, (_, index) =>
    hub.hub.outbound.send({ ...order, message: composeText(String(index), contextToken) }),
  )
  const ended = Promise.allSettled(waiting)
  await door.reached
  const refused = await hub.send(token, contextToken, 'one more')
  expect(refused.status).toBe(429)
  expect(refused.body).toMatchObject({ ret: 429, errcode: 429, errmsg: expect.stringContaining('Too many messages') })
  expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  door.open()
  await hub.stop()
  await ended
})

function isDown({ status, headers, body, text }: Answer): void {
  expect(status, text).toBe(503)
  expect(body).toMatchObject({ ret: 503, errcode: 503, errmsg: expect.any(String) })
  expect(body.retry_after_ms).toBeGreaterThan(0)
  expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  expect(text).not.toMatch(/-1[34]/)
}

/** A service where ann says something once she may, and whose sends wait at a door. */
function slowService(speak: Gate, door: Gate): Upstream {
  const messages = [
    '{"message_id":1,"from_user_id":"ann@im.wechat","item_list":[{"type":1,"text_item":{"text":"hello"}}]}',
  ]
  return {
    poll: (cursor, signal) =>
      cursor === ''
        ? speak.pass().then(() => ({ messages, cursor: '1' }))
        : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    async notify() {},
    async send() {
      await door.pass()
      return { upstreamId: '2' }
    },
    async typing() {},
    typingTicket: async () => 'ticket',
    uploadUrl: async () => '{}',
  }
}
