import { expect, test } from 'vitest'
import { PASTE_TARGETS, pastesFor } from '../../src/client/paste.ts'
import { freePort, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

verifies(
  'login:cli:terminal',
  async () => {
    const [simPort, hubPort] = [await freePort(), await freePort()]
    const [simUrl, hubUrl] = [`http://127.0.0.1:${simPort}`, `http://127.0.0.1:${hubPort}`]
    const dataDir = temporaryFolder()
    const sim = runCli(['sim', '--addr', `127.0.0.1:${simPort}`])
    await untilAnswers(`${simUrl}/sim/state`, sim)
    const start = () =>
      runCli(['hub', '--addr', `127.0.0.1:${hubPort}`, '--data-dir', dataDir, '--upstream-url', simUrl])
    const hub = start()
    await untilAnswers(`${hubUrl}/ready`, hub)
    const login = runCli(['login', '--hub', hubUrl])
    await until(() => login.output().includes('/sim/qr?qrcode='), 30_000)
    // Drawn with the blocks of a terminal.
    expect(login.output()).toMatch(/[█▀▄]{10}/)
    const qrcode = /qrcode=([0-9a-f]+)/.exec(login.output())?.[1]
    await fetch(`${simUrl}/sim/qr/scan`, { method: 'POST', body: JSON.stringify({ qrcode, as: 'olga' }) })
    expect(await login.ended).toBe(0)
    expect(login.output()).toContain('Account main is logged in.')
    // The login is still there after a restart.
    await hub.kill('SIGTERM')
    const again = start()
    await untilAnswers(`${hubUrl}/ready`, again)
    await until(async () => (await (await fetch(`${hubUrl}/health`)).text()).includes('"ok"'), 30_000)
    const upstream: unknown = await (await fetch(`${hubUrl}/hub/upstream`)).json()
    expect(upstream).toMatchObject({ accounts: [{ account: 'main', user_id: 'olga@im.wechat' }] })
    expect(hub.output() + again.output()).not.toMatch(/im\.bot:[0-9a-f]/)

    // With another key it does not start, says so, and destroys nothing.
    await again.kill('SIGTERM')
    const args = ['hub', '--addr', `127.0.0.1:${hubPort}`, '--data-dir', dataDir, '--upstream-url', simUrl]
    const locked = runCli(args, { env: { RELAY_CREDENTIALS_KEY: 'ab'.repeat(32) } })
    expect(await locked.ended).toBe(1)
    expect(locked.output()).toContain('does not open with this key')
    const last = start()
    await untilAnswers(`${hubUrl}/ready`, last)
  },
  120_000,
)

test('without a hub the command says how to start one', async () => {
  const login = runCli(['login', '--hub', `http://127.0.0.1:${await freePort()}`])
  expect(await login.ended).toBe(1)
  expect(login.output()).toContain('switchboard hub')
}, 60_000)

verifies('register:for:formats', () => {
  const input = { name: 'helper', token: 'vhub_00', url: 'http://hub.example:8765', now: 0 }
  const [sdk] = pastesFor('weixin-bot-sdk', input)
  expect(JSON.parse(sdk?.text ?? '')).toMatchObject({ botToken: 'vhub_00', baseUrl: 'http://hub.example:8765' })
  const [clawbot] = pastesFor('weixin-clawbot', input)
  expect(clawbot?.text).toBe("WEIXIN_CLAWBOT_TOKEN='vhub_00'\nWEIXIN_CLAWBOT_BASE_URL='http://hub.example:8765'")
  const [account, index] = pastesFor('openclaw', input)
  const id = /openclaw-weixin\/accounts\/([0-9a-f]{12}-im-bot)\.json$/.exec(account?.file ?? '')?.[1]
  expect(JSON.parse(account?.text ?? '')).toMatchObject({ token: 'vhub_00', baseUrl: 'http://hub.example:8765' })
  expect(JSON.parse(index?.text ?? '')).toEqual([id])
  for (const target of PASTE_TARGETS)
    expect(pastesFor(target, input).some(({ text }) => text.includes('vhub_00'))).toBe(true)
})
