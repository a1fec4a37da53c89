import { describe, expect, test } from 'vitest'
import type { Message } from '../model.ts'
import { collect, failure, finishOf, message, request, user } from './provider.contract.ts'
import type { Script, Step } from './script-format.ts'
import { scriptedProvider } from './scripted.ts'

const said = (text: string): Message => message('assistant', [{ type: 'text', text }])

describe('which turn is played', () => {
  test('the one whose number is how often the model has spoken, and a fixed text after the last', async () => {
    const provider = scriptedProvider([[{ text: 'one' }], [{ text: 'two' }]])
    const first = [user('go')]
    const second = [...first, said('one')]
    const third = [...second, user('more'), said('two')]
    expect(await text(provider, first)).toBe('one')
    expect(await text(provider, second)).toBe('two')
    expect(await text(provider, third)).toBe('The script has nothing more to say.')
    expect(await text(provider, first)).toBe('one')
  })

  test('what it says after the last can be chosen', async () => {
    expect(await text(scriptedProvider({ turns: [], after: 'Bye.' }), [user('go')])).toBe('Bye.')
  })

  test('turns that match the last words of the user come first, counted from those words', async () => {
    const provider = scriptedProvider([
      [{ text: 'main' }],
      { match: 'weather', steps: [{ text: 'sun' }] },
      { match: 'weather', steps: [{ text: 'rain' }] },
      { match: 'Rome', steps: [{ text: 'roads' }] },
    ])
    const asked = [user('hi'), said('main'), user('The WEATHER?')]
    expect(await text(provider, [user('hi')])).toBe('main')
    expect(await text(provider, asked)).toBe('sun')
    expect(await text(provider, [...asked, said('sun')])).toBe('rain')
    expect(await text(provider, [...asked, said('sun'), said('rain')])).toContain('nothing more')
    expect(await text(provider, [...asked, said('sun'), user('and rome?')])).toBe('roads')
  })
})

describe('steps', () => {
  test('deltas, calls, counts and the reason are told as they are written', async () => {
    const events = await play([
      { text: ['Hel', '', 'lo'] },
      { tool_calls: [{ id: 'a', name: 'list_dir', input: { path: 'x' } }] },
      { usage: { input_tokens: 12, output_tokens: 0 } },
      { finish: 'length' },
    ])
    expect(events).toEqual([
      { type: 'text', delta: 'Hel' },
      { type: 'text', delta: 'lo' },
      { type: 'tool_call', id: 'a', name: 'list_dir', input: { path: 'x' } },
      { type: 'finish', reason: 'length', inputTokens: 12, outputTokens: 0 },
    ])
  })

  test('several calls, some of them as no model should make them', async () => {
    const events = await play([
      {
        tool_calls: [
          { name: 'list_dir' },
          { name: 'list_dir', raw: '{"path":"x"}' },
          { name: 'list_dir', raw: '{"path":' },
          { name: 'list_dir', raw: '' },
          { id: 'twice', name: 'no_such_tool', input: [1] },
          { id: 'twice', name: 'no_such_tool', input: null },
        ],
      },
    ])
    expect(events.slice(0, -1)).toEqual([
      { type: 'tool_call', id: 'call_1_1', name: 'list_dir', input: {} },
      { type: 'tool_call', id: 'call_1_2', name: 'list_dir', input: { path: 'x' } },
      { type: 'tool_call', id: 'call_1_3', name: 'list_dir', input: {}, invalid: '{"path":' },
      { type: 'tool_call', id: 'call_1_4', name: 'list_dir', input: {} },
      { type: 'tool_call', id: 'twice', name: 'no_such_tool', input: [1] },
      { type: 'tool_call', id: 'twice', name: 'no_such_tool', input: null },
    ])
    expect(finishOf(events).reason).toBe('tool_calls')
  })

  test('made-up ids differ from turn to turn', async () => {
    const call: Step[] = [{ tool_calls: [{ name: 'list_dir' }] }]
    const provider = scriptedProvider([call, call])
    const ids = [await collect(provider, request(user('go'))), await collect(provider, request(user('go'), said('x')))]
    expect(ids.map(([first]) => first)).toMatchObject([{ id: 'call_1_1' }, { id: 'call_2_1' }])
  })

  test('counts are estimated when they are not given', async () => {
    const { inputTokens, outputTokens } = finishOf(await play([{ text: 'x'.repeat(400) }]))
    expect(inputTokens).toBeGreaterThan(10)
    expect(outputTokens).toBeGreaterThanOrEqual(100)
  })

  test('an error ends the turn with its kind, text and pause', async () => {
    const error = { kind: 'rate_limited', message: 'later', retry_after_ms: 100 } as const
    const { error: thrown, before } = await failure(scriptedProvider([[{ text: 'Hm' }, { error }]]))
    expect(thrown).toMatchObject({ kind: 'rate_limited', message: 'later', retryAfterMs: 100 })
    expect(before).toEqual([{ type: 'text', delta: 'Hm' }])
  })

  test('a stall of some milliseconds passes', async () => {
    expect(await play([{ stall: 1 }, { text: 'late' }])).toMatchObject([{ delta: 'late' }, { type: 'finish' }])
  })

  test('an empty turn just ends', async () => {
    expect(await play([])).toMatchObject([{ type: 'finish', reason: 'stop' }])
  })
})

describe('a script that cannot be played is refused with the place:', () => {
  test.each<[string, unknown, string]>([
    ['no script', 'hello', 'The script must be an object'],
    ['no turns', {}, 'turns is missing'],
    ['turns that are no list', { turns: 5 }, 'turns must be an array'],
    ['a turn that is none', ['hi'], 'turns.0 must be an object'],
    ['an unknown field', { turns: [], afterwards: 'x' }, 'afterwards is not a field that is known here'],
    ['an unknown step', [[{ txt: 'a' }]], 'turns.0.steps.0.txt is not a field that is known here'],
    ['an empty step', [[{ text: 'a' }], [{}]], 'turns.1.steps.0 must have one of text, tool_calls, stall, usage'],
    ['two things in a step', [[{ text: 'a', stall: 5 }]], 'turns.0.steps.0 must have one of'],
    ['a text that is none', [[{ text: 5 }]], 'turns.0.steps.0.text must be a string'],
    ['a call without a name', [[{ tool_calls: [{ id: 'a' }] }]], 'turns.0.steps.0.tool_calls.0.name is missing'],
    ['a call with two inputs', [[{ tool_calls: [{ name: 'a', input: 1, raw: '1' }] }]], 'both input and raw'],
    [
      'an unknown kind',
      [[{ error: { kind: 'odd', message: 'a' } }]],
      'turns.0.steps.0.error.kind must be one of "trans',
    ],
    ['an unknown reason', [[{ finish: 'end' }]], 'turns.0.steps.0.finish must be one of "stop", "tool_calls"'],
    ['a step after the end', [[{ finish: 'stop' }, { text: 'a' }]], 'turns.0.steps.0 must be the last step'],
    [
      'counts that are none',
      [[{ usage: { input_tokens: -1, output_tokens: 1 } }]],
      'turns.0.steps.0.usage.input_tokens',
    ],
    ['a stall that is none', [[{ stall: 'long' }]], 'turns.0.steps.0.stall'],
  ])('%s', (_what, script, says) => {
    expect(() => scriptedProvider(untyped(script))).toThrow(says)
  })
})

function play(steps: Step[]) {
  return collect(scriptedProvider([steps]), request(user('go')))
}

async function text(provider: ReturnType<typeof scriptedProvider>, messages: Message[]): Promise<string> {
  const events = await collect(provider, request(...messages))
  return events.map((event) => (event.type === 'text' ? event.delta : '')).join('')
}

/** What a file may hold, as if it had the type. */
function untyped(value: unknown): Script {
  return JSON.parse(JSON.stringify(value))
}
