import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { rawRequest } from '../support/raw-http.ts'
import { type Answer, startTestHub, type TestHub, until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const ADMIN = 'admin-token'
const HUB_PATHS: [string, string][] = [
  ['POST', '/hub/register'],
  ['GET', '/hub/clients'],
  ['GET', '/hub/clients/bot'],
  ['PATCH', '/hub/clients/bot'],
  ['DELETE', '/hub/clients/bot'],
  ['POST', '/hub/clients/bot/rotate'],
  ['GET', '/hub/default'],
  ['PUT', '/hub/default'],
  ['POST', '/hub/route/dry-run'],
  ['GET', '/hub/upstream'],
  ['GET', '/hub/messages'],
  ['POST', '/hub/messages/1/replay'],
  ['GET', '/hub/dead-letters'],
  ['POST', '/hub/dead-letters/1/replay'],
  ['DELETE', '/hub/dead-letters/1'],
  ['POST', '/hub/dead-letters/replay'],
  ['POST', '/hub/dead-letters/discard'],
  ['GET', '/hub/ui'],
  ['POST', '/hub/ui/sign-out'],
]
/** Not there, or not so: a stranger is not told. */
const NO_PATHS: [string, string][] = [
  ['GET', '/hub/'],
  ['GET', '/hub/secret'],
  ['PUT', '/hub/register'],
  ['DELETE', '/hub/clients'],
  ['OPTIONS', '/hub/clients'],
  ['GET', '/hub/%63lients'],
]

const portOf = ({ url }: TestHub) => Number(new URL(url).port)

/** A call with headers that `fetch` does not let one set. */
function raw(hub: TestHub, path: string, headers: string[]) {
  return rawRequest(portOf(hub), `GET ${path} HTTP/1.1\r\n${[...headers, 'Connection: close'].join('\r\n')}\r\n\r\n`)
}

verifies(['auth:admin:required', 'auth:admin:accepted'], async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  await hub.register('cello')
  for (const [method, path] of [...HUB_PATHS, ...NO_PATHS]) {
    for (const token of [undefined, 'wrong', `${ADMIN}x`]) {
      const { status, headers, text } = await hub.call(method, path, { token })
      // From some number of wrong tries on they are 429.
      expect(token === undefined ? [401] : [401, 429], `${method} ${path}`).toContain(status)
      if (status === 401) expect(headers.get('www-authenticate')).toBe('Bearer')
      expect(text).not.toContain('cello')
    }
    expect((await hub.call(method, path, { token: ADMIN })).status, `${method} ${path}`).not.toBe(401)
  }
})

test('nothing was done for those who were refused', async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  await hub.register('bot')
  for (const [method, path] of HUB_PATHS)
    await hub.call(method, path, { ...(method === 'GET' ? {} : { body: { name: 'evil', label: 'evil', ids: [1] } }) })
  const { body } = await hub.call('GET', '/hub/clients', { token: ADMIN })
  expect(body).toMatchObject({ total: 1, clients: [{ name: 'bot', label: 'bot' }] })
})

test('a client token opens no administration, and the admin token no client endpoint', async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  const token = await hub.register('bot')
  expect((await hub.call('GET', '/hub/clients', { token })).status).toBe(401)
  expect((await hub.poll(ADMIN)).status).toBe(401)
})

test('a token in the address opens nothing', async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  for (const query of [`token=${ADMIN}`, `access_token=${ADMIN}`, `authorization=Bearer%20${ADMIN}`])
    expect((await hub.call('GET', `/hub/clients?${query}`)).status).toBe(401)
})

verifies(['auth:admin:wrong-tries', 'auth:admin:right-after-wrong'], async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  const answers: Answer[] = []
  for (let index = 0; index < 25; index += 1)
    answers.push(await hub.call('GET', '/hub/clients', { token: `wrong-${index}` }))
  expect(answers.map(({ status }) => status)).toEqual([...Array(20).fill(401), ...Array(5).fill(429)])
  expect(answers.at(-1)?.headers.get('retry-after')).toMatch(/^\d+$/)
  const page = await hub.call('GET', '/hub/ui', { token: 'wrong' })
  expect([page.status, page.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8'])
  const form = await signIn(hub, 'wrong')
  expect([form.status, form.headers.get('retry-after')]).toEqual([429, '60'])
  expect((await hub.call('GET', '/hub/clients', { token: ADMIN })).status).toBe(200)
  expect((await signIn(hub, ADMIN)).status).toBe(303)
})

verifies(['auth:admin:sign-in-form', 'auth:admin:cookie', 'auth:admin:cookie-counts'], async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  const closed = await hub.call('GET', '/hub/ui')
  expect([closed.status, closed.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8'])
  expect(closed.text).toMatch(/<form method="post" action="\/hub\/ui\/sign-in"/)
  const wrong = await signIn(hub, 'wrong')
  expect(wrong.status).toBe(401)
  expect(wrong.headers.get('www-authenticate')).toBe('Bearer')
  expect(wrong.headers.get('set-cookie')).toBe(null)
  expect(wrong.text).toContain('This admin token is wrong.')
  expect(wrong.text).toContain('action="/hub/ui/sign-in"')

  const right = await signIn(hub, ` ${ADMIN} `, { origin: hub.url })
  expect([right.status, right.headers.get('location')]).toEqual([303, '/hub/ui'])
  const cookie = String(right.headers.get('set-cookie'))
  expect(cookie).toMatch(/^switchboard_admin=[^;]+; Path=\/hub; HttpOnly; SameSite=Strict; Max-Age=\d+$/)
  expect(cookie).not.toContain(ADMIN)
  const headers = { cookie: String(cookie.split(';')[0]) }
  const page = await hub.call('GET', '/hub/ui', { headers })
  expect(page.status).toBe(200)
  expect(page.text).toContain('data-signed-in')
  expect((await hub.call('GET', '/hub/clients', { headers })).status).toBe(200)
  const registered = await hub.call('POST', '/hub/register', {
    headers: { ...headers, origin: hub.url },
    body: { name: 'bot' },
  })
  expect(registered.status).toBe(201)

  const out = await hub.call('POST', '/hub/ui/sign-out', { headers })
  expect([out.status, out.headers.get('location')]).toEqual([303, '/hub/ui'])
  expect(out.headers.get('set-cookie')).toMatch(/^switchboard_admin=; .*Max-Age=0/)
  // Signing out once more, or after the session has ended, shows the form again and no error for machines.
  const again = await hub.call('POST', '/hub/ui/sign-out')
  expect([again.status, again.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8'])
  // Nor does reloading the address of the form.
  const reloaded = await hub.call('GET', '/hub/ui/sign-in')
  expect([reloaded.status, reloaded.headers.get('location')]).toEqual([303, '/hub/ui'])
})

test('what was typed into the sign-in form is not shown again', async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  for (const token of ['<script>alert(1)</script>', 'my-other-password', 'x'.repeat(10_000)]) {
    const { status, text } = await signIn(hub, token)
    expect(status).toBe(401)
    expect(text).not.toContain(token)
  }
  for (const body of ['', 'token', 'token=', '{"token":"x"}', '%%%', 'a=b&token=%FF'])
    expect((await hub.call('POST', '/hub/ui/sign-in', { body })).status, body).toBe(401)
  expect((await signIn(hub, 'x'.repeat(20_000))).status).toBe(413)
})

verifies('auth:admin:cookie-origin', async () => {
  const hub = await startTestHub({ adminToken: ADMIN })
  const cookie = String((await signIn(hub, ADMIN)).headers.get('set-cookie')).split(';')[0] ?? ''
  for (const origin of ['https://evil.example', 'null', `${hub.url}0`, hub.url.replace('127.0.0.1', 'localhost')]) {
    const { status, body } = await hub.call('POST', '/hub/register', {
      headers: { cookie, origin },
      body: { name: 'evil' },
    })
    expect(status, origin).toBe(403)
    expect(body.error.code).toBe('forbidden')
    expect((await hub.call('GET', '/hub/clients', { headers: { cookie, origin } })).status).toBe(403)
    expect((await signIn(hub, ADMIN, { origin })).headers.get('set-cookie')).toBe(null)
    expect((await hub.call('POST', '/hub/ui/sign-out', { headers: { cookie, origin } })).status).toBe(403)
  }
  expect((await hub.call('GET', '/hub/clients', { headers: { cookie } })).body.total).toBe(0)
})

verifies('auth:open:loopback', async () => {
  const hub = await startTestHub()
  expect((await hub.call('POST', '/hub/register', { body: { name: 'bot' } })).status).toBe(201)
  for (const path of ['/hub/clients', '/hub/ui', '/hub/messages', '/hub/upstream'])
    expect((await hub.call('GET', path)).status).toBe(200)
  // A token nobody asked for does no harm.
  expect((await hub.call('GET', '/hub/clients', { token: 'whatever' })).status).toBe(200)
})

verifies(['auth:open:forwarded', 'auth:open:remote'], async () => {
  const hub = await startTestHub()
  for (const headers of [
    { 'x-forwarded-for': '203.0.113.9' },
    { forwarded: 'for=203.0.113.9' },
    { via: '1.1 proxy' },
  ]) {
    for (const [method, path] of [...HUB_PATHS, ...NO_PATHS]) {
      const { status, body } = await hub.call(method, path, { headers })
      expect(status, `${method} ${path}`).toBe(403)
      expect(body.error.message).toMatch(/RELAY_ADMIN_TOKEN.*--insecure/)
    }
  }
  const token = await hub.register('bot')
  // The client endpoints are for everybody who has a token.
  const relay = await hub.call('POST', '/relay/bot/getconfig', { token, headers: { 'x-forwarded-for': '203.0.113.9' } })
  expect(relay.status).toBe(200)
})

verifies(['auth:open:host', 'auth:open:allowed-host'], async () => {
  const hub = await startTestHub({ allowedHosts: ['hub.example'] })
  const status = async (...headers: string[]) => (await raw(hub, '/hub/clients', headers)).status
  for (const host of ['localhost', `127.0.0.1:${portOf(hub)}`, '[::1]:80', 'hub.example', 'hub.example:8080'])
    expect(await status(`Host: ${host}`), host).toBe(200)
  for (const host of ['evil.example', `rebound.example:${portOf(hub)}`, 'www.hub.example', ''])
    expect(await status(`Host: ${host}`), host).toBe(403)
  // What a page at a rebound name would send: its own name in both.
  expect(await status('Host: evil.example', 'Origin: http://evil.example')).toBe(403)
  const ui = await raw(hub, '/hub/ui', ['Host: evil.example'])
  expect(ui.status).toBe(403)
  expect(ui.body).toMatch(/--allowed-host/)
})

verifies('auth:open:origin', async () => {
  const hub = await startTestHub()
  const from = (origin: string) => hub.call('POST', '/hub/register', { headers: { origin }, body: { name: 'evil' } })
  for (const origin of [
    'https://evil.example',
    'null',
    'http://localhost:1',
    `${hub.url}.evil.example`,
    'chrome-extension://x',
  ])
    expect((await from(origin)).status, origin).toBe(403)
  expect((await hub.call('GET', '/hub/clients')).body.total).toBe(0)
  expect((await from(hub.url)).status).toBe(201)
})

const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

// Without such an address the same is shown in admin-auth.test.ts, with a peer that is made up.
if (outside !== undefined) {
  verifies('auth:open:remote', `a caller over ${outside} is not on this machine's loopback`, async () => {
    const hub = await startTestHub({ host: '0.0.0.0' })
    const response = await fetch(`http://${outside}:${portOf(hub)}/hub/clients`)
    expect(response.status).toBe(403)
    expect(await response.text()).toMatch(/RELAY_ADMIN_TOKEN.*--insecure/)
    expect((await fetch(`http://${outside}:${portOf(hub)}/health`)).status).toBe(200)
    expect((await hub.call('GET', '/hub/clients')).status).toBe(200)
  })

  verifies('auth:open:insecure', `with --insecure a caller over ${outside} may administrate`, async () => {
    const hub = await startTestHub({ host: '0.0.0.0', insecure: true })
    expect((await fetch(`http://${outside}:${portOf(hub)}/hub/clients`)).status).toBe(200)
  })
}

verifies(['auth:health:none', 'auth:metrics:open', 'auth:metrics:token'], async () => {
  const open = await startTestHub({ adminToken: ADMIN })
  await until(async () => (await open.call('GET', '/ready')).status === 200)
  for (const path of ['/health', '/metrics']) expect((await open.call('GET', path)).status, path).toBe(200)
  const closed = await startTestHub({ adminToken: ADMIN, metricsToken: 'metrics-token' })
  expect((await closed.call('GET', '/health')).status).toBe(200)
  for (const token of [undefined, 'wrong', ADMIN]) {
    const { status, headers, text } = await closed.call('GET', '/metrics', { token })
    expect(status, token).toBe(401)
    expect(headers.get('www-authenticate')).toBe('Bearer')
    expect(text).not.toContain('switchboard_hub_')
  }
  expect((await closed.call('GET', '/metrics', { token: 'metrics-token' })).status).toBe(200)
  expect((await closed.call('GET', '/hub/clients', { token: 'metrics-token' })).status).toBe(401)
})

function signIn({ call }: TestHub, token: string, headers: Record<string, string> = {}): Promise<Answer> {
  return call('POST', '/hub/ui/sign-in', {
    body: new URLSearchParams({ token }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
}
