import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSqliteStore } from '../../src/hub/store/sqlite.ts'
import { temporaryFolder } from '../support/processes.ts'
import { startTestHub, type TestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const registerBody = ({ call }: TestHub, body: unknown) => call('POST', '/hub/register', { body })

async function namesAt({ call }: TestHub): Promise<string[]> {
  const { body } = await call('GET', '/hub/clients')
  return body.clients.map(({ name }: { name: string }) => name)
}

verifies(['hub:register:answer', 'hub:register:created-at', 'hub:register:token-format'], async () => {
  const hub = await startTestHub()
  const before = Date.now()
  const { status, headers, body } = await registerBody(hub, { name: 'helper', label: 'Helps people' })
  expect(status).toBe(201)
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(Object.keys(body)).toEqual(['name', 'label', 'token', 'created_at'])
  expect(body).toMatchObject({ name: 'helper', label: 'Helps people' })
  expect(body.token).toMatch(/^vhub_[0-9a-f]{32}$/)
  expect(body.created_at).toMatch(ISO_UTC)
  expect(Date.parse(body.created_at)).toBeGreaterThanOrEqual(before)
  expect(Date.parse(body.created_at)).toBeLessThanOrEqual(Date.now())
})

verifies(['hub:register:token-works', 'auth:virtual:header'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('helper')
  expect((await hub.poll(token)).body.errcode).toBe(0)
  const scheme = await hub.call('POST', '/relay/bot/getupdates', { headers: { authorization: `bearer ${token}` } })
  expect(scheme.status).toBe(200)
})

verifies(['hub:register:token-once', 'hub:clients:no-token'], async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const { body: registered } = await registerBody(hub, { name: 'helper' })
  const { body: rotated } = await hub.call('POST', '/hub/clients/helper/rotate', { body: { overlap_seconds: 60 } })
  await hub.poll(registered.token)
  await hub.say('ann', 'hello')
  const gets = [
    '/hub/clients',
    '/hub/clients/helper',
    '/hub/messages',
    '/hub/dead-letters',
    '/hub/ui',
    '/health',
    '/metrics',
  ]
  const texts = await Promise.all(gets.map(async (path) => (await hub.call('GET', path)).text))
  texts.push((await registerBody(hub, { name: 'helper' })).text)
  texts.push((await hub.call('PATCH', '/hub/clients/helper', { body: { label: 'x' } })).text)
  texts.push((await hub.call('POST', '/relay/bot/getupdates', { token: `${registered.token}0` })).text)
  for (const text of texts) {
    expect(text).not.toBe('')
    expect(text).not.toContain('vhub_')
    for (const token of [registered.token, rotated.token]) expect(text).not.toContain(token.slice('vhub_'.length))
  }
})

verifies('hub:register:token-hashed', 'no file of the data directory holds a token', async () => {
  const dir = temporaryFolder()
  const store = await openSqliteStore({ dir, lazyMs: 1 })
  onTestFinished(() => store.close())
  const hub = await startTestHub({ store, holdMs: 20 })
  const token = await hub.register('helper')
  const { body } = await hub.call('POST', '/hub/clients/helper/rotate', { body: { overlap_seconds: 60 } })
  await hub.poll(token)
  await hub.poll(body.token)
  await hub.stop()
  const files = readdirSync(dir).map((name) => readFileSync(join(dir, name), 'latin1'))
  expect(files.some((text) => text.includes('helper'))).toBe(true)
  for (const secret of [token, body.token]) {
    for (const text of files) expect(text).not.toContain(secret.slice('vhub_'.length))
  }
})

verifies(['hub:register:name-length', 'hub:register:name-trimmed'], async () => {
  const hub = await startTestHub()
  const good = ['x', 'n'.repeat(64), `  ${'m'.repeat(64)}\t\n`, '😀'.repeat(64), ' inner  space ']
  for (const name of good) {
    const { status, body } = await registerBody(hub, { name })
    expect(status, name).toBe(201)
    expect(body.name).toBe(name.trim())
  }
  for (const name of ['', ' ', '\t\n', '\u00a0', 'n'.repeat(65), '😀'.repeat(65), 'x'.repeat(100_000)]) {
    const { status, body } = await registerBody(hub, { name })
    expect(status, name.slice(0, 70)).toBe(400)
    expect(body.error).toMatchObject({ code: 'bad_request', details: { field: 'name' } })
    expect(body.error.message).toMatch(/^name must have 1 to 64 characters/)
  }
  expect(await namesAt(hub)).toHaveLength(good.length)
})

verifies('hub:register:name-control', async () => {
  const hub = await startTestHub()
  const bad = ['\0', '\u0001', '\u001b[31m', '\u007f', '\u0085', '\u2028', '\u2029', '\u202e', '\u2066', '\ud800']
  for (const sign of bad) {
    const text = JSON.stringify({ name: `a${sign}b` })
    const { status, body } = await hub.call('POST', '/hub/register', { body: text })
    expect(status, text).toBe(400)
    expect(body.error).toMatchObject({ code: 'bad_request', details: { field: 'name' } })
    const label = await hub.call('POST', '/hub/register', { body: JSON.stringify({ name: 'ok', label: `a${sign}b` }) })
    expect(label.status, text).toBe(400)
    expect(label.body.error.details.field).toBe('label')
  }
  expect(await namesAt(hub)).toEqual([])
})

verifies('hub:register:name-unique', async () => {
  const hub = await startTestHub({ holdMs: 20 })
  const token = await hub.register('Helper', { label: 'the first' })
  for (const name of ['Helper', 'helper', ' HELPER ', 'hElPeR']) {
    const { status, body } = await registerBody(hub, { name, label: 'the second' })
    expect(status, name).toBe(409)
    expect(body.error.code).toBe('name_taken')
    expect(body.error.message).toMatch(/registered already; choose another name/)
  }
  const { body } = await hub.call('GET', '/hub/clients')
  expect(body).toMatchObject({ total: 1, clients: [{ name: 'Helper', label: 'the first' }] })
  expect((await hub.poll(token)).status).toBe(200)
})

test('of many registrations of one name at once exactly one is taken', async () => {
  const hub = await startTestHub()
  const answers = await Promise.all(Array.from({ length: 10 }, () => registerBody(hub, { name: 'helper' })))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(9).fill(409)])
  expect(await namesAt(hub)).toEqual(['helper'])
})

verifies(['hub:register:label-default', 'hub:register:label-length'], async () => {
  const hub = await startTestHub()
  const labelOf = async (name: string, more: object) => (await registerBody(hub, { name, ...more })).body?.label
  expect(await labelOf(' one ', {})).toBe('one')
  expect(await labelOf('two', { label: '' })).toBe('two')
  expect(await labelOf('three', { label: '  ' })).toBe('three')
  expect(await labelOf('four', { label: ' kept ' })).toBe('kept')
  expect(await labelOf('five', { label: 'x'.repeat(128) })).toBe('x'.repeat(128))
  expect(await labelOf('six', { label: '😀'.repeat(128) })).toBe('😀'.repeat(128))
  for (const label of ['x'.repeat(129), '😀'.repeat(129)]) {
    const { status, body } = await registerBody(hub, { name: 'seven', label })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({ code: 'bad_request', details: { field: 'label' } })
  }
  expect(await namesAt(hub)).not.toContain('seven')
})

test('fields nobody knows and a wrong content type are no mistake', async () => {
  const hub = await startTestHub()
  expect((await registerBody(hub, { name: 'one', colour: 'green', token: 'vhub_mine' })).status).toBe(201)
  for (const [name, type] of [
    ['two', 'text/plain'],
    ['three', 'application/x-www-form-urlencoded'],
    ['four', 'no type at all'],
  ]) {
    const headers = { 'content-type': String(type) }
    const { status } = await hub.call('POST', '/hub/register', { body: JSON.stringify({ name }), headers })
    expect(status, type).toBe(201)
  }
  expect((await hub.poll('vhub_mine')).status).toBe(401)
})
