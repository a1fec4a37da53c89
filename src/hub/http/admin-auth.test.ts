import { expect, onTestFinished, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { httpServer } from '../../kit/http.ts'
import { silentLog } from '../../kit/log.ts'
import { type AdminAuthOptions, adminAuth, same } from './admin-auth.ts'
import { hubErrorAnswer } from './errors.ts'

const compared: [number, number][] = []
vi.mock('node:crypto', async (load) => {
  const crypto = await load<typeof import('node:crypto')>()
  const timingSafeEqual = (a: Uint8Array, b: Uint8Array) => {
    compared.push([a.length, b.length])
    return crypto.timingSafeEqual(a, b)
  }
  return { ...crypto, timingSafeEqual }
})

const TOKEN = 'the-admin-token'

interface Call {
  /** The peer's address; loopback unless told. */
  peer?: string
  host?: string
  headers?: Record<string, string>
}

/** A door with one room behind it. */
function testDoor(options: Partial<AdminAuthOptions> = {}) {
  let now = 1_700_000_000_000
  const auth = adminAuth({ adminToken: null, insecure: false, allowedHosts: [], now: () => now, ...options })
  const app = httpServer({ errorAnswer: hubErrorAnswer(silentLog), bodyLimitBytes: 1_000 })
  onTestFinished(() => app.close())
  app.get('/room', async (request) => {
    auth.check(request)
    return { in: true }
  })
  app.post('/sign-in', async (request, reply) => {
    return reply.header('set-cookie', auth.signIn(String(request.headers['x-token']), request)).send({})
  })
  const enter = async ({ peer = '127.0.0.1', host = '127.0.0.1:8765', headers = {} }: Call = {}) => {
    const answer = await app.inject({ url: '/room', remoteAddress: peer, headers: { host, ...headers } })
    return { status: answer.statusCode, headers: answer.headers, error: answer.json().error }
  }
  const bearer = (token: string) => enter({ headers: { authorization: `Bearer ${token}` } })
  const signIn = async (token: string, headers: Record<string, string> = {}) => {
    const all = { host: '127.0.0.1:8765', 'x-token': token, ...headers }
    const answer = await app.inject({ method: 'POST', url: '/sign-in', headers: all })
    return { status: answer.statusCode, setCookie: String(answer.headers['set-cookie'] ?? '') }
  }
  return { enter, bearer, signIn, advance: (ms: number) => (now += ms) }
}

verifies('auth:open:loopback', async () => {
  const { enter } = testDoor()
  for (const peer of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1']) {
    expect((await enter({ peer })).status, peer).toBe(200)
  }
})

verifies('auth:open:remote', async () => {
  const { enter } = testDoor()
  for (const peer of ['10.1.2.3', '192.0.2.2', '::ffff:10.1.2.3', 'fd00::2', '1127.0.0.1', '::']) {
    const { status, error } = await enter({ peer })
    expect(status, peer).toBe(403)
    expect(error.code).toBe('forbidden')
    expect(error.message).toMatch(/RELAY_ADMIN_TOKEN.*--insecure/)
  }
})

verifies('auth:open:forwarded', async () => {
  const { enter } = testDoor()
  const names = ['X-Forwarded-For', 'x-forwarded-host', 'X-FORWARDED-PROTO', 'Forwarded', 'Via', 'X-Real-IP']
  for (const name of names) {
    for (const value of ['127.0.0.1', '', 'unknown']) {
      expect((await enter({ headers: { [name]: value } })).status, `${name}: ${value}`).toBe(403)
    }
  }
})

verifies(['auth:open:insecure', 'auth:open:origin'], async () => {
  const { enter } = testDoor({ insecure: true })
  expect((await enter({ peer: '10.1.2.3', host: 'hub.example' })).status).toBe(200)
  expect((await enter({ headers: { 'x-forwarded-for': '1.2.3.4' } })).status).toBe(200)
  // Open to callers, but not to the pages of others in a caller's browser.
  expect((await enter({ peer: '10.1.2.3', headers: { origin: 'https://evil.example' } })).status).toBe(403)
})

verifies(['auth:open:host', 'auth:open:allowed-host'], async () => {
  const { enter } = testDoor({ allowedHosts: ['hub.example'] })
  const good = ['localhost', 'LocalHost:8765', 'a.localhost', '127.0.0.1', '192.168.1.5:1', '[::1]:8765', 'hub.example']
  for (const host of [...good, 'HUB.example:8765']) expect((await enter({ host })).status, host).toBe(200)
  const bad = [
    'evil.example',
    'localhost.evil.example',
    'evillocalhost',
    'x.hub.example',
    'hub.example.',
    '127.0.0.1.nip.io',
  ]
  for (const host of [...bad, 'evil.example:8765', ':8765', '1.2.3', 'dead.beef', 'localhost@evil.example']) {
    const { status, error } = await enter({ host })
    expect(status, host).toBe(403)
    expect(error.message).toMatch(/--allowed-host/)
  }
})

verifies('auth:open:origin', async () => {
  const { enter } = testDoor()
  const from = (origin: string) => enter({ host: 'localhost:8765', headers: { origin } })
  expect((await from('http://localhost:8765')).status).toBe(200)
  const foreign = [
    'https://evil.example',
    'http://localhost',
    'http://localhost:8766',
    'http://127.0.0.1:8765',
    'null',
    '',
  ]
  for (const origin of [...foreign, 'http://localhost:8765.evil.example', 'http://localhost:8765@evil.example'])
    expect((await from(origin)).status, origin).toBe(403)
})

verifies(['auth:admin:required', 'auth:admin:accepted'], async () => {
  const { enter, bearer } = testDoor({ adminToken: TOKEN })
  expect((await bearer(TOKEN)).status).toBe(200)
  for (const scheme of ['bearer', 'BEARER', 'Bearer   '])
    expect((await enter({ headers: { authorization: `${scheme} ${TOKEN}` } })).status, scheme).toBe(200)
  // With a token nothing else counts: not the place, not the name, not the way.
  const elsewhere = { peer: '10.1.2.3', host: 'hub.example', headers: { authorization: `Bearer ${TOKEN}` } }
  expect((await enter(elsewhere)).status).toBe(200)
  for (const authorization of [
    '',
    TOKEN,
    `Basic ${TOKEN}`,
    'Bearer',
    'Bearer ',
    `Bearer ${TOKEN} x`,
    `Bearer x${TOKEN}`,
  ]) {
    const { status, headers, error } = await enter({ headers: { authorization } })
    expect(status, authorization).toBe(401)
    expect(headers['www-authenticate']).toBe('Bearer')
    expect(error.code).toBe('unauthorized')
    expect(error.message).not.toContain(TOKEN)
  }
})

test('with a token --insecure opens nothing', async () => {
  const { enter } = testDoor({ adminToken: TOKEN, insecure: true })
  expect((await enter()).status).toBe(401)
})

verifies('auth:admin:constant-time', async () => {
  const texts = ['', 'a', 'b', 'the-admin-token', 'the-admin-tokem', 'x'.repeat(10_000), 'é', '\0']
  for (const a of texts) for (const b of texts) expect(same(a, b), JSON.stringify([a, b])).toBe(a === b)
  const { bearer } = testDoor({ adminToken: TOKEN })
  compared.length = 0
  await bearer('t')
  await bearer(TOKEN)
  await bearer(TOKEN.repeat(100))
  // As many bytes are compared for a short token, for the right one and for a long one.
  expect(compared).toEqual([
    [32, 32],
    [32, 32],
    [32, 32],
  ])
})

verifies(['auth:admin:wrong-tries', 'auth:admin:right-after-wrong'], async () => {
  const { bearer, signIn, enter, advance } = testDoor({ adminToken: TOKEN })
  const statuses: number[] = []
  for (let attempt = 0; attempt < 30; attempt += 1) statuses.push((await bearer(`wrong-${attempt}`)).status)
  expect(statuses).toEqual([...Array(20).fill(401), ...Array(10).fill(429)])
  const { headers, error } = await bearer('wrong')
  expect(headers['retry-after']).toBe('60')
  expect(error.code).toBe('too_many_tries')
  expect((await signIn('wrong')).status).toBe(429)
  expect((await bearer(TOKEN)).status).toBe(200)
  expect((await signIn(TOKEN)).status).toBe(200)
  // Who sends nothing has not tried.
  expect((await enter()).status).toBe(401)
  advance(60_001)
  expect((await bearer('wrong')).status).toBe(401)
})

verifies(['auth:admin:cookie', 'auth:admin:cookie-counts'], async () => {
  const { signIn, enter, advance } = testDoor({ adminToken: TOKEN })
  const { setCookie } = await signIn(TOKEN)
  expect(setCookie).toMatch(/; HttpOnly/)
  expect(setCookie).toMatch(/; SameSite=Strict/)
  expect(setCookie).toMatch(/; Path=\/hub/)
  expect(setCookie).not.toContain(TOKEN)
  const cookie = setCookie.split(';')[0] ?? ''
  const enterBy = async (text: string) => (await enter({ headers: { cookie: text } })).status
  expect(await enterBy(cookie)).toBe(200)
  expect(await enterBy(`a=b; ${cookie}; c=d`)).toBe(200)
  const [name = '', value = ''] = cookie.split('=')
  const [until = '', signature = ''] = value.split('.')
  const forged = [
    '',
    name,
    `${name}=`,
    `${name}=.`,
    `x${cookie}`,
    `${name}=${until}`,
    `${name}=${until}.`,
    `${name}=${Number(until) + 1}.${signature}`,
    `${name}=${until}.${signature.slice(1)}`,
    `${name}=99999999999999.${signature}`,
    `${name}=1e99.${signature}`,
    `${name}=${TOKEN}`,
  ]
  for (const text of forged) expect(await enterBy(text), text).toBe(401)
  // A wrong header is not mended by a good cookie.
  expect((await enter({ headers: { cookie, authorization: 'Bearer wrong' } })).status).toBe(401)
  advance(7 * 24 * 60 * 60_000)
  expect(await enterBy(cookie)).toBe(401)
})

test('a cookie is worth nothing once the token has changed', async () => {
  const { setCookie } = await testDoor({ adminToken: 'old' }).signIn('old')
  const cookie = setCookie.split(';')[0] ?? ''
  expect((await testDoor({ adminToken: 'old' }).enter({ headers: { cookie } })).status).toBe(200)
  expect((await testDoor({ adminToken: 'new' }).enter({ headers: { cookie } })).status).toBe(401)
})

verifies('auth:admin:cookie-origin', async () => {
  const { signIn, enter } = testDoor({ adminToken: TOKEN })
  const cookie = (await signIn(TOKEN)).setCookie.split(';')[0] ?? ''
  const from = async (origin: string) => (await enter({ headers: { cookie, origin } })).status
  expect(await from('http://127.0.0.1:8765')).toBe(200)
  for (const origin of ['https://evil.example', 'http://127.0.0.1:8766', 'null', ''])
    expect(await from(origin)).toBe(403)
  // Nor can another site's page sign a visitor in.
  const foreign = await signIn(TOKEN, { origin: 'https://evil.example' })
  expect(foreign).toEqual({ status: 403, setCookie: '' })
  // Whoever knows the token itself may call from anywhere.
  const header = { origin: 'https://evil.example', authorization: `Bearer ${TOKEN}` }
  expect((await enter({ headers: header })).status).toBe(200)
})

test('a hub without a token has nothing to sign in to', async () => {
  expect(await testDoor().signIn('anything')).toEqual({ status: 400, setCookie: '' })
})
