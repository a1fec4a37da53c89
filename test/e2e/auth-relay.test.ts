import { expect, test } from 'vitest'
import { parsePrometheusText } from '../support/prometheus-text.ts'
import { rawRequest } from '../support/raw-http.ts'
import { type Answer, startTestHub, type TestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const CALLS = [
  'getupdates',
  'sendmessage',
  'sendtyping',
  'getconfig',
  'getuploadurl',
  'msg/notifystart',
  'msg/notifystop',
]
const PATHS = ['/relay/bot/', '/ilink/bot/'].flatMap((prefix) => CALLS.map((call) => prefix + call))

/** What every refusal of a token looks like. -14 is never said: clients wipe their credentials then. */
function expectRefused({ status, headers, body, text }: Answer, what: string): void {
  expect(status, what).toBe(401)
  expect(headers.get('www-authenticate')).toBe('Bearer')
  expect(body).toMatchObject({ ret: 401, errcode: 401, errmsg: expect.stringMatching(/\.$/) })
  expect(text).not.toContain('vhub_')
}

async function hubWithClient() {
  const hub = await startTestHub({ holdMs: 20 })
  return { hub, token: await hub.register('bot') }
}

const lastSeen = async ({ call }: TestHub) => (await call('GET', '/hub/clients/bot')).body.last_seen

verifies(['auth:virtual:missing', 'auth:virtual:body-alone', 'auth:virtual:challenge'], async () => {
  const { hub, token } = await hubWithClient()
  const before = await lastSeen(hub)
  for (const path of PATHS) {
    expectRefused(await hub.call('POST', path), path)
    expectRefused(await hub.call('POST', path, { body: { token, context_token: 'x', content: 'x' } }), path)
    expectRefused(await hub.call('POST', `${path}?token=${token}`, { body: { token } }), path)
  }
  // To have knocked in vain is not to have been there.
  expect(await lastSeen(hub)).toBe(before)
})

verifies('auth:virtual:malformed', async () => {
  const { hub, token } = await hubWithClient()
  const hex = token.slice('vhub_'.length)
  const malformed = ['', ' ', 'Bearer', 'Bearer ', token, `Basic ${token}`, `Token ${token}`, `Bearer: ${token}`]
  for (const authorization of [
    ...malformed,
    `Bearer ${token} x`,
    `Bearer ${hex}`,
    `Bearer "${token}"`,
    `Bearer\t${token}`,
  ])
    expectRefused(await hub.call('POST', '/relay/bot/getupdates', { headers: { authorization } }), authorization)
})

verifies('auth:virtual:unknown', async () => {
  const { hub, token } = await hubWithClient()
  const unknown = [
    `vhub_${'0'.repeat(32)}`,
    token.toUpperCase(),
    `${token}0`,
    token.slice(0, -1),
    'x',
    'x'.repeat(5_000),
  ]
  for (const one of unknown) for (const path of PATHS) expectRefused(await hub.call('POST', path, { token: one }), path)
  const families = parsePrometheusText((await hub.call('GET', '/metrics')).text)
  const refused = families.find(({ name }) => name === 'switchboard_hub_refused_tokens_total')
  expect(refused?.samples[0]?.value).toBe(unknown.length * PATHS.length)
})

verifies('auth:virtual:revoked', async () => {
  const { hub, token } = await hubWithClient()
  await hub.call('DELETE', '/hub/clients/bot')
  for (const path of PATHS) expectRefused(await hub.call('POST', path, { token, body: { token } }), path)
})

verifies('auth:virtual:body-differs', async () => {
  const { hub, token } = await hubWithClient()
  const other = await hub.register('other')
  await hub.say('ann', 'hello')
  for (const path of PATHS) {
    for (const inBody of [other, 'x', '', `${token} `]) {
      expectRefused(await hub.call('POST', path, { token, body: { token: inBody, content: 'x' } }), path)
    }
  }
  // Nobody was handed anything on the way.
  expect((await hub.poll(token)).body.messages).toHaveLength(1)
})

verifies('auth:virtual:before-body', async () => {
  const { hub } = await hubWithClient()
  for (const path of PATHS) {
    expectRefused(await hub.call('POST', path, { token: 'wrong', body: '{"broken' }), path)
    expectRefused(await hub.call('POST', path, { token: 'wrong', body: 'x'.repeat(2 * 1024 * 1024) }), path)
  }
  // Not one byte of the body has to come for the answer to go out.
  const port = Number(new URL(hub.url).port)
  const head =
    'POST /relay/bot/sendmessage HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n'
  expect((await rawRequest(port, head)).status).toBe(401)
})

test('a token is good on both prefixes and for its own client only', async () => {
  const { hub, token } = await hubWithClient()
  const other = await hub.register('other')
  await hub.say('ann', 'for bot')
  await hub.say('ann', '@other for other')
  const contentsOf = ({ body }: Answer) => body.messages.map(({ content }: { content: string }) => content)
  expect(contentsOf(await hub.call('POST', '/ilink/bot/getupdates', { token: other }))).toEqual(['@other for other'])
  const mine = await hub.call('POST', '/relay/bot/getupdates', { token })
  expect(contentsOf(mine)).toEqual(['for bot'])
  expect((await hub.send(other, mine.body.messages[0].context_token, 'mine now')).status).toBe(404)
})
