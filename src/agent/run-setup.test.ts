import { Type } from 'typebox'
import { expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { callOf, FINISH, handMade, newRun, newSession, playLoop, user } from './core-fixture.contract.ts'
import { addUsage, NO_USAGE } from './model.ts'
import type { Provider } from './provider/port.ts'
import { scriptedProvider } from './provider/scripted.ts'
import { runSetup } from './run-setup.ts'
import { defineTool, done } from './tools/define-tool.ts'
import type { ToolState } from './tools/port.ts'
import { toolRegistry } from './tools/registry.ts'
import { temporaryWorkspace } from './workspace/temporary.contract.ts'

const SIGNAL = new AbortController().signal
const PLENTY = { steps: 50, tokens: null, cost: null }

verifies(
  'agent:plan:mode',
  'before a plan is approved what changes something is refused, and sub-tasks too',
  async () => {
    const { setup, ran } = await bench(scriptedProvider([]))
    const { tools, system } = await setup.prepare(newSession('s1', { planMode: true }), newRun('r1', 's1'), [], SIGNAL)
    expect(system).toContain('propose_plan')
    for (const name of ['write', 'task', 'unknown'])
      expect(await run(tools, name)).toMatchObject({ success: false, text: expect.stringContaining('propose_plan') })
    expect(await run(tools, 'look')).toMatchObject({ success: true })
    expect(ran).toEqual(['look'])
  },
)

test('without plan mode everything may be used from the start', async () => {
  const { setup, ran } = await bench(scriptedProvider([]))
  const { tools, system } = await setup.prepare(newSession('s1'), newRun('r1', 's1'), [], SIGNAL)
  expect(system).not.toContain('propose_plan')
  await run(tools, 'write')
  expect(ran).toEqual(['write'])
})

test('arguments that were no JSON are refused before anything is done', async () => {
  const { setup, ran } = await bench(scriptedProvider([]))
  const { tools } = await setup.prepare(newSession('s1'), newRun('r1', 's1'), [], SIGNAL)
  const call = { id: 'a', name: 'write', input: {}, invalid: '{', step: 1 }
  expect(await tools.run(call, SIGNAL, () => {}, PLENTY)).toMatchObject({ success: false })
  expect(ran).toEqual([])
})

verifies(
  'agent:tools:task',
  'a sub-task answers with its last words, and its turns and tokens count for the run',
  async () => {
    const provider = scriptedProvider([
      [{ tool_calls: [{ name: 'task', input: { goal: 'helper goal' } }] }],
      [{ text: 'All done.' }],
      { match: 'helper goal', steps: [{ tool_calls: [{ name: 'write', raw: '{' }] }] },
      { match: 'helper goal', steps: [{ tool_calls: [{ name: 'propose_plan', input: { plan: 'p' } }] }] },
      { match: 'helper goal', steps: [{ text: 'Found it.' }, { usage: { input_tokens: 1_000, output_tokens: 1 } }] },
    ])
    const { setup, ran } = await bench(provider)
    const prepared = await setup.prepare(newSession('s1'), newRun('r1', 's1'), [], SIGNAL)
    const { steps, events } = await playLoop({ ...prepared, ...loop })
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_result', success: true, output: 'Found it.' }))
    const usage = steps.reduce((total, step) => addUsage(total, step.usage), NO_USAGE)
    expect(usage.totalSteps).toBe(5)
    expect(usage.totalTokens).toBeGreaterThan(1_000)
    expect(ran).toEqual([])
  },
)

verifies(
  'agent:tools:task-budget',
  'a sub-task gets the turns that are left, less the one for the answer',
  async () => {
    const turns = { run: 0, helper: 0 }
    const provider = handMade((request) => {
      const who = JSON.stringify(request.messages[0]).includes('helper goal') ? 'helper' : 'run'
      turns[who] += 1
      if (request.toolChoice === 'none') return [{ type: 'text', delta: `${who} is out of turns.` }, FINISH]
      if (who === 'helper') return [callOf(`h${turns.helper}`, 'look', { turn: turns.helper }), FINISH]
      // A second helper finds nothing left.
      return [callOf('a', 'task', { goal: 'helper goal' }), callOf('b', 'task', { goal: 'helper goal' }), FINISH]
    })
    const { setup } = await bench(provider)
    const prepared = await setup.prepare(newSession('s1'), newRun('r1', 's1'), [], SIGNAL)
    const { result, steps, events } = await playLoop({ ...prepared, ...loop, maxSteps: 6 })
    expect(result).toMatchObject({ reason: 'NoMoreToolCalls' })
    expect(turns).toEqual({ run: 2, helper: 4 })
    expect(steps.reduce((total, { usage }) => total + usage.totalSteps, 0)).toBe(6)
    const outputs = events.flatMap((event) => (event.type === 'tool_result' ? [[event.success, event.output]] : []))
    expect(outputs).toEqual([
      [true, 'helper is out of turns.'],
      [false, expect.stringContaining('yourself')],
    ])
  },
)

verifies('agent:tools:task-budget', 'a sub-task gets the tokens and the money that are left', async () => {
  for (const limit of [{ maxTokens: 60 }, { maxCost: 4 }]) {
    let helper = 0
    // Each turn takes 15 tokens and costs a dollar.
    const provider = handMade(
      (request) => {
        if (!JSON.stringify(request.messages[0]).includes('helper goal'))
          return [callOf('a', 'task', { goal: 'helper goal' }), FINISH]
        helper += 1
        return [callOf(`h${helper}`, 'look', { turn: helper }), FINISH]
      },
      { price: { input: 100_000, output: 0 } },
    )
    const { setup } = await bench(provider)
    const prepared = await setup.prepare(newSession('s1'), newRun('r1', 's1'), [], SIGNAL)
    const { result } = await playLoop({ ...prepared, ...loop, ...limit, maxSteps: 50 })
    expect([result, helper]).toMatchObject([{ reason: 'BudgetExceeded' }, 3])
  }
})

test('a sub-task whose model fails, or that has no goal, is a result and not the end of the run', async () => {
  const provider = scriptedProvider([
    [{ tool_calls: [{ name: 'task', input: { goal: 'helper goal' } }] }],
    [{ tool_calls: [{ name: 'task', input: {} }] }],
    [{ text: 'Then not.' }],
    { match: 'helper goal', steps: [{ error: { kind: 'transient', message: 'gone away' } }] },
  ])
  const { setup } = await bench(provider)
  const prepared = await setup.prepare(newSession('s1'), newRun('r1', 's1'), [], SIGNAL)
  const { result, events } = await playLoop({ ...prepared, ...loop })
  expect(result).toMatchObject({ reason: 'NoMoreToolCalls' })
  const outputs = events.flatMap((event) => (event.type === 'tool_result' ? [[event.success, event.output]] : []))
  expect(outputs).toEqual([
    [false, expect.stringContaining('gone away')],
    [false, expect.stringContaining('goal is missing')],
  ])
})

test('alone nobody can be asked: plans are not offered, and a call of one is refused', async () => {
  const provider = handMade((_request, turn) => [
    ...(turn === 1 ? [callOf('p', 'propose_plan', { plan: 'p' })] : []),
    FINISH,
  ])
  const { setup } = await bench(provider)
  const session = newSession('s1', { systemPrompt: 'Speak Latin.' })
  const prepared = await setup.prepareAlone(session, { model: null }, SIGNAL)
  expect(prepared.tools.describe().map(({ name }) => name)).toEqual(['look', 'write', 'task'])
  expect(prepared.system).toContain('Speak Latin.')
  const { result, events } = await playLoop({ ...prepared, ...loop })
  expect(result).toMatchObject({ type: 'finished' })
  expect(events).toContainEqual(expect.objectContaining({ type: 'tool_result', success: false }))
})

verifies('agent:tools:per-session', 'tools remember per session until it is forgotten or all are closed', async () => {
  const { setup, states, closed } = await bench(scriptedProvider([]))
  for (const id of ['s1', 's1', 's2']) {
    const { tools } = await setup.prepare(newSession(id), newRun('r1', id), [], SIGNAL)
    await run(tools, 'look')
  }
  expect(states[0]).toBe(states[1])
  expect(states[0]).not.toBe(states[2])
  await setup.forget('s1')
  await setup.forget('s1')
  expect(closed).toEqual([states[0]])
  await setup.close()
  expect(closed).toEqual([states[0], states[2]])
})

const loop = { runId: 'r1', transcript: [user('go')], stepsBefore: 0, maxSteps: 10, signal: SIGNAL, now: () => 0 }

function run(tools: Awaited<ReturnType<ReturnType<typeof runSetup>['prepare']>>['tools'], name: string) {
  return tools.run({ id: 'a', name, input: {}, step: 1 }, SIGNAL, () => {}, PLENTY)
}

async function bench(provider: Provider) {
  const { workspace } = await temporaryWorkspace()
  const ran: string[] = []
  const states: ToolState[] = []
  const closed: ToolState[] = []
  const tool = (name: string, readOnly: boolean) =>
    defineTool({
      name,
      description: name,
      input: Type.Object({}),
      readOnly,
      async run(_input, { state }) {
        ran.push(name)
        states.push(state)
        return done(name)
      },
    })
  const setup = runSetup({
    registry: toolRegistry([tool('look', true), tool('write', false)]),
    openModel: async () => provider,
    openWorkspace: async () => workspace,
    closeTools: async (state) => void closed.push(state),
    maxTokens: null,
    maxCost: null,
    now: () => 0,
  })
  return { setup, ran, states, closed }
}
