import { describe, expect, test } from 'vitest'
import type { Message } from '../model.ts'
import { type Provider, ProviderError, type ProviderRequest, type ToolDescription, type TurnEvent } from './port.ts'

/** What the suite asks a provider to do next. */
export interface ProviderHarness {
  /** One that answers with some words. */
  words(): Promise<Provider>
  /** One that calls `list_dir` with `{"path":"."}`. */
  calls(): Promise<Provider>
  /** One that says some words and then nothing for a long time. `left` resolves when it knows that nobody listens. */
  stalls(): Promise<{ provider: Provider; left?: Promise<unknown> }>
}

/** The tool of {@link request}. */
export const LIST_DIR: ToolDescription = {
  name: 'list_dir',
  description: 'Lists a folder.',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
}

/** What every provider promises. */
export function providerContract(name: string, harness: ProviderHarness): void {
  describe(`provider (${name})`, () => {
    test('has a name, and a window and a price or null', async () => {
      const { name: shown, contextWindow, price } = await harness.words()
      expect(shown).toMatch(/^[a-z-]+(:.+)?$/)
      expect(contextWindow === null || contextWindow > 0).toBe(true)
      expect(price === null || (price.input > 0 && price.output > 0)).toBe(true)
    })

    test('says words in deltas that are not empty, then exactly one finish with token counts', async () => {
      const events = await collect(await harness.words(), request(user('hello there')))
      const deltas = events.flatMap((event) => (event.type === 'text' ? [event.delta] : []))
      expect(deltas.length).toBeGreaterThan(0)
      expect(deltas).not.toContain('')
      expect(events.map(({ type }) => type)).toEqual([...deltas.map(() => 'text'), 'finish'])
      const { inputTokens, outputTokens } = finishOf(events)
      expect(finishOf(events).reason).toBe('stop')
      for (const tokens of [inputTokens, outputTokens]) {
        expect(Number.isInteger(tokens)).toBe(true)
        expect(tokens).toBeGreaterThan(0)
      }
    })

    test('tells a call with its input parsed, and finishes with tool_calls', async () => {
      const events = await collect(await harness.calls(), request(user('list files')))
      const calls = events.filter(({ type }) => type === 'tool_call')
      expect(calls).toEqual([
        { type: 'tool_call', id: expect.stringMatching(/./), name: 'list_dir', input: { path: '.' } },
      ])
      expect(finishOf(events).reason).toBe('tool_calls')
    })

    test('answers with words after the result of a call', async () => {
      const events = await collect(await harness.words(), request(...afterCall()))
      expect(events.some(({ type }) => type === 'text')).toBe(true)
      expect(events.some(({ type }) => type === 'tool_call')).toBe(false)
      expect(finishOf(events).reason).toBe('stop')
    })

    test('answers with words when nothing may be called', async () => {
      const events = await collect(await harness.words(), { ...request(user('list files')), toolChoice: 'none' })
      expect(events.some(({ type }) => type === 'text')).toBe(true)
      expect(events.some(({ type }) => type === 'tool_call')).toBe(false)
    })

    test('answers two requests at once without mixing them', async () => {
      const provider = await harness.words()
      const once = await collect(provider, request(user('hello there')))
      const both = await Promise.all([1, 2].map(() => collect(provider, request(user('hello there')))))
      expect(both).toEqual([once, once])
    })

    test('leaves the request as it is', async () => {
      const asked = request(...afterCall())
      const before = structuredClone(asked)
      await collect(await harness.words(), asked)
      expect(asked).toEqual(before)
    })

    test('says nothing when the signal has aborted before', async () => {
      const provider = await harness.words()
      const events = provider.stream(request(user('hello there')), AbortSignal.abort())
      await expect(collectFrom(events)).rejects.toThrow(ProviderError)
    })

    test('throws at once when the signal aborts in the middle, and lets go', async () => {
      const { provider, left } = await harness.stalls()
      const controller = new AbortController()
      const seen: TurnEvent[] = []
      const reading = (async () => {
        for await (const event of provider.stream(request(user('hello there')), controller.signal)) {
          seen.push(event)
          controller.abort()
        }
      })()
      const error = await reading.then(
        () => null,
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(ProviderError)
      expect(error).toMatchObject({ kind: 'other' })
      expect(seen.map(({ type }) => type)).toEqual(['text'])
      await left
    })

    test('lets go when its reader leaves in the middle', async () => {
      const { provider, left } = await harness.stalls()
      for await (const event of provider.stream(request(user('hello there')), new AbortController().signal)) {
        expect(event.type).toBe('text')
        break
      }
      await left
    })
  })
}

/** A request with one tool. */
export function request(...messages: Message[]): ProviderRequest {
  return { system: 'Be brief.', messages, tools: [LIST_DIR], toolChoice: 'auto' }
}

/** Something a person says. */
export function user(text: string): Message {
  return message('user', [{ type: 'text', text }])
}

/** A message of a transcript. */
export function message(role: Message['role'], content: Message['content']): Message {
  return { role, content, runId: 'run-1', step: role === 'user' ? 0 : 1, createdAt: 0 }
}

/** A goal, a call, and its result. */
export function afterCall(): Message[] {
  return [
    user('list files'),
    message('assistant', [{ type: 'tool_use', id: 'call_1', name: 'list_dir', input: { path: '.' } }]),
    message('tool', [{ type: 'tool_result', toolUseId: 'call_1', content: 'a.txt\nb.txt', isError: false }]),
  ]
}

/** All events of a turn. */
export function collect(provider: Provider, asked: ProviderRequest): Promise<TurnEvent[]> {
  return collectFrom(provider.stream(asked, new AbortController().signal))
}

/** The error that a turn ends with, and what came before it. */
export async function failure(
  provider: Provider,
  asked: ProviderRequest = request(user('hello there')),
): Promise<{ error: ProviderError; before: TurnEvent[] }> {
  const before: TurnEvent[] = []
  try {
    for await (const event of provider.stream(asked, new AbortController().signal)) before.push(event)
  } catch (error) {
    if (error instanceof ProviderError) return { error, before }
    throw error
  }
  throw new Error(`There was no error, but ${JSON.stringify(before)}`)
}

/** The end of a turn; there is one, and it is the last. */
export function finishOf(events: readonly TurnEvent[]): Extract<TurnEvent, { type: 'finish' }> {
  const finishes = events.filter((event) => event.type === 'finish')
  expect(finishes).toHaveLength(1)
  expect(events.at(-1)).toBe(finishes[0])
  const [finish] = finishes
  if (finish === undefined) throw new Error('no finish')
  return finish
}

async function collectFrom(events: AsyncIterable<TurnEvent>): Promise<TurnEvent[]> {
  const all: TurnEvent[] = []
  for await (const event of events) all.push(event)
  return all
}
