import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { AGENT_SETTINGS } from '../../src/agent/config.ts'
import { mistakesAbout, type Program, runCli, temporaryFolder } from '../support/processes.ts'
import { until } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

// Real processes take their time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

async function run(args: string[], env: Record<string, string> = {}) {
  const program = runCli(args, { env, cwd: temporaryFolder() })
  return { code: await program.ended, output: program.output() }
}

/** The rest of the banner's line that starts with `label`. */
async function bannerLine(program: Program, label: string): Promise<string> {
  const line = () => new RegExp(`^ +${label} +(.*)$`, 'm').exec(program.output())?.[1]
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`it ended: ${program.output()}`)
    return line() !== undefined
  }, 15_000)
  return line() ?? ''
}

verifies(
  ['agent:start:address', 'agent:start:workspace', 'agent:start:keys'],
  'agent --help tells every setting with its default',
  async () => {
    const { code, output } = await run(['agent', '--help'])
    expect(code).toBe(0)
    const plain = output.replace(/\s+/g, ' ')
    for (const { flag, env, help } of Object.values(AGENT_SETTINGS))
      for (const said of [flag, env, help]) expect(plain).toContain(said)
    for (const shown of ['127.0.0.1:3000', 'the current folder', 'none: open to this machine only'])
      expect(plain).toContain(`default: ${shown}`)
  },
)

test('all mistakes are told at once, and end with 2', async () => {
  const args = ['agent', 'extra', '--addr', 'nowhere', '--max-runs', '0', '--frob', '--auth-keys', '']
  const { code, output } = await run(args, { AGENT_WALL_CLOCK_MS: 'x', AGENT_LOG_LEVEL: 'loud' })
  expect(code).toBe(2)
  for (const source of [
    'extra',
    '--frob',
    '--addr',
    '--max-runs',
    '--auth-keys',
    'AGENT_WALL_CLOCK_MS',
    'AGENT_LOG_LEVEL',
  ])
    expect(mistakesAbout(output, source), source).toHaveLength(1)
  expect(output).not.toMatch(/\n +at /)
})

for (const [args, env] of [
  [['--auth-keys', ''], {}],
  [['--auth-keys', ' , '], {}],
  [['--auth-keys='], {}],
  [[], { AGENT_AUTH_KEYS: '' }],
] satisfies [string[], Record<string, string>][])
  verifies(
    'agent:auth:empty-list',
    `keys that are none (${args} ${Object.keys(env)}) are a mistake and no open server`,
    async () => {
      const { code, output } = await run(['agent', '--addr', '127.0.0.1:0', ...args], env)
      expect(code).toBe(2)
      expect(output).toMatch(/(--auth-keys|AGENT_AUTH_KEYS) is set but holds no key/)
    },
  )

verifies(
  'config:errors:all-at-once',
  'a model that nobody has, or whose key is missing, is among the mistakes',
  async () => {
    for (const [args, env, source, says] of [
      [['agent', '--model', 'zz', '--max-runs', '0'], {}, '--model', /no provider "zz"/],
      [['agent', '--max-runs', '0'], { AGENT_MODEL: 'openai:x' }, 'AGENT_MODEL', /OPENAI_API_KEY/],
      [['up', '--model', 'openai:x', '--log-level', 'loud'], {}, '--model', /OPENAI_API_KEY/],
    ] satisfies [string[], Record<string, string>, string, RegExp][]) {
      const { code, output } = await run(args, { OPENAI_API_KEY: '', OPENAI_BASE_URL: '', ...env })
      expect(code, output).toBe(2)
      expect(mistakesAbout(output, source)).toEqual([expect.stringMatching(says)])
      expect(output.match(/^ {2}- /gm)).toHaveLength(2)
      expect(output).not.toMatch(/\n +at /)
    }
  },
)

verifies('agent:start:workspace', 'a workspace that is not there is made', async () => {
  const folder = temporaryFolder()
  const program = runCli(['agent', '--addr', '127.0.0.1:0', '--workspace', './deep/work'], { cwd: folder })
  expect(await bannerLine(program, 'workspace')).toBe(join(realpathSync(folder), 'deep', 'work'))
  expect(statSync(join(folder, 'deep', 'work')).isDirectory()).toBe(true)
  expect(program.output()).toContain('has been made')
})

test.each([
  [['--workspace', '/etc/passwd/work'], /lies below a file.*--workspace/],
  [['--workspace', '/etc/passwd'], /is a file.*--workspace/],
  [['--mcp-config', '/no/such/file'], /--mcp-config/],
])('what cannot work (%j) is told in a sentence, without a stack', async (args, says) => {
  const { code, output } = await run(['agent', '--addr', '127.0.0.1:0', ...args])
  expect(code).not.toBe(0)
  expect(output).toMatch(says)
  expect(output).not.toMatch(/\n +at /)
})

verifies(
  ['agent:model:told', 'agent:auth:banner'],
  'the banner says where it is, who answers and who may call; SIGTERM ends it with 0',
  async () => {
    const folder = temporaryFolder()
    const args = ['agent', '--addr', '127.0.0.1:0', '--log-level', 'error']
    const program = runCli(args, { cwd: folder, env: { AGENT_AUTH_KEYS: 'secret-key' } })
    const url = await bannerLine(program, 'api')
    expect(await bannerLine(program, 'model')).toMatch(/^demo/)
    expect(await bannerLine(program, 'workspace')).toContain(folder.split('/').at(-1))
    expect(await bannerLine(program, 'access')).toContain('X-API-Key')
    expect(program.output()).not.toContain('secret-key')
    expect(await (await fetch(`${url}/health`)).text()).toBe('ok')

    const headers = { 'x-api-key': 'secret-key' }
    const body = JSON.stringify({ message: 'run: sleep 1000' })
    const { session_id: id } = JSON.parse(await (await fetch(`${url}/sessions`, { method: 'POST', headers })).text())
    const stream = await fetch(`${url}/sessions/${id}/run`, { method: 'POST', headers, body })
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
    expect(await stream.text()).toContain('event: done')
  },
)

test('a port that is taken is told', async () => {
  const first = runCli(['agent', '--addr', '127.0.0.1:0'], { cwd: temporaryFolder() })
  const url = await bannerLine(first, 'api')
  const { code, output } = await run(['agent', '--addr', new URL(url).host])
  expect(code).toBe(1)
  expect(output).toContain('is taken by another program')
})

verifies('agent:auth:banner', 'an open server on every address says that it is open to this machine only', async () => {
  const program = runCli(['agent', '--addr', '0.0.0.0:0', '--workspace', temporaryFolder()])
  expect(await bannerLine(program, 'access')).toContain('this machine only')
  const url = await bannerLine(program, 'api')
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/)
  expect(await bannerLine(program, 'listens')).toContain('every address')
  expect(await (await fetch(`${url}/health`)).text()).toBe('ok')
})
