import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/support/processes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { type BotLogin, openLogin, sealLogin } from './credentials.ts'
import { credentialsKey } from './key-file.ts'
import { readKey } from './key-text.ts'
import { trustedUrl } from './service-hosts.ts'
import { openSqliteStore } from './store/sqlite.ts'
import { openVault } from './vault.ts'

const LOGIN: BotLogin = {
  botToken: '0123456789ab@im.bot:very-secret',
  baseUrl: 'https://ilinkai.weixin.qq.com',
  botId: '0123456789ab@im.bot',
  userId: 'olga@im.wechat',
  source: 'abc',
  replaces: null,
}
const LOCKED = expect.objectContaining({ code: 'credentials_locked' })

verifies('credentials:rest:encrypted', async () => {
  const dir = temporaryFolder()
  const key = randomBytes(32)
  const store = await openSqliteStore({ dir })
  await openVault(store.credentials, key, Date.now).save('main', LOGIN)
  expect(await openVault(store.credentials, key, Date.now).load()).toEqual(new Map([['main', LOGIN]]))
  await store.close()
  for (const file of ['hub.db', 'hub.db-wal'].map((name) => join(dir, name))) {
    const bytes = statSync(file, { throwIfNoEntry: false }) ? readFileSync(file, 'latin1') : ''
    for (const secret of ['very-secret', 'olga', 'ilinkai']) expect(bytes).not.toContain(secret)
  }
})

test('the same login is never sealed alike, and opens for its own account only', () => {
  const key = randomBytes(32)
  const sealed = sealLogin(LOGIN, 'main', key)
  expect(sealLogin(LOGIN, 'main', key)).not.toBe(sealed)
  expect(openLogin(sealed, 'main', key)).toEqual(LOGIN)
  expect(() => openLogin(sealed, 'shop', key)).toThrow(LOCKED)
  expect(() => openLogin(`${sealed.slice(0, -2)}AA`, 'main', key)).toThrow(LOCKED)
  expect(() => openLogin('v1.', 'main', key)).toThrow(LOCKED)
})

verifies('credentials:key:wrong', async () => {
  const dir = temporaryFolder()
  const right = randomBytes(32)
  const store = await openSqliteStore({ dir })
  await openVault(store.credentials, right, Date.now).save('main', LOGIN)
  const failure = await openVault(store.credentials, randomBytes(32), Date.now)
    .load()
    .catch((error: Error) => error.message)
  expect(failure).toMatch(/account main .*--credentials-key-file.*--forget-logins.*Nothing was changed/)
  expect(failure).not.toContain('secret')
  expect((await openVault(store.credentials, right, Date.now).load()).get('main')).toEqual(LOGIN)
  await store.close()
})

verifies('credentials:key:own', async () => {
  const dataDir = temporaryFolder()
  const options = { given: null, file: null, dataDir, isNeeded: false }
  const key = await credentialsKey(options)
  expect(key).toHaveLength(32)
  expect(statSync(join(dataDir, 'credentials.key')).mode & 0o777).toBe(0o600)
  expect(await credentialsKey({ ...options, isNeeded: true })).toEqual(key)
  // One that is gone while something is encrypted is not made anew.
  await expect(credentialsKey({ ...options, dataDir: temporaryFolder(), isNeeded: true })).rejects.toThrow(LOCKED)
})

verifies('credentials:key:given', async () => {
  const dataDir = temporaryFolder()
  const key = randomBytes(32)
  for (const text of [key.toString('hex'), key.toString('base64'), `${key.toString('base64url')}\n`])
    expect(readKey(text)).toEqual(key)
  for (const text of ['', 'short', 'x'.repeat(64), randomBytes(31).toString('base64')])
    expect(readKey(text), text).toBeNull()
  const file = join(dataDir, 'elsewhere')
  writeFileSync(file, `${key.toString('hex')}\n`)
  const options = { given: null, file, dataDir, isNeeded: true }
  expect(await credentialsKey(options)).toEqual(key)
  expect(await credentialsKey({ ...options, given: Buffer.alloc(32, 1) })).toEqual(Buffer.alloc(32, 1))
  writeFileSync(file, 'no key at all')
  await expect(credentialsKey(options)).rejects.toThrow(LOCKED)
  await expect(credentialsKey({ ...options, file: join(dataDir, 'nothing') })).rejects.toThrow(LOCKED)
})

test.each([
  ['https://ilinkai.weixin.qq.com', 'szilink.weixin.qq.com', 'https://szilink.weixin.qq.com'],
  ['https://ilinkai.weixin.qq.com', 'https://ilinkai.weixin.qq.com/', 'https://ilinkai.weixin.qq.com'],
  ['https://ilinkai.weixin.qq.com', 'http://szilink.weixin.qq.com', null],
  ['https://ilinkai.weixin.qq.com', 'evil.example', null],
  ['https://ilinkai.weixin.qq.com', 'weixin.qq.com.evil.example', null],
  ['https://ilinkai.weixin.qq.com', 'user@szilink.weixin.qq.com', null],
  ['https://ilinkai.weixin.qq.com', 'more.example', 'https://more.example'],
  ['https://bots.example.com', 'other.example.com', null],
  ['http://127.0.0.1:8766', 'localhost:8766', 'http://localhost:8766'],
  ['http://127.0.0.1:8766', 'http://10.0.0.1', null],
  ['https://ilinkai.weixin.qq.com', '127.0.0.1', null],
])('at %s a move to %s leads to %s', (baseUrl, named, url) => {
  expect(trustedUrl(named, { baseUrl, more: ['more.example'] })).toBe(url)
})
