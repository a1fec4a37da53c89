import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../support/processes.ts'
import { startTestHub, type TestHub, until } from '../../support/test-hub.ts'
import { verifies } from '../../support/verifies.ts'

const WAIT_MS = 60_000
const TEST_MS = 120_000

const ECHO = `
import { WeixinBot } from 'weixin-bot-sdk'
const bot = new WeixinBot({ baseUrl: process.argv[1], credentialsPath: process.argv[2] })
bot.on('message', (message) => bot.reply(message, 'echo: ' + message.text))
await bot.login({ onQrCode: (url) => console.log('SCAN ' + url) })
bot.start()
console.log('READY')`

verifies(
  'pairing:clients:weixin-bot-sdk',
  async () => {
    const hub = await startTestHub()
    const file = join(temporaryFolder(), 'credentials.json')
    const client = run(['--input-type=module', '-e', ECHO, hub.url, file])
    await approveShown(hub, client.output)
    await until(() => client.output().includes('READY'), WAIT_MS)
    const saved = JSON.parse(readFileSync(file, 'utf8'))
    expect(saved).toMatchObject({ botToken: expect.stringMatching(/^vhub_/), baseUrl: hub.url })
    await until(async () => (await hub.call('GET', '/hub/clients')).body.online === 1, WAIT_MS)
    await hub.say('ann', 'hello')
    expect(await hub.answers('ann', 1)).toEqual(['echo: hello'])
  },
  TEST_MS,
)

verifies(
  'pairing:clients:weixin-clawbot',
  async () => {
    const hub = await startTestHub()
    const cli = fileURLToPath(new URL('../../../node_modules/weixin-clawbot/dist/cli.js', import.meta.url))
    const client = run([cli, '--auth'], { WEIXIN_CLAWBOT_BASE_URL: hub.url })
    await approveShown(hub, client.output)
    expect(await client.ended).toBe(0)
    const token = /WEIXIN_CLAWBOT_TOKEN="(vhub_[0-9a-f]+)"/.exec(client.output())?.[1] ?? ''
    expect(client.output()).toContain(`WEIXIN_CLAWBOT_BASE_URL="${hub.url}"`)
    expect((await hub.poll(token)).status).toBe(200)
  },
  TEST_MS,
)

/** Waits for the page a client shows, and lets it in. */
async function approveShown(hub: TestHub, output: () => string): Promise<void> {
  await until(() => /\/hub\/pair\/\w+/.test(output()), WAIT_MS)
  const id = /\/hub\/pair\/(\w+)/.exec(output())?.[1]
  const { status } = await hub.call('POST', `/hub/pairings/${id}/approve`, { body: { name: 'published' } })
  expect(status).toBe(200)
}

function run(args: string[], env: Record<string, string> = {}) {
  const cwd = fileURLToPath(new URL('../../..', import.meta.url))
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      printed += String(chunk)
    })
  const ended = once(child, 'exit').then(([code]) => code)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { output: () => printed, ended }
}
