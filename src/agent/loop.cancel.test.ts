import { describe, expect, test } from 'vitest'
import { callOf, FINISH, handMade, loopInput, namedTools, playLoop } from './core-fixture.contract.ts'
import { NO_USAGE } from './model.ts'
import { ProviderError, type TurnEvent } from './provider/port.ts'

const CANCELLED = { type: 'finished', reason: 'Cancelled' }
const text = (delta: string): TurnEvent => ({ type: 'text', delta })

describe('a cancel', () => {
  test('at any moment at which the loop waits ends it as Cancelled, and nothing runs after it', async () => {
    const all = await abortAt(Number.POSITIVE_INFINITY)
    expect(all.result).toEqual({ type: 'finished', reason: 'NoMoreToolCalls' })
    expect(all.moments.length).toBeGreaterThan(15)
    for (let at = 0; at < all.moments.length; at++) {
      const { result, moments } = await abortAt(at)
      // What has told its last message is ready, whoever cancels it then.
      const ready = all.moments[at] === 'kept message usage' && at === all.moments.length - 1
      expect([all.moments[at], result]).toEqual([all.moments[at], ready ? all.result : CANCELLED])
      expect(moments.slice(at + 1).filter((one) => one.startsWith('tool'))).toEqual([])
    }
  })

  test('keeps what was told of the turn in the conversation, without what it wanted to call', async () => {
    const abort = new AbortController()
    const provider = handMade(async function* (_request, _turn, signal) {
      yield text('so far')
      yield callOf('a', 'read')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw new ProviderError('other', 'aborted')
    })
    const { result, messages } = await playLoop(loopInput(provider, { signal: abort.signal }), ({ events }) => {
      if (events.some(({ type }) => type === 'partial_message')) setImmediate(() => abort.abort())
    })
    expect(result).toEqual(CANCELLED)
    expect(messages).toMatchObject([{ role: 'assistant', content: [{ type: 'text', text: 'so far' }] }])
  })

  test('while the transcript is made shorter is no error', async () => {
    const abort = new AbortController()
    const fit = async () => {
      abort.abort()
      throw new ProviderError('other', 'aborted')
    }
    const { result } = await playLoop(
      loopInput(
        handMade(() => [FINISH]),
        { fit, signal: abort.signal },
      ),
    )
    expect(result).toEqual(CANCELLED)
  })
})

describe('a plan', () => {
  const proposal = callOf('p', 'propose_plan', { plan: '1. do' })
  const tools = () => namedTools(['read', 'propose_plan'])

  test('ends the loop until it is decided, after the other calls of its turn', async () => {
    const given = tools()
    const provider = handMade(() => [proposal, callOf('r', 'read'), FINISH])
    const { result } = await playLoop(loopInput(provider, { tools: given }))
    expect(result).toMatchObject({ type: 'plan', plan: '1. do', call: { id: 'p', step: 1 } })
    expect(given.calls.map(({ id }) => id)).toEqual(['r'])
  })

  test('in the last turn is not proposed: nobody could carry it out', async () => {
    const given = tools()
    const provider = handMade(() => [proposal, FINISH])
    const { result, events } = await playLoop(loopInput(provider, { tools: given, stepsBefore: 1, maxSteps: 2 }))
    expect(result).toEqual({ type: 'finished', reason: 'BudgetExceeded' })
    expect(given.calls).toEqual([])
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_result', success: false }))
  })

  test('without a text, or where nobody can be asked, is an ordinary call', async () => {
    const cases = [
      { shape: { tools: tools() }, call: callOf('p', 'propose_plan', { plan: ' ' }) },
      { shape: { tools: namedTools(['read']) }, call: proposal },
    ]
    for (const { shape, call } of cases) {
      const provider = handMade((_request, turn) => [...(turn === 1 ? [call] : [text('ok')]), FINISH])
      const { result } = await playLoop(loopInput(provider, shape))
      expect(result.type).toBe('finished')
      expect(shape.tools.calls.map(({ id }) => id)).toEqual(['p'])
    }
  })
})

/** A run of three turns that is cancelled at the moment of this number; `moments` are those it came by. */
async function abortAt(at: number) {
  const abort = new AbortController()
  const moments: string[] = []
  const moment = (name: string) => {
    if (moments.length === at) abort.abort()
    moments.push(name)
  }
  const provider = handMade(async function* (_request, turn, signal) {
    const events =
      turn < 3 ? [text('a'), text('b'), callOf(`r${turn}`, 'read'), callOf(`w${turn}`, 'write')] : [text('c')]
    for (const event of [...events, FINISH]) {
      moment(`model ${event.type}`)
      await Promise.resolve()
      if (signal.aborted) throw new ProviderError('other', 'Cancelled.')
      yield event
    }
  })
  const tools = namedTools(['read', 'write'], async ({ name }) => {
    moment(`tool ${name}`)
    await Promise.resolve()
    return { success: true, text: `${moments.length}` }
  })
  const fit = async (messages: Parameters<ReturnType<typeof loopInput>['fit']>[0]) => {
    moment('fit')
    return { messages, usage: NO_USAGE }
  }
  const { result } = await playLoop(loopInput(provider, { tools, fit, signal: abort.signal, gatherMs: 0 }), (step) =>
    moment(`kept ${step.events.map(({ type }) => type).join(' ')}`),
  )
  return { result, moments }
}
