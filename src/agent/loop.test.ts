import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import {
  callOf,
  FINISH,
  handMade,
  loopInput,
  namedTools,
  playLoop,
  resultTexts,
  user,
} from './core-fixture.contract.ts'
import { type Message, NO_USAGE, type RunEvent } from './model.ts'
import { ProviderError, type TurnEvent } from './provider/port.ts'
import { scriptedProvider } from './provider/scripted.ts'
import { validMessages } from './request.ts'

const text = (delta: string): TurnEvent => ({ type: 'text', delta })
const types = (events: RunEvent[]) => events.map(({ type }) => type)

describe('a run', () => {
  verifies('agent:loop:ends', 'tells a call, its result, the message, and ends when nothing is called', async () => {
    const provider = scriptedProvider([[{ tool_calls: [{ name: 'read' }] }], [{ text: ['It', ' is.'] }]])
    const { result, events, messages, steps } = await playLoop(loopInput(provider, { gatherMs: 60_000 }))
    const shown = types(events).filter((type) => type !== 'usage')
    expect(shown).toEqual(['tool_call', 'tool_result', 'partial_message', 'partial_message', 'message'])
    const used = events.flatMap((event) => (event.type === 'usage' ? [event.usage.totalSteps] : []))
    expect(used).toEqual([1, 2])
    expect(result).toEqual({ type: 'finished', reason: 'NoMoreToolCalls' })
    expect(messages.map(({ role, step }) => [role, step])).toEqual([
      ['assistant', 1],
      ['tool', 1],
      ['assistant', 2],
    ])
    expect(steps.reduce((total, { usage }) => total + usage.totalSteps, 0)).toBe(2)
  })

  verifies(
    'agent:loop:recorded-first',
    'records a call before it runs, and the request holds its result next time',
    async () => {
      const tools = namedTools(['write'])
      const provider = handMade((_request, turn) => [...(turn === 1 ? [callOf('a', 'write')] : [text('ok')]), FINISH])
      await playLoop(loopInput(provider, { tools }), ({ events }) => {
        if (types(events).includes('tool_call')) expect(tools.calls).toEqual([])
      })
      expect(tools.calls).toHaveLength(1)
      expect(resultTexts(provider.asked[1]?.messages ?? [])).toEqual(['write did it'])
    },
  )

  verifies(
    'agent:loop:provider-stop',
    'that stops for another reason than being ready ends with ProviderStop',
    async () => {
      for (const reason of ['length', 'other'] as const) {
        const { result, events } = await playLoop(loopInput(handMade(() => [text('cut'), { ...FINISH, reason }])))
        expect(result).toEqual({ type: 'finished', reason: 'ProviderStop' })
        expect(types(events)).toContain('message')
      }
    },
  )

  test('with an empty answer ends without an empty message', async () => {
    const { result, messages } = await playLoop(loopInput(handMade(() => [text(' '), FINISH])))
    expect(result).toMatchObject({ reason: 'NoMoreToolCalls' })
    expect(messages).toEqual([])
  })

  test('throws what the provider throws, after what was told before', async () => {
    const provider = scriptedProvider([[{ text: 'Well' }, { error: { kind: 'transient', message: 'gone' } }]])
    const kept: Message[] = []
    const playing = playLoop(loopInput(provider), ({ messages }) => void kept.push(...messages))
    await expect(playing).rejects.toMatchObject({ kind: 'transient' })
    expect(kept).toMatchObject([{ role: 'assistant', content: [{ type: 'text', text: 'Well' }] }])
  })
})

describe('tools', () => {
  verifies(
    'agent:loop:parallel',
    'that only read run together, writers alone and in order, and all are told as they were asked for',
    async () => {
      let running: string[] = []
      const seen: string[][] = []
      const tools = namedTools(['read', 'write'], async ({ id }) => {
        running = [...running, id]
        await new Promise((resolve) => setImmediate(resolve))
        seen.push(running)
        await new Promise((resolve) => setImmediate(resolve))
        running = running.filter((one) => one !== id)
        return { success: true, text: id }
      })
      const names = { a: 'read', b: 'read', c: 'write', d: 'write', e: 'read', f: 'read' }
      const calls = Object.entries(names).map(([id, name]) => callOf(id, name))
      const provider = handMade((_request, turn) => [...(turn === 1 ? calls : [text('ok')]), FINISH])
      const { events, messages } = await playLoop(loopInput(provider, { tools }))
      expect([...new Set(seen.map((ids) => ids.join('')))]).toEqual(['ab', 'c', 'd', 'ef'])
      expect(events.flatMap((event) => (event.type === 'tool_result' ? [event.id] : []))).toEqual([...'abcdef'])
      expect(resultTexts(messages)).toEqual([...'abcdef'])
    },
  )

  verifies('agent:loop:parallel', 'eight at most run together', async () => {
    let running = 0
    let most = 0
    const tools = namedTools(['read'], async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running -= 1
      return { success: true, text: String(most) }
    })
    const calls = Array.from({ length: 20 }, (_, index) => callOf(String(index), 'read', { index }))
    await playLoop(
      loopInput(
        handMade((_request, turn) => [...(turn === 1 ? calls : []), FINISH]),
        { tools },
      ),
    )
    expect(most).toBe(8)
  })

  verifies('agent:loop:tool-fails', 'that fail are results, and the run goes on', async () => {
    const tools = namedTools(['read'], async () => ({ success: false, text: 'no such file' }))
    const provider = scriptedProvider([[{ tool_calls: [{ name: 'read' }] }], [{ text: 'Sorry.' }]])
    const { result, events, messages } = await playLoop(loopInput(provider, { tools }))
    expect(result).toMatchObject({ reason: 'NoMoreToolCalls' })
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_result', success: false }))
    expect(messages[1]?.content).toMatchObject([{ isError: true, content: 'no such file' }])
  })

  test('arguments that are no JSON reach them as such', async () => {
    const tools = namedTools(['read'])
    await playLoop(loopInput(scriptedProvider([[{ tool_calls: [{ name: 'read', raw: '{"a":' }] }]]), { tools }))
    expect(tools.calls).toMatchObject([{ invalid: '{"a":' }])
  })

  test('calls that share an id, or have none, get their own, in one turn and over many', async () => {
    const tools = namedTools(['read'])
    const calls = [callOf('x', 'read'), callOf('x', 'read'), callOf('', 'read'), callOf('', 'read')]
    const provider = handMade((_request, turn) => [...(turn < 3 ? calls : [text('ok')]), FINISH])
    const { messages } = await playLoop(loopInput(provider, { tools }))
    const ids = tools.calls.map(({ id }) => id)
    expect(ids).toHaveLength(8)
    expect(new Set(ids).size).toBe(8)
    expect(ids.includes('')).toBe(false)
    expect(validMessages([user('go'), ...messages])).toEqual([user('go'), ...messages])
  })

  test('what one prints is told while it runs, gathered, and only the newest of it', async () => {
    let goOn: (text: string) => void = () => {}
    const answered = new Promise<string>((resolve) => {
      goOn = resolve
    })
    const tools = namedTools(['write'], async (_call, _signal, onProgress) => {
      for (const piece of ['a', 'b', 'x'.repeat(5_000)]) onProgress(piece)
      return { success: true, text: await answered }
    })
    const provider = scriptedProvider([[{ tool_calls: [{ name: 'write' }] }]])
    const { events } = await playLoop(loopInput(provider, { tools, progressMs: 1 }), (step) => {
      if (types(step.events).includes('tool_progress')) goOn('done')
    })
    expect(types(events).filter((type) => type.startsWith('tool'))).toEqual([
      'tool_call',
      'tool_progress',
      'tool_result',
    ])
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_progress', output: 'x'.repeat(4_000) }))
  })

  test('a long output is cut for who watches and whole for the model', async () => {
    const tools = namedTools(['read'], async () => ({ success: true, text: 'x'.repeat(10_000) }))
    const provider = scriptedProvider([[{ tool_calls: [{ name: 'read' }] }]])
    const { events, messages } = await playLoop(loopInput(provider, { tools }))
    expect(events.flatMap((event) => (event.type === 'tool_result' ? [event.output.length] : []))).toEqual([2_000])
    expect(resultTexts(messages)[0]).toHaveLength(10_000)
  })
})

describe('limits', () => {
  const loops = () => handMade((_request, turn) => [callOf(String(turn), 'read', { turn }), FINISH])

  verifies('agent:loop:last-step', 'in the last turn the model is told to answer and may call nothing', async () => {
    const provider = loops()
    const tools = namedTools(['read'])
    const { result, messages } = await playLoop(loopInput(provider, { maxSteps: 3, tools }))
    expect(result).toMatchObject({ reason: 'BudgetExceeded' })
    // What it wanted all the same is answered, and not carried out.
    expect(tools.calls.map(({ id }) => id)).toEqual(['1', '2'])
    expect(resultTexts(messages)[2]).toMatch(/^Not carried out/)
    expect(provider.asked.map(({ toolChoice }) => toolChoice)).toEqual(['auto', 'auto', 'none'])
    expect(provider.asked.map(({ system }) => system.includes('last turn'))).toEqual([false, false, true])
  })

  verifies(
    'agent:loop:last-step',
    'an answer in the last turn is an ordinary end, and a run of one turn may call something',
    async () => {
      const two = scriptedProvider([[{ tool_calls: [{ name: 'read' }] }], [{ text: 'ok' }]])
      expect((await playLoop(loopInput(two, { maxSteps: 2 }))).result).toMatchObject({ reason: 'NoMoreToolCalls' })
      const one = loops()
      expect((await playLoop(loopInput(one, { maxSteps: 1 }))).result).toMatchObject({ reason: 'BudgetExceeded' })
      expect(one.asked[0]?.toolChoice).toBe('auto')
    },
  )

  test('turns from before a plan count', async () => {
    const provider = loops()
    await playLoop(loopInput(provider, { stepsBefore: 3, maxSteps: 5 }))
    expect(provider.asked).toHaveLength(2)
  })

  verifies(
    'agent:loop:tokens-cost',
    'tokens and cost end it, sub-tasks, summaries and what was spent before included',
    async () => {
      const spent = { ...NO_USAGE, totalTokens: 30, cost: 1 }
      const tools = namedTools(['read'], async () => ({ success: true, text: 'ok', usage: spent }))
      const priced = { price: { input: 100_000, output: 0 } }
      const cases = [{ maxTokens: 30 }, { maxTokens: 45, tools }, { maxTokens: 45, spentBefore: spent }, { maxCost: 1 }]
      const turns: number[] = []
      for (const shape of cases) {
        const provider = handMade((_request, turn) => [callOf(String(turn), 'read', { turn }), FINISH], priced)
        const { result } = await playLoop(loopInput(provider, shape))
        expect(result).toMatchObject({ reason: 'BudgetExceeded' })
        turns.push(provider.asked.length)
      }
      expect(turns).toEqual([2, 1, 1, 1])
    },
  )

  verifies(
    'agent:loop:stuck',
    'the same call with the same result is nudged once and ends the run as Stuck',
    async () => {
      const provider = handMade((_request, turn) => [callOf(String(turn), 'read'), FINISH])
      const { result, messages } = await playLoop(loopInput(provider))
      expect(result).toMatchObject({ reason: 'Stuck' })
      expect(resultTexts(messages).map((one) => one.includes('third identical'))).toEqual([
        false,
        false,
        true,
        false,
        false,
      ])
    },
  )
})

describe('a request that is too long', () => {
  const overflow = new ProviderError('context_overflow', 'too long')

  test('is made shorter and asked again in the same turn', async () => {
    const provider = handMade((_request, turn) => {
      if (turn === 1) throw overflow
      return [text('ok'), FINISH]
    })
    const fit = async (messages: Parameters<typeof validMessages>[0], why: string) =>
      why === 'overflow' ? { messages: [user('short')], usage: NO_USAGE } : { messages: [...messages], usage: NO_USAGE }
    const { result, messages } = await playLoop(loopInput(provider, { fit }))
    expect(result).toMatchObject({ reason: 'NoMoreToolCalls' })
    expect(provider.asked[1]?.messages).toEqual([user('short')])
    expect(messages.map(({ step }) => step)).toEqual([1])
  })

  verifies(
    'agent:loop:overflow',
    'ends as ContextOverflow when it cannot be made shorter, or not short enough after two tries',
    async () => {
      const provider = handMade(() => {
        throw overflow
      })
      expect((await playLoop(loopInput(provider))).result).toMatchObject({ reason: 'ContextOverflow' })
      expect(provider.asked).toHaveLength(3)
      const { result } = await playLoop(loopInput(provider, { fit: async () => null }))
      expect(result).toMatchObject({ reason: 'ContextOverflow' })
      expect(provider.asked).toHaveLength(3)
    },
  )
})
