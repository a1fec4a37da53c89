import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { silentLog } from '../../src/kit/log.ts'
import { freePort } from '../support/processes.ts'
import { soon } from '../support/soon.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { startTestBridge, type TestBridge } from '../support/test-bridge.ts'
import { startTestHub } from '../support/test-hub.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Waits until the user has seen `count` messages of the bot; gives them. */
async function heard({ seen }: TestBridge, user: string, count: number): Promise<string[]> {
  await soon(async () => expect((await seen(user)).length).toBeGreaterThanOrEqual(count))
  return seen(user)
}

verifies('bridge:answer:split', async () => {
  const words = Array.from({ length: 900 }, (_, index) => `word${index}`).join(' ')
  const bridge = await startTestBridge({ agentOptions: { script: { turns: [], after: words } } })
  bridge.say('ann', 'much')
  const pieces = await heard(bridge, 'ann', 4)
  expect(pieces.every((piece) => piece.length <= 2_000)).toBe(true)
  expect(pieces.join(' ')).toBe(words)
})

verifies('bridge:tools:one-line', async () => {
  const hub = await startTestHub()
  const agent = await startTestAgent()
  const telling = await startTestBridge({ hub, agent, name: 'telling', showTools: true })
  const quiet = await startTestBridge({ hub, agent, name: 'quiet' })
  telling.say('ann', '@telling list files')
  expect(await heard(telling, 'ann', 2)).toEqual(['· list_dir .', 'The folder is empty.'])
  quiet.say('bob', '@quiet list files')
  expect(await heard(quiet, 'bob', 1)).toEqual(['The folder is empty.'])
})

verifies('bridge:several:agents', async () => {
  const hub = await startTestHub()
  const say = (text: string) => ({ agentOptions: { script: { turns: [], after: text } } })
  const one = await startTestBridge({ hub, name: 'one', ...say('I am one.') })
  const two = await startTestBridge({ hub, name: 'two', ...say('I am two.') })
  one.say('ann', '@two hello')
  expect(await heard(two, 'ann', 1)).toEqual(['I am two.'])
  one.say('ann', '@one, hello')
  expect((await heard(one, 'ann', 2)).at(-1)).toBe('I am one.')
  const { body } = await two.agent.call('GET', '/sessions')
  const { body: runs } = await two.agent.call('GET', `/sessions/${body[0].session_id}/runs`)
  expect(runs.runs.map(({ goal }: { goal: string }) => goal)).toEqual(['hello'])
})

verifies('bridge:errors:one-sentence', async () => {
  const failing = {
    turns: [{ match: 'boom', steps: [{ error: { kind: 'auth' as const, message: 'No such key\nat all' } }] }],
  }
  const bridge = await startTestBridge({ agentOptions: { script: failing } })
  bridge.say('ann', 'boom')
  const [told] = await heard(bridge, 'ann', 1)
  expect(told).toMatch(/^The agent could not finish this: [^\n]*\.$/)
  bridge.say('ann', 'hello')
  expect(await heard(bridge, 'ann', 2)).toHaveLength(2)
})

verifies('bridge:errors:agent-away', async () => {
  const port = await freePort()
  const bridge = await startTestBridge({ agentUrl: `http://127.0.0.1:${port}`, tellAwayMs: 0 })
  bridge.say('ann', 'hello')
  expect(await heard(bridge, 'ann', 1)).toEqual([
    'The agent cannot be reached right now; your message is kept and answered when it is back.',
  ])
  await startTestAgent({ addr: { host: '127.0.0.1', port } })
  const all = await heard(bridge, 'ann', 2)
  expect(all).toHaveLength(2)
  expect(all[1]).toMatch(/^This is the demo model/)
})

verifies('bridge:answer:service-away', async () => {
  const bridge = await startTestBridge()
  const { control } = bridge.hub.sim
  bridge.say('ann', 'first')
  await heard(bridge, 'ann', 1)
  // The hub's sends are cut in the middle, so that it cannot know whether they arrived.
  control.faults.add({ kind: 'down', only: 'sendmessage' })
  bridge.say('ann', 'second')
  const unsent = /^switchboard_hub_sends_total\{outcome="unreachable"\} (\d+)$/m
  const tries = async () => Number(unsent.exec(await (await fetch(`${bridge.hub.url}/metrics`)).text())?.[1] ?? 0)
  await soon(async () => expect(await tries()).toBeGreaterThan(1))
  control.faults.clear()
  const all = await heard(bridge, 'ann', 2)
  expect(all[1]).toContain('You said: "second"')
})

test('an agent that has forgotten the session begins a new one and says so', async () => {
  const bridge = await startTestBridge()
  bridge.say('ann', 'hello')
  await heard(bridge, 'ann', 1)
  const { body } = await bridge.agent.call('GET', '/sessions')
  await bridge.agent.call('DELETE', `/sessions/${body[0].session_id}`)
  bridge.say('ann', 'are you there')
  const [, told, answer] = await heard(bridge, 'ann', 3)
  expect(told).toBe('The agent was restarted and no longer knows what we spoke of; it starts afresh.')
  expect(answer).toContain('are you there')
})

test('a run that the agent had to leave is begun again elsewhere, and the user is told', async () => {
  const addr = { host: '127.0.0.1', port: await freePort() }
  const stalling = { turns: [{ match: 'slow', steps: [{ stall: 'forever' as const }] }] }
  const first = await startTestAgent({ addr, script: stalling })
  const bridge = await startTestBridge({ agent: first })
  bridge.say('ann', 'slow')
  await soon(async () => expect((await first.call('GET', '/sessions')).body[0]?.status).toBe('running'))
  await first.stop()
  const second = await startTestAgent({ addr, script: { turns: [], after: 'Done.' } })
  await soon(async () => expect((await bridge.seen('ann')).at(-1)).toBe('Done.'))
  const told = (await bridge.seen('ann')).slice(0, -1)
  expect(told.length).toBeGreaterThan(0)
  for (const text of told) expect(text).toMatch(/starts (again|afresh)\.$/)
  const { body: sessions } = await second.call('GET', '/sessions')
  const { body } = await second.call('GET', `/sessions/${sessions[0].session_id}/runs`)
  expect(body.runs.map(({ goal }: { goal: string }) => goal)).toEqual([
    expect.stringMatching(/^\(You were interrupted.*\n\nslow$/s),
  ])
})

verifies('bridge:media:label', async () => {
  const bridge = await startTestBridge()
  bridge.hub.sim.control.say({ user: 'ann', image_base64: 'aGVsbG8=' })
  await heard(bridge, 'ann', 1)
  bridge.hub.sim.control.say({ user: 'ann', file_base64: 'aGVsbG8=', file_name: 'a.txt' })
  await heard(bridge, 'ann', 2)
  const { messages } = await bridge.hub.sim.control.conversation({ user: 'ann' })
  const answered = messages.find(({ from }) => from === 'bot')
  bridge.hub.sim.control.say({ user: 'ann', text: 'what is this', quote: String(answered?.message_id) })
  await heard(bridge, 'ann', 3)
  const { body: sessions } = await bridge.agent.call('GET', '/sessions')
  const { body } = await bridge.agent.call('GET', `/sessions/${sessions[0].session_id}/runs`)
  const [image, file, quote] = body.runs.map(({ goal }: { goal: string }) => goal)
  expect(image).toBe('[image]\n(Sent by the user, and not to be opened from here: [image])')
  expect(file).toBe('[file: a.txt]\n(Sent by the user, and not to be opened from here: [file: a.txt])')
  expect(quote).toMatch(/^what is this\n\(This answers: .*\)$/)
})

test('the token is kept for its owner alone, and a name that somebody else has is refused', async () => {
  const bridge = await startTestBridge()
  const path = join(bridge.folder, 'token.json')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
    name: 'agent',
    token: expect.stringMatching(/^vhub_/),
  })
  await expect(startTestBridge({ hub: bridge.hub, agent: bridge.agent })).rejects.toThrow(
    /A client named "agent" is registered .* already; set BRIDGE_TOKEN to its token, or choose another --name/,
  )
  await expect(startTestBridge({ hub: bridge.hub, agent: bridge.agent, token: 'vhub_wrong' })).rejects.toThrow(
    /does not know this token; check BRIDGE_TOKEN/,
  )
  await expect(startTestBridge({ hub: bridge.hub, agent: bridge.agent, dataDir: bridge.folder })).rejects.toThrow(
    /in use by another bridge/,
  )
})

test('a registration whose answer was never heard is taken over', async () => {
  const first = await startTestBridge()
  await first.stop()
  const path = join(first.folder, 'token.json')
  const { writeFileSync } = await import('node:fs')
  writeFileSync(path, JSON.stringify({ hub: first.hub.url, name: 'agent', token: null }))
  const second = await startTestBridge({ hub: first.hub, agent: first.agent, dataDir: first.folder })
  second.say('ann', 'hello')
  await heard(second, 'ann', 1)
  expect(JSON.parse(readFileSync(path, 'utf8')).token).toMatch(/^vhub_/)
})

test('with --own-folders each conversation has a folder that others cannot see', async () => {
  const bridge = await startTestBridge({ ownFolders: true, log: silentLog })
  bridge.say('ann', 'write secret.txt: hers')
  await heard(bridge, 'ann', 1)
  bridge.say('bob', 'read secret.txt')
  expect(await heard(bridge, 'bob', 1)).toEqual([expect.stringMatching(/^That did not work/)])
  expect(existsSync(join(bridge.agent.workspace, 'users', 'ann%40im%2Ewechat', 'secret.txt'))).toBe(true)
})
