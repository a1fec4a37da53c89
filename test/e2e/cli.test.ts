import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { HUB_SETTINGS } from '../../src/hub/config.ts'
import { mistakesAbout, type Program, runCli, temporaryFolder } from '../support/processes.ts'
import { until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// Real processes take their time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const ANY_PORT = '127.0.0.1:0'

/** What a program that ends by itself printed and ended with. */
async function run(args: string[], env: Record<string, string> = {}) {
  const program = runCli(args, { env, cwd: temporaryFolder() })
  const code = await program.ended
  return { code, output: program.output() }
}

/** Waits until the banner has a line that starts with `label`, and gives the rest of it. */
async function bannerLine(program: Program, label: string): Promise<string> {
  const line = () => new RegExp(`^ +${label} +(.*)$`, 'm').exec(program.output())?.[1]
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`it ended: ${program.output()}`)
    return line() !== undefined
  }, 15_000)
  return line() ?? ''
}

interface HubOptions {
  args?: string[]
  env?: Record<string, string>
  dataDir?: string
}

async function startHub({ args = [], env = {}, dataDir = temporaryFolder() }: HubOptions = {}) {
  const given = args.includes('--addr') || 'RELAY_ADDR' in env ? [] : ['--addr', ANY_PORT]
  const hub = runCli(['hub', ...given, '--data-dir', dataDir, '--log-level', 'error', ...args], { env })
  const url = (await bannerLine(hub, 'panel')).replace('/hub/ui', '')
  return { hub, url, dataDir }
}

async function startSim() {
  const sim = runCli(['sim', '--addr', ANY_PORT])
  const token = await bannerLine(sim, 'bot token')
  return { sim, token, url: (await bannerLine(sim, 'bot api')).replace(/\/ilink.*/, '') }
}

async function post(url: string, body: object, token?: string) {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

verifies('cli:help:teaches', async () => {
  const [all, hub, register] = await Promise.all([run(['--help']), run(['hub', '--help']), run(['help', 'register'])])
  expect([all.code, hub.code, register.code]).toEqual([0, 0, 0])
  for (const command of ['hub', 'sim', 'register', 'clients', 'help']) expect(all.output).toMatch(`\n  ${command} `)
  expect(all.output).toContain('switchboard register my-agent')
  const plain = hub.output.replace(/\s+/g, ' ')
  for (const setting of Object.values(HUB_SETTINGS)) {
    expect(plain).toContain(setting.env)
    expect(plain).toContain(setting.help.replace(/\s+/g, ' '))
    if ('flag' in setting) expect(plain).toContain(`${setting.flag} `)
  }
  for (const shown of ['127.0.0.1:8765', '.switchboard', '30000', 'the sim'])
    expect(plain).toContain(`default: ${shown}`)
  expect(register.output).toMatch(/<name>/)
  expect(register.output).toContain('RELAY_ADMIN_TOKEN')
})

verifies('config:errors:all-at-once', async () => {
  const args = ['hub', 'extra', '--addr', 'nowhere', '--poll-hold-ms', 'x', '--frob', '--upstream-url', 'ftp://x']
  const { code, output } = await run(args, { RELAY_ADMIN_TOKEN: ' ', RELAY_MAX_POLLS: '0' })
  expect(code).toBe(2)
  for (const source of [
    '--frob',
    'extra',
    '--addr',
    '--poll-hold-ms',
    '--upstream-url',
    'RELAY_ADMIN_TOKEN',
    'RELAY_MAX_POLLS',
  ])
    expect(mistakesAbout(output, source), source).toHaveLength(1)
  expect(output).toContain('"switchboard hub --help" explains each setting.')
  expect(output).not.toMatch(/\n +at /)
})

verifies('config:secrets:environment-only', 'a secret given as a flag is refused and not shown again', async () => {
  for (const args of [['--admin-token', 's3cr3t'], ['--metrics-token=s3cr3t']]) {
    const { code, output } = await run(['hub', ...args])
    expect(code).toBe(2)
    expect(output).toMatch(/set RELAY_(ADMIN|METRICS)_TOKEN in the environment/)
    expect(output).not.toContain('s3cr3t')
  }
})

test.each([
  [['frob'], /unknown command 'frob'/],
  [[], /Usage: switchboard/],
  [['hub', '--addr'], /--addr <host:port>' argument missing/],
  [['register'], /missing required argument 'name'/],
  [['register', '--lable'], /--lable is not an option/],
  [['register', 'a', 'b'], /b is not an option or argument/],
  [['clients', '--hub', 'nowhere'], /--hub must be an address/],
  [['sim', '--hold-ms', '1'], /--hold-ms must be a whole number/],
])('the mistake in %j is told and ends with 2', async (args, says) => {
  const { code, output } = await run(args)
  expect(output).toMatch(says)
  expect(code).toBe(2)
})

verifies(['cli:banner:addresses', 'config:upstream:sim-beside', 'config:flags:data-dir'], async () => {
  const { hub, url, dataDir } = await startHub()
  expect(await bannerLine(hub, 'clients')).toContain(`${url}/relay/bot/`)
  expect(await bannerLine(hub, 'data')).toBe(dataDir)
  for (const label of ['panel', 'health', 'metrics'])
    expect((await fetch(await bannerLine(hub, label))).status, label).toBe(200)
  expect(readdirSync(dataDir)).toContain('hub.db')
  const upstream = await bannerLine(hub, 'upstream')
  expect(upstream).toMatch(/^none configured, so a simulated messaging service runs at http:\S+$/)
  // What is said at the sim it names comes to a client of the hub.
  const { body: client } = await post(`${url}/hub/register`, { name: 'bot' })
  const said = await post(`${upstream.split(' ').at(-1)}/sim/say`, { user: 'ann', text: 'hello' })
  expect(said.status).toBe(200)
  const { body } = await post(`${url}/relay/bot/getupdates`, {}, client.token)
  expect(body.messages).toMatchObject([{ content: 'hello' }])
})

verifies(['cli:sim:starts', 'config:flags:upstream', 'config:flags:poll-hold'], async () => {
  const sim = await startSim()
  expect(sim.token).toMatch(/^\S{16,}$/)
  expect((await fetch(sim.url)).status).toBe(200)
  expect(sim.sim.output()).toContain(`switchboard hub --upstream-url ${sim.url} --upstream-token ${sim.token}`)
  const args = ['--upstream-url', sim.url, '--upstream-token', sim.token, '--poll-hold-ms', '50']
  const { hub, url } = await startHub({ args })
  expect(await bannerLine(hub, 'upstream')).toBe(sim.url)
  expect(hub.output()).not.toContain(sim.token)
  const { body: client } = await post(`${url}/hub/register`, { name: 'bot' })
  const { body: empty } = await post(`${url}/relay/bot/getupdates`, {}, client.token)
  expect(empty).toMatchObject({ errcode: 0, messages: [] })
  await post(`${sim.url}/sim/say`, { user: 'ann', text: 'hello' })
  let messages: unknown[] = []
  await until(async () => {
    messages = (await post(`${url}/relay/bot/getupdates`, {}, client.token)).body.messages
    return messages.length > 0
  })
  expect(messages).toMatchObject([{ content: 'hello' }])
})

verifies(['config:flags:environment', 'config:flags:win', 'config:flags:addr'], async () => {
  const env = {
    RELAY_ADDR: ANY_PORT,
    RELAY_ADMIN_TOKEN: 'admin',
    RELAY_METRICS_TOKEN: 'figures',
    RELAY_POLL_HOLD_MS: '20',
  }
  const fromEnvironment = await startHub({ env })
  expect((await fetch(`${fromEnvironment.url}/hub/clients`)).status).toBe(401)
  expect((await fetch(`${fromEnvironment.url}/metrics`)).status).toBe(401)
  const { body } = await post(`${fromEnvironment.url}/hub/register`, { name: 'bot' }, 'admin')
  expect((await post(`${fromEnvironment.url}/relay/bot/getupdates`, {}, body.token)).status).toBe(200)
  // The address of the environment is taken by now; the flag is what counts.
  const taken = { RELAY_ADDR: new URL(fromEnvironment.url).host }
  const withFlag = await startHub({ env: taken, args: ['--addr', 'localhost:0'] })
  expect((await fetch(`${withFlag.url}/health`)).status).toBe(200)
})

verifies(['cli:register:token', 'cli:clients:list'], async () => {
  const { url } = await startHub()
  expect((await run(['clients', '--hub', url])).output).toMatch(/No client is registered yet/)
  const { code, output } = await run(['register', 'my agent', '--label', 'Mine', '--hub', `${url}/`])
  expect(code).toBe(0)
  const token = /^ +(vhub_[0-9a-f]{32})$/m.exec(output)?.[1]
  expect(output).toMatch(/my agent is registered. Its token, shown this once/)
  expect((await post(`${url}/relay/bot/getconfig`, {}, token)).status).toBe(200)
  const [json, taken] = await Promise.all([
    run(['register', 'other', '--json'], { RELAY_URL: url }),
    run(['register', 'My Agent', '--hub', url]),
  ])
  expect(JSON.parse(json.output)).toEqual({
    name: 'other',
    label: 'other',
    token: expect.stringMatching(/^vhub_/),
    created_at: expect.stringMatching(/Z$/),
  })
  expect(taken.code).toBe(1)
  expect(taken.output.trim()).toBe('A client named "My Agent" is registered already; choose another name.')

  const [list, listJson] = await Promise.all([run(['clients', '--hub', url]), run(['clients', '--json', '--hub', url])])
  expect(list.code).toBe(0)
  expect(list.output).toMatch(
    /^NAME +STATUS +WAITING +LAST SEEN +LABEL\nmy agent +online +0 +\S+Z +Mine\nother +offline +0 +\S+Z +other\n1 of 2 online\n/,
  )
  const clients = [{ name: 'my agent' }, { name: 'other' }]
  expect(JSON.parse(listJson.output)).toMatchObject({ total: 2, online: 1, clients })
})

test('the commands say what to do when the hub wants a token, is not there, or is something else', async () => {
  const { url } = await startHub({ env: { RELAY_ADMIN_TOKEN: 'right' } })
  const ask = (env: Record<string, string>, at = url) => run(['clients', '--hub', at], env)
  expect((await ask({ RELAY_ADMIN_TOKEN: 'right' })).code).toBe(0)
  expect((await ask({})).output).toContain('set RELAY_ADMIN_TOKEN')
  const wrong = await ask({ RELAY_ADMIN_TOKEN: 'wrong-one' })
  expect([wrong.code, wrong.output.includes('wrong-one')]).toEqual([1, false])
  expect(wrong.output).toContain('check RELAY_ADMIN_TOKEN')
  expect((await ask({}, 'http://127.0.0.1:1')).output).toMatch(
    /^No hub answers at http:\/\/127.0.0.1:1; start one with/,
  )
  const other = createServer((_request, response) => response.end('<html>')).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  const port = typeof address === 'object' ? address?.port : 0
  expect((await ask({}, `http://127.0.0.1:${port}`)).output).toMatch(/is not a hub; name one with --hub/)
})

test('a hub on a port or on data that another has is refused, and the other goes on', async () => {
  const { url, dataDir } = await startHub()
  const { host } = new URL(url)
  const start = (addr: string, data: string) => run(['hub', '--addr', addr, '--data-dir', data, '--log-level', 'error'])
  const [samePort, sameData] = await Promise.all([start(host, temporaryFolder()), start(ANY_PORT, dataDir)])
  expect([samePort.code, sameData.code]).toEqual([1, 1])
  expect(samePort.output.trim()).toBe(`${host} is taken by another program; choose another with --addr.`)
  expect(sameData.output.trim().replace(/process \d+/, 'process N')).toBe(
    `The data directory ${dataDir} is in use by another hub (process N); stop it or choose another with --data-dir.`,
  )
  expect((await post(`${url}/hub/register`, { name: 'bot' })).status).toBe(201)
})

verifies(
  ['store:files:default', 'config:flags:defaults'],
  'without --data-dir the data is in .switchboard',
  async () => {
    const cwd = temporaryFolder()
    const hub = runCli(['hub', '--addr', ANY_PORT, '--log-level', 'error'], { cwd })
    expect(await bannerLine(hub, 'data')).toBe(join(cwd, '.switchboard'))
    expect(existsSync(join(cwd, '.switchboard', 'hub.db'))).toBe(true)
  },
)

test('SIGTERM ends a hub with a poll open in less than ten seconds', async () => {
  const { hub, url } = await startHub()
  const { body: client } = await post(`${url}/hub/register`, { name: 'bot' })
  const poll = post(`${url}/relay/bot/getupdates`, {}, client.token)
  await until(async () => (await (await fetch(`${url}/metrics`)).text()).includes('parked_polls 1'))
  const startedAt = performance.now()
  hub.child.kill('SIGTERM')
  expect((await poll).body).toMatchObject({ errcode: 0, messages: [] })
  expect(await hub.ended).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(10_000)
})

verifies('auth:open:banner', async () => {
  const everywhere = { args: ['--addr', '0.0.0.0:0'] }
  const [open, insecure, closed] = await Promise.all([
    startHub(everywhere),
    startHub({ args: [...everywhere.args, '--insecure'] }),
    startHub({ ...everywhere, env: { RELAY_ADMIN_TOKEN: 'a-secret' } }),
  ])
  expect(await bannerLine(open.hub, 'admin')).toBe(
    'open to this machine only; set RELAY_ADMIN_TOKEN to reach it from elsewhere',
  )
  expect(await bannerLine(insecure.hub, 'admin')).toBe('OPEN TO EVERY CALLER (--insecure)')
  expect(await bannerLine(closed.hub, 'admin')).toBe('needs RELAY_ADMIN_TOKEN')
  expect(closed.hub.output()).not.toContain('a-secret')
  for (const { hub, url } of [open, insecure, closed]) {
    expect(await bannerLine(hub, 'listens')).toMatch(/^on every address of this machine, port \d+$/)
    expect((await fetch(`${url}/health`)).status).toBe(200)
  }
})
