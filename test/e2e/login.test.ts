import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../src/kit/log.ts'
import { type RunningSim, startSim } from '../../src/sim/main.ts'
import { startTestHub, type TestHub, type TestHubOptions, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies(['login:http:shape', 'login:http:start-without'], async () => {
  const { hub } = await hubWithoutLogin()
  expect((await hub.call('GET', '/ready')).status).toBe(200)
  expect((await hub.call('GET', '/health')).body).toMatchObject({
    status: 'degraded',
    upstream_detail: {
      account: 'main',
      state: 'needs_login',
      action: expect.stringContaining('switchboard login main'),
    },
  })
  const started = await hub.call('POST', '/hub/upstream/login', { body: {} })
  expect(started.status).toBe(201)
  expect(started.body).toEqual({
    login_id: expect.stringMatching(/^[0-9a-f]{24}$/),
    account: 'main',
    status: 'wait',
    qr_text: expect.stringContaining('/sim/qr?qrcode='),
    qr_svg: expect.stringMatching(/^<svg .*<\/svg>$/s),
    expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
    message: expect.stringContaining('Scan the QR code'),
  })
  const { body } = await hub.call('GET', `/hub/upstream/login/${started.body.login_id}`)
  expect(body).toEqual(started.body)
  const again = await hub.call('POST', '/hub/upstream/login', { body: { account: 'main' } })
  expect([again.status, again.body.login_id]).toEqual([200, started.body.login_id])
  const overview = await hub.call('GET', '/hub/upstream')
  expect(overview.body).toMatchObject({ accounts: [{ account: 'main', state: 'needs_login' }], logins: [body] })
})

verifies('login:http:confirmed', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const token = await hub.register('bot')
  const id = await begin(hub)
  sim.control.accounts.scan({ qrcode: code(await login(hub, id)), confirm: false })
  await untilStatus(hub, id, 'scanned')
  sim.control.accounts.scan({ qrcode: code(sim), as: 'olga' })
  const done = await untilStatus(hub, id, 'confirmed')
  expect(done).toMatchObject({ qr_text: null, qr_svg: null, message: 'Account main is logged in.' })
  await until(() => hub.hub.link.isUp())
  const { body } = await hub.call('GET', '/hub/upstream')
  expect(body.accounts).toEqual([
    expect.objectContaining({
      account: 'main',
      state: 'connected',
      user_id: 'olga@im.wechat',
      bot_id: sim.control.state().bots[0]?.bot_id,
      base_url: sim.url,
    }),
  ])
  expect(JSON.stringify(body)).not.toMatch(/im\.bot:/)
  await hub.say('ann', 'hello')
  const [message] = (await hub.poll(token)).body.messages
  await hub.send(token, message.context_token, 'hi ann')
  expect(await hub.answers('ann', 1)).toContain('hi ann')
})

verifies('login:http:verify-code', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  const early = await hub.call('POST', `/hub/upstream/login/${id}/verify-code`, { body: { code: '1234' } })
  expect([early.status, early.body.error.code]).toEqual([409, 'conflict'])
  sim.control.accounts.scan({ qrcode: code(sim), verify_code: '4711' })
  await untilStatus(hub, id, 'need_verify_code')
  const type = (text: unknown) => hub.call('POST', `/hub/upstream/login/${id}/verify-code`, { body: { code: text } })
  for (const wrong of ['', 'a b', 7, undefined]) expect((await type(wrong)).status).toBe(400)
  expect((await type('0000')).status).toBe(200)
  await until(async () => (await login(hub, id)).message.includes('not the number'))
  await type('4711')
  await untilStatus(hub, id, 'confirmed')
})

test('a number that is wrong three times costs the code, and a new one is shown', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  const first = code(sim)
  sim.control.accounts.scan({ qrcode: first, verify_code: '4711' })
  for (let tries = 0; tries < 3; tries += 1) {
    await untilStatus(hub, id, 'need_verify_code')
    await until(async () => {
      const { status } = await hub.call('POST', `/hub/upstream/login/${id}/verify-code`, { body: { code: '1' } })
      return status === 200
    })
  }
  await until(async () => (await login(hub, id)).message.includes('2 of 3'))
  expect(code(sim)).not.toBe(first)
})

verifies('login:http:refresh', async () => {
  let aheadMs = 0
  const { hub, sim } = await hubWithoutLogin({}, () => Date.now() + aheadMs)
  const id = await begin(hub)
  const seen = new Set([(await login(hub, id)).qr_text])
  for (const count of [2, 3]) {
    aheadMs += 121_000
    await until(async () => (await login(hub, id)).message.includes(`(${count} of 3)`))
    const shown = await login(hub, id)
    expect(shown.status).toBe('wait')
    seen.add(shown.qr_text)
  }
  expect(seen.size).toBe(3)
  aheadMs += 121_000
  const over = await untilStatus(hub, id, 'expired')
  expect(over).toMatchObject({ qr_text: null, message: expect.stringContaining('Start the login again') })
  expect(sim.control.accounts.qrCodes()).toHaveLength(3)
  // And a new one may begin.
  expect(await begin(hub)).not.toBe(id)
})

verifies('login:http:redirect', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  sim.control.accounts.scan({ qrcode: code(sim), redirect_host: `localhost:${sim.port}` })
  await untilStatus(hub, id, 'confirmed')
  // The rest of the login, and all that the bot does, is at the new place.
  const { body } = await hub.call('GET', '/hub/upstream')
  expect(body.accounts[0].base_url).toBe(`http://localhost:${sim.port}`)
  await until(() => hub.hub.link.isUp())
})

verifies('login:http:untrusted-host', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  sim.control.accounts.scan({ qrcode: code(sim), redirect_host: 'evil.example' })
  const { message } = await untilStatus(hub, id, 'failed')
  expect(message).toMatch(/evil\.example.*--upstream-hosts/)
  expect(hub.hub.link.view().state).toBe('needs_login')
})

test('a bot that is bound already is told as such', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  sim.control.accounts.scan({ qrcode: code(sim), already_bound: true })
  expect((await untilStatus(hub, id, 'failed')).message).toMatch(/logged in already/)
})

verifies('login:http:cancel', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  const { status, body } = await hub.call('DELETE', `/hub/upstream/login/${id}`)
  expect([status, body.status, body.qr_text]).toEqual([200, 'cancelled', null])
  sim.control.accounts.scan({ qrcode: code(sim) })
  expect((await login(hub, id)).status).toBe('cancelled')
  expect((await hub.call('GET', '/hub/upstream/login/nothing')).status).toBe(404)
  // Cancelling what is over changes nothing.
  expect((await hub.call('DELETE', `/hub/upstream/login/${id}`)).body.status).toBe('cancelled')
})

verifies('login:http:relogin', async () => {
  const hub = await startTestHub({ holdMs: 5_000 })
  const token = await hub.register('bot')
  await hub.say('ann', 'one')
  const [first] = (await hub.poll(token)).body.messages
  hub.sim.control.faults.add({ kind: 'expired' })
  await until(() => hub.hub.link.view().state === 'needs_login')
  // Said while nobody is logged in; a client waits all the time.
  const poll = hub.poll(token)
  hub.sim.control.say({ user: 'ann', text: 'two' })
  const refused = await hub.send(token, first.context_token, 'not now')
  expect([refused.status, refused.body.errcode]).toEqual([503, 503])
  const id = await begin(hub)
  hub.sim.control.accounts.scan({ qrcode: code(hub.sim) })
  await untilStatus(hub, id, 'confirmed')
  const { messages } = (await poll).body
  expect(messages.map(({ content }: { content: string }) => content)).toEqual(['two'])
  expect((await hub.send(token, first.context_token, 'now')).status).toBe(200)
  expect(await hub.answers('ann', 1)).toContain('now')
  expect((await hub.call('GET', '/health')).body.status).toBe('ok')
})

test('a service that gives no code is told with what to do', async () => {
  const { hub, sim } = await hubWithoutLogin()
  sim.control.faults.add({ kind: 'down', only: 'get_bot_qrcode', count: 1 })
  const answer = await hub.call('POST', '/hub/upstream/login')
  expect([answer.status, answer.body.error.code]).toEqual([503, 'upstream_down'])
  expect(answer.body.error.message).toMatch(/no QR code.*Try again/)
  expect((await hub.call('POST', '/hub/upstream/login')).status).toBe(201)
})

test('a service that is away for a while does not end the login', async () => {
  const { hub, sim } = await hubWithoutLogin()
  const id = await begin(hub)
  sim.control.faults.add({ kind: 'down', only: 'get_qrcode_status', count: 2 })
  await until(() => sim.control.faults.list().length === 0)
  sim.control.accounts.scan({ qrcode: code(sim) })
  await untilStatus(hub, id, 'confirmed')
})

/** A hub at a sim whose polls are short, with nobody logged in. */
async function hubWithoutLogin(
  options: TestHubOptions = {},
  now = Date.now,
): Promise<{ hub: TestHub; sim: RunningSim }> {
  const sim = await startSim({ host: '127.0.0.1', port: 0, botToken: 'a@im.bot:b', holdMs: 50, log: silentLog, now })
  onTestFinished(() => sim.stop())
  return { sim, hub: await startTestHub({ sim, logins: new Map(), ...options }) }
}

async function begin(hub: TestHub, account?: string): Promise<string> {
  const { body } = await hub.call('POST', '/hub/upstream/login', { body: account === undefined ? {} : { account } })
  return body.login_id
}

async function login(hub: TestHub, id: string) {
  return (await hub.call('GET', `/hub/upstream/login/${id}`)).body
}

async function untilStatus(hub: TestHub, id: string, status: string) {
  await until(async () => (await login(hub, id)).status === status)
  return login(hub, id)
}

/** The code on show, as a phone would read it off the picture; or the newest one of a sim. */
function code(from: RunningSim | { qr_text: string }): string {
  const text = 'qr_text' in from ? new URL(from.qr_text).searchParams.get('qrcode') : null
  return text ?? ('control' in from ? (from.control.accounts.qrCodes().at(-1)?.qrcode ?? '') : '')
}
