import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { freePort, runCli, temporaryFolder } from '../support/processes.ts'
import { ANY_PORTS, answerTo, ask, startUp } from '../support/running-up.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 120_000 })

verifies(
  ['up:start:everything', 'up:start:one-directory', 'up:start:banner', 'up:start:fallback', 'up:stop:clean'],
  async () => {
    const cwd = temporaryFolder()
    const first = await startUp(ANY_PORTS, cwd)
    expect(first.line('model')).toMatch(/^demo /)
    expect((await fetch(first.line('panel'))).status).toBe(200)
    expect((await fetch(`${first.agent}/health`)).status).toBe(200)
    expect(await answerTo(first.sim, 'ann', 'write hello.txt: hi')).toMatch(/Made hello.txt/)
    const client = await ask(`${first.hub}/hub/clients/agent`)
    expect(client).toMatchObject({ status: 'online', fallback: true })
    const data = join(cwd, '.switchboard')
    expect(first.line('data')).toBe(data)
    expect(readdirSync(data)).toEqual(expect.arrayContaining(['agent', 'bridge', 'hub', 'workspace']))
    expect(readdirSync(join(data, 'workspace'))).toEqual(['hello.txt'])
    expect(statSync(data).mode & 0o777).toBe(0o700)
    expect(statSync(join(data, 'bridge', 'token.json')).mode & 0o777).toBe(0o600)
    expect(first.program.output()).not.toContain(
      JSON.parse(readFileSync(join(data, 'bridge', 'token.json'), 'utf8')).token,
    )

    first.program.child.kill('SIGINT')
    expect(await first.program.ended).toBe(0)
    const second = await startUp(ANY_PORTS, cwd)
    expect(await answerTo(second.sim, 'ann', 'list files')).toBe('There is 1 entry here: hello.txt.')
    expect(await ask(`${second.agent}/sessions`)).toMatchObject([{ title: 'ann@im.wechat', turn_count: 2 }])
    // A token that was rotated away is taken back at the next start: the hub is its own.
    await ask(`${second.hub}/hub/clients/agent/rotate`, {})
    await second.program.kill('SIGTERM')
    const third = await startUp(ANY_PORTS, cwd)
    expect(await answerTo(third.sim, 'bob', 'hello')).toMatch(/demo model/)
  },
)

verifies('up:start:backlog', async () => {
  const simUrl = await startSim()
  await ask(`${simUrl}/sim/say`, { user: 'ann', text: 'hello' })
  const up = await startUp(ANY_PORTS, temporaryFolder(), {
    RELAY_UPSTREAM_URL: simUrl,
    RELAY_UPSTREAM_TOKEN: 'bot@im.bot:t',
  })
  const texts = await vi.waitFor(
    async () => {
      const { messages } = await ask(`${simUrl}/sim/conversation?user=ann`)
      expect(messages.length).toBeGreaterThan(1)
      return messages.slice(1).map(({ text }: { text: string }) => text)
    },
    { timeout: 30_000 },
  )
  expect(texts).toEqual([expect.stringMatching(/^This is the demo model/)])
  expect(await ask(`${up.hub}/hub/dead-letters`)).toMatchObject({ total: 0 })
})

verifies('up:config:real', async () => {
  const cwd = temporaryFolder()
  const simUrl = await startSim()
  const up = await startUp([...ANY_PORTS, '--model', 'openai-compatible:some-model'], cwd, {
    RELAY_UPSTREAM_URL: simUrl,
    RELAY_UPSTREAM_TOKEN: 'bot@im.bot:t',
    OPENAI_COMPATIBLE_BASE_URL: 'http://127.0.0.1:1/v1',
    RELAY_ADMIN_TOKEN: 'an-admin-token',
    AGENT_AUTH_KEYS: 'a-key',
  })
  expect(up.line('upstream')).toBe(simUrl)
  expect(up.line('model')).toBe('openai-compatible:some-model')
  expect((await fetch(`${up.hub}/hub/clients`)).status).toBe(401)
  expect((await fetch(`${up.agent}/sessions`)).status).toBe(401)
  await ask(`${simUrl}/sim/say`, { user: 'ann', text: '/model demo' })
  await ask(`${simUrl}/sim/say`, { user: 'ann', text: 'hello' })
  await vi.waitFor(
    async () => {
      const { messages } = await ask(`${simUrl}/sim/conversation?user=ann`)
      expect(messages.at(-1).text).toMatch(/demo model, which knows/)
    },
    { timeout: 30_000 },
  )
  expect(up.program.output()).not.toMatch(/an-admin-token|a-key|bot@im.bot:t/)
})

verifies('up:config:port-taken', async () => {
  const other = createServer((_request, response) => response.end('me')).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  const port = typeof address === 'object' ? address?.port : 0
  const free = await freePort()
  for (const flags of [
    ['--hub-addr', `127.0.0.1:${port}`, '--agent-addr', '127.0.0.1:0', '--sim-addr', '127.0.0.1:0'],
    ['--hub-addr', `127.0.0.1:${free}`, '--agent-addr', `127.0.0.1:${port}`, '--sim-addr', '127.0.0.1:0'],
    ['--hub-addr', '127.0.0.1:0', '--agent-addr', '127.0.0.1:0', '--sim-addr', `127.0.0.1:${port}`],
  ]) {
    const program = runCli(['up', ...flags], { cwd: temporaryFolder() })
    expect(await program.ended).toBe(1)
    expect(program.output().trim()).toBe(
      `127.0.0.1:${port} is taken by another program. Is Switchboard running already? Stop it, or choose other addresses with --hub-addr, --agent-addr and --sim-addr.`,
    )
  }
  const wrong = runCli(['up', '--hub-addr', 'nowhere', '--log-level', 'loud'], { cwd: temporaryFolder() })
  expect(await wrong.ended).toBe(2)
  expect(wrong.output().match(/^ {2}- .*/gm)).toEqual([
    expect.stringMatching(/^ {2}- --hub-addr must be host:port/),
    expect.stringMatching(/^ {2}- --log-level must be one of/),
  ])
})

/** A sim of its own, whose bot has the token `bot@im.bot:t`. */
function startSim(): Promise<string> {
  const sim = runCli(['sim', '--addr', '127.0.0.1:0', '--bot-token', 'bot@im.bot:t'])
  return vi.waitFor(
    () => {
      const url = /bot api +(http:\S+?)\/ilink/.exec(sim.output())?.[1]
      expect(url).toBeDefined()
      return String(url)
    },
    { timeout: 30_000 },
  )
}
