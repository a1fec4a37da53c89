import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { freePort, runCli, temporaryFolder } from '../support/processes.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { startTestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 90_000 })

/** What a command that ends by itself printed and ended with. */
async function run(args: string[], options: { env?: Record<string, string>; input?: string; cwd?: string } = {}) {
  const program = runCli(args, { cwd: temporaryFolder(), ...options })
  const code = await program.ended
  return { code, output: program.output() }
}

verifies('cli:rotate:token', async () => {
  const hub = await startTestHub()
  const old = await hub.register('bot')
  const { code, output } = await run(['rotate', 'bot', '--hub', hub.url])
  expect(code).toBe(0)
  const token = /^ +(vhub_[0-9a-f]{32})$/m.exec(output)?.[1]
  expect((await hub.call('POST', '/relay/bot/getconfig', { token: old, body: {} })).status).toBe(401)
  expect((await hub.call('POST', '/relay/bot/getconfig', { token, body: {} })).status).toBe(200)
  expect((await run(['rotate', 'nobody', '--hub', hub.url])).output).toMatch(/There is no client named "nobody"/)
  expect((await run(['remove', 'bot', '--hub', hub.url])).output.trim()).toBe('bot is deleted.')
  expect((await hub.call('GET', '/hub/clients/bot')).status).toBe(404)
})

verifies(['cli:messages:why', 'cli:letters:replay'], async () => {
  const hub = await startTestHub()
  await hub.say('ann', 'is anybody\u001b[31m there')
  const { output } = await run(['messages', '--hub', hub.url])
  expect(output).toMatch(
    /ID +WHEN +FROM +STATE +WHY +WENT TO +TEXT\n1 +\S+Z +ann@im.wechat +unrouted +nobody +- +is anybody \[31m there\n/,
  )
  const listed = await run(['dead-letters', '--hub', hub.url])
  expect(listed.output).toMatch(/\n1 +\S+Z +- +no_client +ann@im.wechat +is anybody/)
  const nowhere = await run(['dead-letters', 'replay', '1', '--hub', hub.url])
  expect([nowhere.code, nowhere.output]).toEqual([
    1,
    expect.stringMatching(/Replayed: 0\.\n1: .*name a registered client/),
  ])
  const token = await hub.register('bot')
  const replayed = await run(['dead-letters', 'replay', '--all', '--client', 'bot', '--hub', hub.url])
  expect([replayed.code, replayed.output.trim()]).toEqual([0, 'Replayed: 1.'])
  expect((await hub.poll(token)).body.messages).toHaveLength(1)
  await hub.call('DELETE', '/hub/clients/bot')
  await hub.say('ann', 'again')
  const discarded = await run(['dead-letters', 'discard', '--all', '--json', '--hub', hub.url])
  expect(JSON.parse(discarded.output).discarded.length).toBeGreaterThan(0)
  expect((await run(['dead-letters', '--hub', hub.url])).output.trim()).toBe('There are no dead letters.')
  const none = await run(['dead-letters', 'discard', '--all', '--json', '--hub', hub.url])
  expect([none.code, JSON.parse(none.output)]).toEqual([0, { discarded: [] }])
  const unknown = await run(['dead-letters', 'replay', '99', '--hub', hub.url])
  expect([unknown.code, unknown.output]).toEqual([1, expect.stringContaining('99: There is no such dead letter.')])
})

test.each([
  [['dead-letters', 'burn'], /burn is none of list, replay and discard/],
  [['dead-letters', 'replay'], /say which letters to replay: their ids, or --all/],
  [['dead-letters', 'replay', 'x'], /x is not the id of a letter/],
  [['dead-letters', 'discard', '1', '--all'], /give ids or --all, not both/],
  [['completion', 'tcsh'], /tcsh is none of bash, zsh, fish/],
  [['rotate', 'a', '--overlap', '-1'], /--overlap/],
])('the mistake in %j is told and ends with 2', async (args, says) => {
  const { code, output } = await run(args)
  expect(output).toMatch(says)
  expect(code).toBe(2)
})

verifies(['cli:status:glance', 'cli:json:everywhere'], async () => {
  const hub = await startTestHub()
  const agent = await startTestAgent()
  await hub.register('bot')
  const both = { RELAY_URL: hub.url, AGENT_URL: agent.url }
  const well = await run(['status'], { env: both })
  expect(well.code).toBe(0)
  expect(well.output).toMatch(
    /^hub +ok at .*\nclients +0 of 1 online, 0 waiting\ndead letters 0\nagent +ok at .*, model demo\n$/,
  )
  const gone = await run(['status'], { env: { ...both, AGENT_URL: 'http://127.0.0.1:1' } })
  expect([gone.code, gone.output]).toEqual([1, expect.stringMatching(/^agent +No agent server answers at/m)])
  await hub.say('ann', 'hello')
  for (const args of [
    ['status'],
    ['clients'],
    ['messages'],
    ['dead-letters'],
    ['register', 'two'],
    ['rotate', 'two'],
    ['remove', 'two'],
    ['doctor'],
  ]) {
    const { output } = await run([...args, '--json'], { env: both })
    expect(() => JSON.parse(output), args.join(' ')).not.toThrow()
  }
  const events = await run(['chat', '--json', 'list files'], { env: both })
  const names = events.output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).event)
  expect(names.filter((name) => name !== 'partial_message')).toEqual(['tool_call', 'tool_result', 'message', 'done'])
})

verifies('cli:doctor:advice', async () => {
  const [hub, agentAt, sim] = [await freePort(), await freePort(), await freePort()].map((port) => `127.0.0.1:${port}`)
  const agent = await startTestAgent()
  const folder = temporaryFolder()
  const file = join(folder, 'a-file')
  writeFileSync(file, '')
  const fine = await run(['doctor', `--hub-addr=${hub}`, `--agent-addr=${agentAt}`, `--sim-addr=${sim}`])
  expect(fine.output).toContain('"switchboard up" will work here.')
  expect(fine.code).toBe(0)
  for (const check of [
    'node',
    'hub port',
    'agent port',
    'sim port',
    'data directory',
    'upstream',
    'model',
    'bubblewrap',
  ])
    expect(fine.output).toMatch(new RegExp(`^[✓!] ${check} `, 'm'))
  // The agent's own port is no problem for the agent, but it is for the hub.
  const running = ['--agent-addr', new URL(agent.url).host]
  const ill = await run([
    'doctor',
    '--hub-addr',
    new URL(agent.url).host,
    ...running,
    '--data-dir',
    join(file, 'x'),
    '--upstream-url',
    'http://127.0.0.1:1',
    '--upstream-token',
    't',
    '--model',
    'nobody:knows',
  ])
  expect(ill.code).toBe(1)
  expect(ill.output).toMatch(
    /✗ hub port .* is taken by another program\n +Stop that program, or choose another address with --hub-addr\./,
  )
  expect(ill.output).toMatch(/✓ agent port .* answers: it is running/)
  expect(ill.output).toMatch(/✗ data directory .* cannot be used.*\n +Make it writable/)
  expect(ill.output).toMatch(/✗ upstream +http:\/\/127.0.0.1:1 does not answer\n +Check RELAY_UPSTREAM_URL/)
  expect(ill.output).toMatch(/✗ model +There is no provider "nobody"/)
  // Where the mode allows it and the system does not.
  const nowhere = await run(['doctor', '--data-dir', '/proc/nowhere'])
  expect([nowhere.code, nowhere.output]).toEqual([
    1,
    expect.stringMatching(/✗ data directory +\/proc\/nowhere cannot be/),
  ])
})

test('a word that a filter does not know is a mistake of use', async () => {
  for (const [command, flag] of [
    ['messages', '--state'],
    ['dead-letters', '--reason'],
  ] as const) {
    const { code, output } = await run([command, flag, 'zz'])
    expect([code, output]).toEqual([2, expect.stringContaining(`${flag} must be one of `)])
  }
})

verifies(['cli:chat:streams', 'cli:chat:plan', 'cli:chat:resume'], async () => {
  const agent = await startTestAgent()
  const env = { AGENT_URL: agent.url }
  const one = await run(['chat', 'write hello.txt: hi'], { env })
  expect(one.code).toBe(0)
  expect(one.output).toBe(
    '· write_file hello.txt hi\n  ✓ Made hello.txt (2 bytes).\nwrite_file is done. It says: Made hello.txt (2 bytes).\n',
  )
  const piped = await run(['chat', '--last'], {
    env,
    input: 'list files\n\nplan: tidy up\napprove: rest instead\n/new\nplan: more\n',
  })
  expect(piped.output).toMatch(/^· list_dir \.\n {2}✓ hello\.txt\nThere is 1 entry/)
  expect(piped.output).toMatch(
    /A plan:\ntidy up\n.*approve: <the plan as you want it>.*\n[\s\S]*approved with changes[\s\S]*rest instead/,
  )
  // Nobody is left to decide the last one.
  expect(piped.output).toMatch(/A new session: \S+\n[\s\S]*Nobody is there to decide/)
  const { body: sessions } = await agent.call('GET', '/sessions')
  expect(sessions).toHaveLength(2)
  const named = await run(['chat', '--session', sessions[1].session_id, 'read hello.txt'], { env })
  expect(named.output).toContain('It reads: ')
  const { body } = await agent.call('GET', `/sessions/${sessions[1].session_id}`)
  expect(body.turn_count).toBe(4)
  const nowhere = await run(['chat', '--session', 'nothing', 'hello'], { env })
  expect([nowhere.code, nowhere.output]).toEqual([1, expect.stringMatching(/^There is no session nothing/)])
  expect((await run(['chat', 'hello'], { env: { AGENT_URL: 'http://127.0.0.1:1' } })).output).toMatch(
    /^No agent server answers at/,
  )
})

verifies('cli:chat:model', async () => {
  const agent = await startTestAgent()
  const input = '/model zz\nlist files\n/model openai:x\n/model demo\nlist files\n/model\n'
  const { code, output } = await run(['chat'], { env: { AGENT_URL: agent.url }, input })
  expect(output).toMatch(/^There is no provider "zz".*The model stays as it was\.\n· list_dir/)
  expect(output).toMatch(/OPENAI_API_KEY.*The model stays as it was\.\ndemo answers from now on\.\n· list_dir/)
  expect(output).toContain("The agent's own model answers.")
  expect(code).toBe(0)
  expect((await agent.call('GET', '/sessions')).body).toHaveLength(1)
})

verifies('cli:chat:key', async () => {
  const agent = await startTestAgent({ authKeys: ['right'] })
  const talk = (args: string[], env: Record<string, string> = {}) =>
    run(['chat', ...args, 'hello'], { env: { AGENT_URL: agent.url, ...env } })
  for (const args of [[], ['--last'], ['--session', crypto.randomUUID()]]) {
    const missing = await talk(args)
    expect([missing.code, missing.output]).toEqual([
      1,
      expect.stringMatching(/^The agent server wants a key; set AGENT_KEY /),
    ])
  }
  expect((await talk([], { AGENT_KEY: 'wrong' })).output).toMatch(
    /^The agent server does not accept the key in AGENT_KEY/,
  )
  expect((await talk([], { AGENT_KEY: 'right' })).code).toBe(0)
})

verifies('cli:chat:interrupt', async () => {
  const script = {
    turns: [{ match: 'slow', steps: [{ text: 'I begin.' }, { stall: 'forever' as const }] }],
    after: 'Quick.',
  }
  const agent = await startTestAgent({ script })
  const program = runCli(['chat'], { env: { AGENT_URL: agent.url }, input: 'slow\nfast\n' })
  await vi.waitFor(() => expect(program.output()).toContain('I begin.'), { timeout: 30_000 })
  program.child.kill('SIGINT')
  expect(await program.ended).toBe(0)
  expect(program.output()).toMatch(/^I begin\.\nstopping the run…\n(?:.*\n)*\(Cancelled\)\nQuick\.\n$/)
})

test('a session that waits for a plan is gone on with', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const { events_url: path } = await agent.run(id, 'plan: tidy up')
  const reader = await agent.events(path)
  await reader.until('plan_proposed')
  reader.close()
  const { output } = await run(['chat', '--session', id], { env: { AGENT_URL: agent.url }, input: 'reject: not now\n' })
  expect(output).toMatch(/A plan of this session waits for your word\.\nA plan:\ntidy up\n[\s\S]*not now/)
})

verifies('cli:completion:shells', async () => {
  const [bash, zsh, fish] = await Promise.all(['bash', 'zsh', 'fish'].map((shell) => run(['completion', shell])))
  for (const script of [bash, zsh, fish]) {
    expect(script?.code).toBe(0)
    for (const word of ['dead-letters', 'doctor', 'hub-addr']) expect(script?.output).toContain(word)
  }
  const ask = (line: string) => {
    const words = line.split(' ')
    const given = words.map((word) => `'${word}'`).join(' ')
    const test = `${bash?.output}\nCOMP_WORDS=(${given}); COMP_CWORD=${words.length - 1}; _switchboard; echo "\${COMPREPLY[@]}"`
    return spawnSync('bash', ['-c', test], { encoding: 'utf8' }).stdout.trim()
  }
  expect(ask('switchboard do')).toBe('doctor')
  expect(ask('switchboard register --la')).toBe('--label')
})
