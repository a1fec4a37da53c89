import { describe, expect, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { Message } from '../model.ts'
import { demoProvider } from './demo.ts'
import type { ProviderRequest, ToolDescription, TurnEvent } from './port.ts'
import { collect, finishOf, message, user } from './provider.contract.ts'

const TOOLS = [
  tool('list_dir', 'path'),
  tool('read_file', 'path'),
  tool('write_file', 'path', 'content'),
  tool('shell', 'command'),
  tool('grep', 'pattern'),
  tool('propose_plan', 'plan'),
]

describe('it calls the tool that the words ask for, and says nothing beside it:', () => {
  for (const [goal, name, input] of [
    ['list files', 'list_dir', { path: '.' }],
    ['List the files.', 'list_dir', { path: '.' }],
    ['please list all files in src/kit', 'list_dir', { path: 'src/kit' }],
    ['read README.md', 'read_file', { path: 'README.md' }],
    ['Read the file docs/a-b.txt.', 'read_file', { path: 'docs/a-b.txt' }],
    ['write hello.txt: hi', 'write_file', { path: 'hello.txt', content: 'hi' }],
    ['write a/b.md: one\ntwo: three', 'write_file', { path: 'a/b.md', content: 'one\ntwo: three' }],
    ['run: ls', 'shell', { command: 'ls' }],
    ['run: list files', 'shell', { command: 'list files' }],
    ['run:\necho a\necho b', 'shell', { command: 'echo a\necho b' }],
    ['plan: tidy up, then list files', 'propose_plan', { plan: 'tidy up, then list files' }],
    ['search for TODO', 'grep', { pattern: 'TODO' }],
    ['(You were interrupted. See what is done.)\n\nread a.txt', 'read_file', { path: 'a.txt' }],
    [' (One note.)\n(Another.) \r\n\nplease list files', 'list_dir', { path: '.' }],
    ['run: (\necho a)\necho b', 'shell', { command: '(\necho a)\necho b' }],
  ] as const)
    verifies('agent:model:demo-calls', JSON.stringify(goal), async () => {
      const events = await collect(demoProvider(), asked(user(goal)))
      expect(events).toMatchObject([
        { type: 'tool_call', id: expect.stringMatching(/^demo_\d+$/), name, input },
        { type: 'finish', reason: 'tool_calls' },
      ])
      expect(finishOf(events).inputTokens).toBeGreaterThan(0)
      expect(finishOf(events).outputTokens).toBeGreaterThan(0)
    })
})

describe('any other goal gets words in at least two deltas:', () => {
  for (const goal of ['hello', 'Write me a poem', 'run', '', '汉', 'read me a story please', '"', 'x'.repeat(5_000)])
    verifies('agent:model:demo-talks', JSON.stringify(goal.slice(0, 40)), async () => {
      const events = await collect(demoProvider(), asked(user(goal)))
      expect(events.filter(({ type }) => type === 'text').length).toBeGreaterThanOrEqual(2)
      expect(finishOf(events)).toMatchObject({ reason: 'stop' })
      expect(finishOf(events).outputTokens).toBeGreaterThan(0)
      expect(words(events)).toContain('demo model')
    })

  test('also when nobody said anything', async () => {
    expect(finishOf(await collect(demoProvider(), asked())).reason).toBe('stop')
  })
})

describe('after a result it says what it found, in at least two deltas:', () => {
  test.each([
    ['list files', 'a.txt\nb.txt', false, 'There are 2 entries here: a.txt, b.txt.'],
    ['search for X', 'No line matches.', false, 'I found nothing. No line matches.'],
    ['list files', '(The folder is empty.)', false, 'The folder is empty.'],
    ['read a.txt', 'hello\nyou', false, 'The file has 2 lines. It reads: hello\nyou'],
    ['run: true', '', false, 'shell is done and had nothing to say.'],
    ['run: false', 'exit code 1', true, 'That did not work: exit code 1'],
    ['write a: b', '', true, 'That did not work: the tool said nothing.'],
    ['write a: b', 'Wrote 1 byte.', false, 'write_file is done. It says: Wrote 1 byte.'],
    ['search for x', 'a:1:x', false, 'I found 1 line: a:1:x'],
    ['list files', 'a.txt', false, 'There is 1 entry here: a.txt.'],
    ['read a.txt', 'hello', false, 'The file has 1 line. It reads: hello'],
    ['plan: rest', 'Approved.', false, 'About the plan I was told: Approved.'],
  ])('%s', async (goal, content, isError, says) => {
    const events = await collect(demoProvider(), asked(...(await afterResult(goal, content, isError))))
    expect(words(events)).toBe(says)
    expect(events.filter(({ type }) => type === 'text').length).toBeGreaterThanOrEqual(2)
    expect(events.some(({ type }) => type === 'tool_call')).toBe(false)
  })
})

test('a long result is cut, between letters', async () => {
  const events = await collect(demoProvider(), asked(...(await afterResult('run: x', '😀'.repeat(1_000), false))))
  expect(words(events).length).toBeLessThan(700)
  expect(Buffer.from(words(events)).toString()).toBe(words(events))
})

test('a second goal in the same session is answered anew, under another id', async () => {
  const before = await afterResult('list files', 'a.txt', false)
  const events = await collect(demoProvider(), asked(...before, message('assistant', []), user('read a.txt')))
  expect(events[0]).toMatchObject({ type: 'tool_call', name: 'read_file' })
  expect(events[0]).not.toMatchObject({ id: 'demo_1' })
})

test('a tool that is not offered or may not be called is asked for in words', async () => {
  const closed = { ...asked(user('run: ls')), toolChoice: 'none' } as const
  const without = { ...asked(user('run: ls')), tools: [] }
  for (const request of [closed, without]) {
    const events = await collect(demoProvider(), request)
    expect(words(events)).toContain('That needs the tool shell')
    expect(events.filter(({ type }) => type === 'text').length).toBeGreaterThanOrEqual(2)
  }
})

test('the values go under the names of the tool that is offered', async () => {
  const tools = [tool('read_file', 'file_path'), tool('shell', 'cmd')]
  const input = async (goal: string) => (await collect(demoProvider(), { ...asked(user(goal)), tools }))[0]
  expect(await input('read a.txt')).toMatchObject({ input: { file_path: 'a.txt' } })
  expect(await input('run: ls')).toMatchObject({ input: { cmd: 'ls' } })
})

test('the same request gets the same answer', async () => {
  const runs = await Promise.all([1, 2, 3].map(() => collect(demoProvider(), asked(user('hello')))))
  expect(new Set(runs.map((events) => JSON.stringify(events))).size).toBe(1)
})

test('a pause between the deltas can be asked for', async () => {
  vi.useFakeTimers()
  try {
    const reading = collect(demoProvider({ deltaMs: 30 }), asked(user('hello')))
    await vi.runAllTimersAsync()
    const events = await reading
    expect(events).toEqual(await collect(demoProvider(), asked(user('hello'))))
  } finally {
    vi.useRealTimers()
  }
})

function asked(...messages: Message[]): ProviderRequest {
  return { system: '', messages, tools: TOOLS, toolChoice: 'auto' }
}

async function afterResult(goal: string, content: string, isError: boolean): Promise<Message[]> {
  const [call] = await collect(demoProvider(), asked(user(goal)))
  if (call?.type !== 'tool_call') throw new Error(`no call for ${goal}`)
  const { id, name, input } = call
  return [
    user(goal),
    message('assistant', [{ type: 'tool_use', id, name, input }]),
    message('tool', [{ type: 'tool_result', toolUseId: id, content, isError }]),
  ]
}

function words(events: readonly TurnEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.delta : '')).join('')
}

function tool(name: string, ...fields: string[]): ToolDescription {
  const properties = Object.fromEntries(fields.map((field) => [field, { type: 'string' }]))
  return { name, description: name, parameters: { type: 'object', properties, required: fields } }
}
