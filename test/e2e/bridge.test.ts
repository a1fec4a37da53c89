import { expect, test, vi } from 'vitest'
import { isTyping } from '../support/relay-calls.ts'
import { soon } from '../support/soon.ts'
import { startTestBridge, type TestBridge } from '../support/test-bridge.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 60_000 })

const HELP = /^This is the demo model.* You said: "(.*?)"\./

/** Waits until the user has seen `count` messages of the bot; gives them. */
async function heard({ seen }: TestBridge, user: string, count: number): Promise<string[]> {
  await soon(async () => expect((await seen(user)).length).toBeGreaterThanOrEqual(count))
  return seen(user)
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely by tests
async function sessionsOf({ agent }: TestBridge): Promise<any[]> {
  return (await agent.call('GET', '/sessions')).body
}

async function goalsOf({ agent }: TestBridge, sessionId: string): Promise<string[]> {
  const { body } = await agent.call('GET', `/sessions/${sessionId}/runs`)
  return body.runs.map(({ goal }: { goal: string }) => goal)
}

verifies('bridge:load:five-hundred', async () => {
  const test = await startTestBridge()
  const users = Array.from({ length: 500 }, (_, index) => `user${index}`)
  test.hub.sim.control.say({ user: 'user0', text: 'one' })
  for (const user of users) test.say(user, `hello from ${user}`)
  await vi.waitFor(
    async () => {
      for (const user of users.slice(1)) expect(await test.seen(user)).toHaveLength(1)
    },
    { timeout: 50_000, interval: 100 },
  )
  for (const user of users.slice(1)) expect(HELP.exec((await test.seen(user))[0] ?? '')?.[1]).toBe(`hello from ${user}`)
  for (const user of users.slice(0, 50)) test.say(user, `again from ${user}`)
  await vi.waitFor(
    async () => {
      for (const user of users.slice(1, 50)) expect(await test.seen(user)).toHaveLength(2)
    },
    { timeout: 50_000, interval: 100 },
  )
  for (const user of users.slice(1, 50)) expect((await test.seen(user))[1]).toContain(`again from ${user}`)
  // What user0 said in three goes was answered in that order, in one, two or three runs.
  const answers = (await test.seen('user0')).map((text) => HELP.exec(text)?.[1])
  expect(answers.join(' ').replaceAll('\n', ' ').replace(/ +/g, ' ')).toBe('one hello from user0 again from user0')
  expect(await sessionsOf(test)).toHaveLength(500)
})

verifies(['bridge:session:one-per-conversation', 'bridge:session:over-restarts'], async () => {
  const first = await startTestBridge()
  first.say('ann', 'write hello.txt: hi')
  first.say('bob', 'hello')
  await heard(first, 'ann', 1)
  await heard(first, 'bob', 1)
  const before = await sessionsOf(first)
  expect(before.map(({ title }) => title).sort()).toEqual(['ann@im.wechat', 'bob@im.wechat'])
  await first.stop()
  first.say('ann', 'list files') // told that the agent is offline, by the hub
  const second = await startTestBridge({ hub: first.hub, agent: first.agent, dataDir: first.folder })
  const answers = await heard(second, 'ann', 3)
  expect(answers.at(-1)).toBe('There is 1 entry here: hello.txt.')
  const after = await sessionsOf(second)
  expect(after.map(({ session_id: id }) => id).sort()).toEqual(before.map(({ session_id: id }) => id).sort())
  const ann = after.find(({ title }) => title === 'ann@im.wechat')
  expect(await goalsOf(second, ann.session_id)).toEqual(['write hello.txt: hi', 'list files'])
})

const SLOW = { turns: [{ match: 'slow', steps: [{ stall: 'forever' as const }] }], after: 'Done.' }

verifies(['bridge:merge:while-running', 'bridge:typing:while-working'], async () => {
  const bridge = await startTestBridge({ agentOptions: { script: SLOW } })
  bridge.say('ann', 'slow')
  await soon(async () => expect((await sessionsOf(bridge))[0]?.status).toBe('running'))
  const [{ session_id: id }] = await sessionsOf(bridge)
  await soon(async () => expect(await isTyping(bridge.hub, 'ann')).toBe(true))
  bridge.say('ann', 'first')
  bridge.say('ann', 'second')
  await soon(async () => expect(await queueSize(bridge)).toBe(0))
  await bridge.agent.call('POST', `/sessions/${id}/cancel`)
  expect(await heard(bridge, 'ann', 2)).toEqual(['Stopped.', 'Done.'])
  expect(await goalsOf(bridge, id)).toEqual(['slow', 'first\n\nsecond'])
  await soon(async () => expect(await isTyping(bridge.hub, 'ann')).toBe(false))
})

async function queueSize({ hub }: TestBridge): Promise<number> {
  return (await hub.call('GET', '/hub/clients/agent')).body.queue_size
}

verifies('bridge:command:stop', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: SLOW } })
  bridge.say('ann', '/stop')
  expect(await heard(bridge, 'ann', 1)).toEqual(['Nothing is running.'])
  bridge.say('ann', 'slow')
  await soon(async () => expect((await sessionsOf(bridge))[0]?.status).toBe('running'))
  bridge.say('ann', '/stop')
  expect((await heard(bridge, 'ann', 2)).at(-1)).toBe('Stopped.')
  await soon(async () => expect((await sessionsOf(bridge))[0]?.status).toBe('idle'))
  bridge.say('ann', 'go on')
  expect((await heard(bridge, 'ann', 3)).at(-1)).toBe('Done.')
})

verifies(['bridge:command:new', 'bridge:command:model'], async () => {
  const bridge = await startTestBridge()
  bridge.say('ann', 'hello')
  await heard(bridge, 'ann', 1)
  bridge.say('ann', '/new')
  expect((await heard(bridge, 'ann', 2)).at(-1)).toMatch(/^A new conversation starts/)
  bridge.say('ann', 'hello again')
  await heard(bridge, 'ann', 3)
  expect(await sessionsOf(bridge)).toHaveLength(2)
  bridge.say('ann', '/model')
  expect((await heard(bridge, 'ann', 4)).at(-1)).toMatch(/^The model is demo\./)
  bridge.say('ann', '/model nobody:knows')
  // Told at once, and not by the next message that fails.
  expect((await heard(bridge, 'ann', 5)).at(-1)).toMatch(/nobody.* The model stays as it was\.$/)
  bridge.say('ann', 'and now')
  expect((await heard(bridge, 'ann', 6)).at(-1)).toMatch(HELP)
  bridge.say('ann', '/model demo')
  expect((await heard(bridge, 'ann', 7)).at(-1)).toBe('From your next message on the model is demo.')
  // What the question was tried on is gone again.
  expect(await sessionsOf(bridge)).toHaveLength(2)
})

verifies(
  'bridge:command:model',
  'a model that is no longer to be had is told of once, and the own one answers again',
  async () => {
    const first = await startTestBridge({ agentOptions: { env: { OPENAI_API_KEY: 'for-a-test' } } })
    first.say('ann', '/model openai:gpt-any')
    expect((await heard(first, 'ann', 1)).at(-1)).toMatch(/ the model is openai:gpt-any\.$/)
    await first.stop()
    const other = await startTestBridge({ hub: first.hub, dataDir: first.folder })
    other.say('ann', 'hello')
    expect((await heard(other, 'ann', 2)).at(-1)).toContain('OPENAI_API_KEY')
    other.say('ann', 'hello again')
    expect((await heard(other, 'ann', 3)).at(-1)).toMatch(HELP)
  },
)

verifies('bridge:empty:told', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: PLANS } })
  bridge.say('ann', ' \n\u3000')
  expect(await heard(bridge, 'ann', 1)).toEqual(['That message was empty; write what the agent is to do.'])
  expect(await sessionsOf(bridge)).toEqual([])
  // It is no word on a plan, either.
  bridge.say('ann', 'plan it')
  await heard(bridge, 'ann', 2)
  bridge.say('ann', '  ')
  expect((await heard(bridge, 'ann', 3)).at(-1)).toMatch(/empty/)
  bridge.say('ann', 'approve')
  expect((await heard(bridge, 'ann', 4)).at(-1)).toBe('As you say.')
})

verifies('bridge:plan:approve', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: PLANS } })
  bridge.say('ann', 'plan it')
  const [asked] = await heard(bridge, 'ann', 1)
  expect(asked).toBe('1. tidy up\n\nAnswer "approve", "approve: <the plan as you want it>" or "reject: <why>".')
  bridge.say('ann', 'Approve')
  expect((await heard(bridge, 'ann', 2)).at(-1)).toBe('As you say.')
  expect(await planAnswer(bridge)).toMatch(/approved/i)
  bridge.say('ann', 'hello')
  expect((await heard(bridge, 'ann', 3)).at(-1)).toBe('Done.')
})

const PLANS = {
  turns: [
    {
      match: 'plan it',
      steps: [{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. tidy up' } }] }],
    },
    { match: 'plan it', steps: [{ text: 'As you say.' }] },
  ],
  after: 'Done.',
}

/** What the agent was told about its plan. */
async function planAnswer(bridge: TestBridge): Promise<string> {
  const [{ session_id: id }] = await sessionsOf(bridge)
  const { body } = await bridge.agent.call('GET', `/sessions/${id}`)
  const results = body.transcript.filter(({ role }: { role: string }) => role === 'tool')
  return results[0].content[0].content
}

verifies('bridge:plan:edit', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: PLANS } })
  bridge.say('ann', 'plan it')
  await heard(bridge, 'ann', 1)
  bridge.say('ann', 'approve: 1. tidy up the cellar\n2. rest')
  expect((await heard(bridge, 'ann', 2)).at(-1)).toBe('As you say.')
  expect(await planAnswer(bridge)).toContain('1. tidy up the cellar\n2. rest')
})

verifies('bridge:plan:reject', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: PLANS } })
  for (const [user, words, why] of [
    ['ann', 'reject: too long', 'too long'],
    ['bob', 'what about the garden?', 'what about the garden?'],
  ] as const) {
    bridge.say(user, 'plan it')
    await heard(bridge, user, 1)
    bridge.say(user, words)
    expect((await heard(bridge, user, 2)).at(-1)).toBe('As you say.')
    expect(await planAnswer(bridge)).toContain(why)
  }
})

verifies('bridge:plan:elsewhere', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: PLANS }, planCheckMs: 20 })
  bridge.say('ann', 'plan it')
  await heard(bridge, 'ann', 1)
  const [{ session_id: id }] = await sessionsOf(bridge)
  expect((await bridge.agent.call('POST', `/sessions/${id}/plan`, { body: { decision: 'approve' } })).status).toBe(200)
  expect((await heard(bridge, 'ann', 2)).at(-1)).toBe('As you say.')
})

test('/stop and /new end a plan that waits', async () => {
  const bridge = await startTestBridge({ agentOptions: { script: PLANS } })
  bridge.say('ann', 'plan it')
  await heard(bridge, 'ann', 1)
  bridge.say('ann', '/stop')
  expect((await heard(bridge, 'ann', 2)).at(-1)).toBe('Stopped.')
  expect((await sessionsOf(bridge))[0].status).toBe('idle')
  bridge.say('ann', 'plan it')
  await heard(bridge, 'ann', 3)
  bridge.say('ann', '/new')
  expect((await heard(bridge, 'ann', 4)).at(-1)).toMatch(/^A new conversation starts/)
  bridge.say('ann', 'hello')
  expect((await heard(bridge, 'ann', 5)).at(-1)).toBe('Done.')
})
