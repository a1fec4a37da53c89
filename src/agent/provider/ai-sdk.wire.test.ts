import { expect, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { Message } from '../model.ts'
import { frames } from './model-wire.contract.ts'
import { collect, finishOf, LIST_DIR, message, request, user } from './provider.contract.ts'
import { KEY, openAt, SERVED, type Served, serve } from './served.contract.ts'

const RESPONSES = servedAs('openai, Responses API')
const COMPATIBLE = servedAs('openai-compatible')
const ELSEWHERE = servedAs('openai at another address, chat completions')
const ANTHROPIC = servedAs('anthropic')
const GOOGLE = servedAs('google')

/** With what a transcript may hold: blanks, ids of another vendor, the same id twice, an input that is no object. */
const HISTORY: Message[] = [
  user('look around'),
  message('assistant', [
    { type: 'text', text: ' \n' },
    { type: 'text', text: 'I look.' },
    { type: 'tool_use', id: 'functions.list_dir:0', name: 'list_dir', input: { path: '.' } },
    { type: 'tool_use', id: 'functions.list_dir:0', name: 'list_dir', input: 'oops' },
  ]),
  message('tool', [
    { type: 'tool_result', toolUseId: 'functions.list_dir:0', content: 'a.txt', isError: false },
    { type: 'tool_result', toolUseId: 'functions.list_dir:0', content: '', isError: true },
  ]),
  message('assistant', []),
  user('and now?'),
]

verifies('agent:model:wire', 'chat completions gets the messages, the results, the tools and the key', async () => {
  for (const at of [COMPATIBLE, ELSEWHERE]) {
    const { path, headers, body } = await sent(at, HISTORY)
    expect(path).toBe('/v1/chat/completions')
    expect(headers.authorization).toBe(`Bearer ${KEY}`)
    const call = (id: string, args: string) => ({
      id,
      type: 'function',
      function: { name: 'list_dir', arguments: args },
    })
    expect(body).toEqual({
      model: 'm-1',
      stream: true,
      stream_options: { include_usage: true },
      tool_choice: 'auto',
      tools: [{ type: 'function', function: LIST_DIR }],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'look around' },
        {
          role: 'assistant',
          content: 'I look.',
          tool_calls: [
            call('functions_list_dir_0', '{"path":"."}'),
            call('functions_list_dir_0_2', '{"value":"oops"}'),
          ],
        },
        { role: 'tool', tool_call_id: 'functions_list_dir_0', content: 'a.txt' },
        { role: 'tool', tool_call_id: 'functions_list_dir_0_2', content: '(no output)' },
        { role: 'user', content: 'and now?' },
      ],
    })
  }
})

verifies('agent:model:wire', 'the Responses API gets them as items, and is asked to keep nothing', async () => {
  const { path, headers, body } = await sent(RESPONSES, HISTORY)
  expect(path).toBe('/v1/responses')
  expect(headers.authorization).toBe(`Bearer ${KEY}`)
  const call = (call_id: string, args: string) => ({
    type: 'function_call',
    call_id,
    name: 'list_dir',
    arguments: args,
  })
  expect(body).toMatchObject({ store: false, stream: true, tool_choice: 'auto', model: 'm-1' })
  expect(body.tools).toEqual([{ type: 'function', ...LIST_DIR, strict: false }])
  expect(body.input).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'input_text', text: 'look around' }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
    call('functions_list_dir_0', '{"path":"."}'),
    call('functions_list_dir_0_2', '{"value":"oops"}'),
    { type: 'function_call_output', call_id: 'functions_list_dir_0', output: 'a.txt' },
    { type: 'function_call_output', call_id: 'functions_list_dir_0_2', output: '(no output)' },
    { role: 'user', content: [{ type: 'input_text', text: 'and now?' }] },
  ])
})

verifies(
  'agent:model:wire',
  'Anthropic gets alternating messages, the failure of a call, and marks for its cache',
  async () => {
    const { path, headers, body } = await sent(ANTHROPIC, HISTORY)
    expect(path).toBe('/v1/messages')
    expect(headers['x-api-key']).toBe(KEY)
    const cache_control = { type: 'ephemeral' }
    expect(body.system).toEqual([{ type: 'text', text: 'Be brief.', cache_control }])
    expect(body.tool_choice).toEqual({ type: 'auto' })
    expect(body.tools).toMatchObject([
      { name: 'list_dir', description: LIST_DIR.description, input_schema: LIST_DIR.parameters },
    ])
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'look around' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'functions_list_dir_0', name: 'list_dir', input: { path: '.' } },
          { type: 'tool_use', id: 'functions_list_dir_0_2', name: 'list_dir', input: { value: 'oops' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'functions_list_dir_0', content: 'a.txt' },
          { type: 'tool_result', tool_use_id: 'functions_list_dir_0_2', content: '(no output)', is_error: true },
          { type: 'text', text: 'and now?', cache_control },
        ],
      },
    ])
  },
)

verifies('agent:model:wire', 'Google gets contents and declarations', async () => {
  const { path, headers, body } = await sent(GOOGLE, HISTORY)
  expect(path).toBe('/v1/models/m-1:streamGenerateContent?alt=sse')
  expect(headers['x-goog-api-key']).toBe(KEY)
  expect(body.systemInstruction).toEqual({ parts: [{ text: 'Be brief.' }] })
  expect(body.tools).toMatchObject([{ functionDeclarations: [{ name: 'list_dir' }] }])
  expect(body.contents).toMatchObject([
    { role: 'user', parts: [{ text: 'look around' }] },
    {
      role: 'model',
      parts: [
        { text: 'I look.' },
        { functionCall: { name: 'list_dir', args: { path: '.' } } },
        { functionCall: { name: 'list_dir', args: { value: 'oops' } } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { name: 'list_dir', response: { content: 'a.txt' } } },
        { functionResponse: { name: 'list_dir', response: { content: '(no output)' } } },
      ],
    },
    { role: 'user', parts: [{ text: 'and now?' }] },
  ])
})

test('that nothing may be called goes over the wire, with the tools still told', async () => {
  const none = async (at: Served) => {
    const { provider, server } = await serve(at, { text: ['ok'] })
    await collect(provider, { ...request(user('hi')), toolChoice: 'none' })
    return server.received[0]!.body
  }
  for (const at of [COMPATIBLE, ELSEWHERE, RESPONSES])
    expect(await none(at)).toMatchObject({ tool_choice: 'none', tools: [{ type: 'function' }] })
  expect(await none(ANTHROPIC)).toMatchObject({ tool_choice: { type: 'none' }, tools: [{ name: 'list_dir' }] })
  expect(await none(GOOGLE)).toMatchObject({ toolConfig: { functionCallingConfig: { mode: 'NONE' } } })
})

test('without tools and without a system prompt neither is sent', async () => {
  for (const at of Object.values(SERVED)) {
    const { provider, server } = await serve(at, { text: ['ok'] })
    await collect(provider, { system: '', messages: [user('hi')], tools: [], toolChoice: 'none' })
    const { body } = server.received[0]!
    expect(body).not.toHaveProperty('tools')
    expect(body).not.toHaveProperty('tool_choice')
    expect(JSON.stringify(body)).not.toMatch(/"system/)
  }
})

test('a call is told even when none was allowed', async () => {
  for (const at of Object.values(SERVED)) {
    const calls = [{ id: 'call_1', name: 'list_dir', arguments: '{"path":"a"}' }]
    const { provider } = await serve(at, { calls })
    const events = await collect(provider, { ...request(user('hi')), toolChoice: 'none' })
    expect(events).toMatchObject([
      { type: 'tool_call', id: expect.any(String), name: 'list_dir', input: { path: 'a' } },
      { type: 'finish', reason: 'tool_calls' },
    ])
  }
})

test('several calls come in order, with those of unknown tools and those that are no JSON', async () => {
  const calls = [
    { id: 'call_1', name: 'list_dir', arguments: '{"path":"a"}' },
    { id: 'call_2', name: 'list_dir', arguments: '{"path":' },
    { id: 'call_3', name: 'no_such_tool', arguments: '{"x":1}' },
    { id: 'call_4', name: 'no_such_tool', arguments: '{oops' },
    { id: 'call_5', name: 'list_dir', arguments: '' },
  ]
  for (const at of [COMPATIBLE, ELSEWHERE, RESPONSES, ANTHROPIC]) {
    const { provider } = await serve(at, { text: ['So: '], calls })
    const events = await collect(provider, request(user('hi')))
    expect(events).toMatchObject([
      { type: 'text', delta: 'So: ' },
      { type: 'tool_call', id: 'call_1', name: 'list_dir', input: { path: 'a' } },
      { type: 'tool_call', id: 'call_2', name: 'list_dir', input: {}, invalid: '{"path":' },
      { type: 'tool_call', id: 'call_3', name: 'no_such_tool', input: { x: 1 } },
      { type: 'tool_call', id: 'call_4', name: 'no_such_tool', input: {}, invalid: '{oops' },
      { type: 'tool_call', id: 'call_5', name: 'list_dir', input: {} },
      { type: 'finish', reason: 'tool_calls' },
    ])
    expect(events[1]).not.toHaveProperty('invalid')
    expect(events[3]).not.toHaveProperty('invalid')
  }
})

test('an answer that was cut by its length says so', async () => {
  for (const at of Object.values(SERVED)) {
    const { provider } = await serve(at, { text: ['Once upon'], cutShort: true })
    expect(finishOf(await collect(provider, request(user('hi')))).reason).toBe('length')
  }
})

test('the tokens are the ones the vendor counted, or estimated where it did not', async () => {
  for (const at of Object.values(SERVED)) {
    const { provider } = await serve(at, { text: ['Yes'], usage: { input: 120, output: 34 } })
    expect(finishOf(await collect(provider, request(user('hi'))))).toMatchObject({ inputTokens: 120, outputTokens: 34 })
  }
  const uncounted = frames('chat', { text: ['Yes'] }).filter((piece) => !piece.includes('"usage"'))
  const { provider } = await serve(COMPATIBLE, { fault: { type: 'says', pieces: uncounted } })
  const { inputTokens, outputTokens } = finishOf(await collect(provider, request(user('hi'))))
  expect(inputTokens).toBeGreaterThan(10)
  expect(outputTokens).toBeGreaterThan(0)
})

test('thinking and keep-alives are signs of life, not text', async () => {
  for (const [at, dialect] of [
    [COMPATIBLE, 'chat'],
    [ANTHROPIC, 'anthropic'],
  ] as const) {
    const pieces = [': keep-alive\n\n', ...frames(dialect, { thinking: 'Hmm.', text: ['Yes'] })]
    const { provider } = await serve(at, { fault: { type: 'says', pieces } })
    const onActivity = vi.fn()
    const events = await collect(provider, { ...request(user('hi')), onActivity })
    expect(events).toMatchObject([{ type: 'text', delta: 'Yes' }, { type: 'finish' }])
    expect(onActivity.mock.calls.length).toBeGreaterThanOrEqual(2)
  }
})

test('DeepSeek gets a place for its thoughts with each call; others do not', async () => {
  const messages = async (model: string) => {
    const { server } = await serve(COMPATIBLE, { text: ['ok'] })
    await collect(await openAt(`${server.url}/v1`, 'openai-compatible', false, model), request(...HISTORY))
    return server.received[0]!.body.messages
  }
  expect(JSON.stringify(await messages('deepseek-v4-pro')).match(/"reasoning_content":""/g)).toHaveLength(1)
  expect(JSON.stringify(await messages('glm-5'))).not.toContain('reasoning_content')
})

test('Anthropic at another address is asked for long answers without fields of its own', async () => {
  const { server } = await serve(ANTHROPIC, { text: ['ok'] })
  await collect(await openAt(`${server.url}/v1`, 'anthropic', true, 'glm-5'), request(user('hi')))
  const { body } = server.received[0]!
  expect(body.max_tokens).toBe(32_000)
  expect(JSON.stringify(body.tools)).not.toContain('eager')
})

test('nothing is written to the console, and no rejection is left over', async () => {
  const written = vi.spyOn(console, 'error')
  const warned = vi.spyOn(console, 'warn')
  const rejected = vi.fn()
  process.on('unhandledRejection', rejected)
  for (const at of Object.values(SERVED)) {
    const { provider } = await serve(at, { fault: { type: 'refuse', status: 500, message: 'Oops' } })
    await expect(collect(provider, request(user('hi')))).rejects.toThrow()
  }
  await new Promise(setImmediate)
  process.off('unhandledRejection', rejected)
  expect([written, warned, rejected].map((spy) => spy.mock.calls)).toEqual([[], [], []])
})

async function sent(at: Served, messages: Message[]) {
  const { provider, server } = await serve(at, { text: ['ok'] })
  await collect(provider, request(...messages))
  expect(server.received).toHaveLength(1)
  return server.received[0]!
}

function servedAs(name: string): Served {
  const found = SERVED[name]
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}
