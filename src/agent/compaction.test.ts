import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { afterSummaries, compaction, withoutSummaries } from './compaction.ts'
import { FINISH, handMade, message, resultTexts, user } from './core-fixture.contract.ts'
import { type Message, NO_USAGE } from './model.ts'
import { ProviderError, type ProviderRequest } from './provider/port.ts'
import { estimateTokens } from './provider/tokens.ts'
import { validMessages } from './request.ts'

const CHARS = 4_000
const summary = () => handMade(() => [{ type: 'text', delta: 'In short.' }, FINISH])

describe('a transcript', () => {
  test('that is short enough, or for a model whose window is not known, stays as it is', async () => {
    const messages = talk(10)
    for (const contextWindow of [1_000_000, null]) {
      const { shorten, asked } = fitter(contextWindow)
      expect(await shorten(messages, 'estimate')).toEqual({ messages, usage: NO_USAGE })
      expect((await shorten(messages, 'estimate'))?.messages).toBe(messages)
      expect(asked).toEqual([])
    }
  })

  verifies(
    'agent:loop:pruned',
    'over 0.6 of the window loses old outputs, the newest stay whole, the same cuts each time',
    async () => {
      const messages = talk(10)
      const { shorten, asked } = fitter(Math.floor(size(messages) / 0.7))
      const once = (await shorten(messages, 'estimate'))?.messages ?? []
      expect(resultTexts(once).map((text) => text.length < CHARS)).toEqual([
        ...Array(7).fill(true),
        ...Array(3).fill(false),
      ])
      expect((await shorten(messages, 'estimate'))?.messages).toEqual(once)
      expect(asked).toEqual([])
      expect(resultTexts(messages).every((text) => text.length === CHARS)).toBe(true)
    },
  )

  test('in which there is nothing to cut is the same one, so that nobody is told of a compaction', async () => {
    const messages = [user('x'.repeat(40_000))]
    const { shorten } = fitter(Math.floor(size(messages) / 0.7))
    expect((await shorten(messages, 'estimate'))?.messages).toBe(messages)
  })

  verifies(
    'agent:loop:summary',
    'over 0.8 becomes a summary and its newest part, never cut between a call and its result',
    async () => {
      const messages = talk(10)
      const { shorten, asked } = fitter(4_300, { input: 100_000, output: 0 })
      const short = await shorten(messages, 'estimate')
      expect(asked).toHaveLength(1)
      expect(asked[0]).toMatchObject({ tools: [], toolChoice: 'none' })
      expect(short?.messages[0]).toMatchObject({
        role: 'user',
        content: [{ text: expect.stringContaining('In short.') }],
      })
      expect(short?.messages.slice(1)).toEqual(messages.slice(-6))
      expect(validMessages(short?.messages ?? [])).toEqual(short?.messages)
      expect(short?.usage).toEqual({ totalSteps: 0, inputTokens: 10, outputTokens: 5, totalTokens: 15, cost: 1 })
    },
  )

  test('whose newest part fills the window keeps less of it', async () => {
    const messages = talk(3)
    const { shorten, asked } = fitter(Math.floor(size(messages) * 0.9))
    const short = await shorten(messages, 'estimate')
    expect(asked).toHaveLength(1)
    expect(short?.messages.slice(1)).toEqual(messages.slice(-2))
  })

  test('of which the newest part alone is too long for a smaller window keeps less of it as well', async () => {
    const messages = talk(10)
    const { shorten } = fitter(2_500)
    const short = await shorten(messages, 'estimate')
    expect(short?.messages.slice(1)).toEqual(messages.slice(-2))
  })

  test('that cannot be made shorter but is thought to fit is tried; one that is too long is not', async () => {
    const messages = talk(1)
    const tried = await fitter(Math.floor(size(messages) / 0.9)).shorten(messages, 'estimate')
    expect(tried?.messages).toEqual(messages)
    expect(await fitter(Math.floor(size(messages) / 2)).shorten(messages, 'estimate')).toBeNull()
  })
})

describe('a summary', () => {
  test('that is in the log stands for what it covers, also when a later one covers it', async () => {
    const log = talk(10)
    const { shorten } = fitter(4_300)
    const first = await shorten(log, 'estimate')
    expect(first?.summary?.covers).toBe(log.length - 6)
    const kept = [...log, ...(first?.summary ? [first.summary] : []), ...talk(8).slice(1)]
    expect(afterSummaries(kept)).toEqual([...(first?.messages ?? []), ...talk(8).slice(1)])
    expect(withoutSummaries(kept)).toEqual([...log, ...talk(8).slice(1)])
    const second = await fitter(4_300).shorten(afterSummaries(kept), 'estimate')
    expect(second?.summary?.covers).toBe(log.length + 16 - 6)
    const all = [...kept, ...(second?.summary ? [second.summary] : [])]
    expect(afterSummaries(all)).toEqual(second?.messages)
    expect(afterSummaries(log)).toEqual(log)
  })

  verifies('agent:loop:summary', 'is made at most twice in a row, and again after there was room', async () => {
    const { shorten, asked } = fitter(5_000)
    const long = talk(10)
    for (const _ of [1, 2]) expect(await shorten(long, 'overflow')).toMatchObject({ messages: { length: 7 } })
    expect(await shorten(long, 'overflow')).toBeNull()
    expect(asked).toHaveLength(2)
    await shorten([user('go')], 'estimate')
    expect(await shorten(long, 'overflow')).not.toBeNull()
  })

  test('that is asked for by an overflow is made though the estimate has room', async () => {
    for (const contextWindow of [null, 1_000_000]) {
      const { shorten } = fitter(contextWindow)
      expect((await shorten(talk(10), 'overflow'))?.messages).toHaveLength(7)
    }
  })

  test('that is empty, or too long to ask for, is none; other failures are told', async () => {
    const empty = compaction({ ...given, provider: handMade(() => [FINISH]) })
    expect(await empty(talk(10), 'overflow')).toBeNull()
    expect(await failing('context_overflow')(talk(10), 'overflow')).toBeNull()
    await expect(failing('auth')(talk(10), 'overflow')).rejects.toMatchObject({ kind: 'auth' })
  })
})

const given = { system: '', tools: [], signal: new AbortController().signal }

function failing(kind: 'auth' | 'context_overflow') {
  const provider = handMade(() => {
    throw new ProviderError(kind, 'no')
  })
  return compaction({ ...given, provider })
}

function fitter(contextWindow: number | null, price: { input: number; output: number } | null = null) {
  const made = summary()
  const asked: ProviderRequest[] = made.asked
  return { shorten: compaction({ ...given, provider: { ...made, contextWindow, price } }), asked }
}

function size(messages: Message[]): number {
  return estimateTokens(messages, '', [])
}

/** A goal and so many calls with long results. */
function talk(turns: number): Message[] {
  const calls = Array.from({ length: turns }, (_, index): Message[] => [
    message('assistant', [{ type: 'tool_use', id: `c${index}`, name: 'read', input: {} }]),
    message('tool', [{ type: 'tool_result', toolUseId: `c${index}`, content: 'x'.repeat(CHARS), isError: false }]),
  ])
  return [user('go'), ...calls.flat()]
}
