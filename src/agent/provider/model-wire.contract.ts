/** What a vendor's server says in one turn, whatever its format. */
export interface ServedTurn {
  text?: readonly string[]
  /** Thinking, told before the text where the format has a place for it. */
  thinking?: string
  calls?: readonly { id: string; name: string; arguments: string }[]
  usage?: { input: number; output: number }
  cutShort?: boolean
}

/** The formats of streams, told apart by the path of the request. */
export type Dialect = 'chat' | 'responses' | 'anthropic' | 'google'

/** The format that a path speaks. */
export function dialectOf(path: string): Dialect | null {
  if (path.endsWith('/chat/completions')) return 'chat'
  if (path.endsWith('/responses')) return 'responses'
  if (path.endsWith('/messages')) return 'anthropic'
  return path.includes(':streamGenerateContent') ? 'google' : null
}

/** The pieces of the stream, one write each. */
export function frames(dialect: Dialect, turn: ServedTurn): string[] {
  return { chat, responses, anthropic, google }[dialect](turn)
}

/** An error in the body of an answer. */
export function errorBody(
  dialect: Dialect,
  status: number,
  { message, code }: { message: string; code: string },
): string {
  if (dialect === 'anthropic') return JSON.stringify({ type: 'error', error: { type: code, message } })
  if (dialect === 'google') return JSON.stringify({ error: { code: status, message, status: code } })
  return JSON.stringify({ error: { message, type: code, code, param: null } })
}

const USAGE = { input: 11, output: 7 }

function chat({ text = [], thinking, calls = [], usage = USAGE, cutShort }: ServedTurn): string[] {
  const chunk = (choices: unknown[], more = {}) =>
    data({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })
  const delta = (value: unknown) => chunk([{ index: 0, delta: value, finish_reason: null }])
  const reason = cutShort ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop'
  return [
    delta({ role: 'assistant', content: '' }),
    ...(thinking === undefined ? [] : [delta({ reasoning_content: thinking })]),
    ...text.map((content) => delta({ content })),
    ...calls.flatMap(({ id, name, arguments: args }, index) => [
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...halves(args).map((half) => delta({ tool_calls: [{ index, function: { arguments: half } }] })),
    ]),
    chunk([{ index: 0, delta: {}, finish_reason: reason }]),
    chunk([], {
      usage: { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output },
    }),
    'data: [DONE]\n\n',
  ]
}

function responses({ text = [], calls = [], usage = USAGE, cutShort }: ServedTurn): string[] {
  const event = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`
  const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
  const response = { id: 'resp_1', created_at: 1, model: 'm' }
  const says = text.map((delta) =>
    event('response.output_text.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta }),
  )
  const done = {
    ...response,
    incomplete_details: cutShort ? { reason: 'max_output_tokens' } : null,
    usage: { input_tokens: usage.input, output_tokens: usage.output },
  }
  return [
    event('response.created', { response }),
    ...(text.length === 0
      ? []
      : [
          event('response.output_item.added', { output_index: 0, item: message }),
          ...says,
          event('response.output_item.done', { output_index: 0, item: { ...message, status: 'completed' } }),
        ]),
    ...calls.flatMap(({ id, name, arguments: args }, index) => {
      const item = { id: `fc_${index}`, type: 'function_call', call_id: id, name }
      return [
        event('response.output_item.added', { output_index: index + 1, item: { ...item, arguments: '' } }),
        ...halves(args).map((delta) =>
          event('response.function_call_arguments.delta', { item_id: item.id, output_index: index + 1, delta }),
        ),
        event('response.output_item.done', {
          output_index: index + 1,
          item: { ...item, arguments: args, status: 'completed' },
        }),
      ]
    }),
    event(cutShort ? 'response.incomplete' : 'response.completed', { response: done }),
  ]
}

function anthropic({ text = [], thinking, calls = [], usage = USAGE, cutShort }: ServedTurn): string[] {
  const event = (type: string, more: object = {}) => `event: ${type}\n${data({ type, ...more })}`
  const block = (index: number, content_block: object, deltas: object[]) => [
    event('content_block_start', { index, content_block }),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ]
  const stop_reason = cutShort ? 'max_tokens' : calls.length > 0 ? 'tool_use' : 'end_turn'
  const says = text.map((piece) => ({ type: 'text_delta', text: piece }))
  return [
    event('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: usage.input, output_tokens: 1 },
      },
    }),
    event('ping'),
    ...(thinking === undefined
      ? []
      : block(0, { type: 'thinking', thinking: '', signature: '' }, [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature: 'c2ln' },
        ])),
    ...(says.length === 0 ? [] : block(1, { type: 'text', text: '' }, says)),
    ...calls.flatMap(({ id, name, arguments: args }, index) =>
      block(
        index + 2,
        { type: 'tool_use', id, name, input: {} },
        halves(args).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      ),
    ),
    event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: usage.output } }),
    event('message_stop'),
  ]
}

function google({ text = [], calls = [], usage = USAGE, cutShort }: ServedTurn): string[] {
  const chunk = (parts: unknown[], more: object = {}) =>
    data({
      candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
      modelVersion: 'm',
      responseId: 'r1',
    })
  const last = {
    candidates: [
      { content: { role: 'model', parts: [{ text: '' }] }, finishReason: cutShort ? 'MAX_TOKENS' : 'STOP', index: 0 },
    ],
    usageMetadata: {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output,
      totalTokenCount: usage.input + usage.output,
    },
  }
  return [
    ...text.map((piece) => chunk([{ text: piece }])),
    // This format has no way to write arguments that are no JSON.
    ...calls.map(({ id, name, arguments: args }) => chunk([{ functionCall: { id, name, args: JSON.parse(args) } }])),
    data(last),
  ]
}

function data(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
}
