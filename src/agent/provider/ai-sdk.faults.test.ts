import { createServer } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { withClocks } from './clocks.ts'
import type { Reply } from './model-server.contract.ts'
import { frames } from './model-wire.contract.ts'
import { collect, failure, finishOf, request, user } from './provider.contract.ts'
import { withRetries } from './retry.ts'
import { KEY, openAt, SERVED, type Served, serve } from './served.contract.ts'

const TURN = { text: ['Hel', 'lo.'], calls: [{ id: 'call_1', name: 'list_dir', arguments: '{"path":"."}' }] }

afterEach(() => void vi.useRealTimers())

describe.each(Object.entries(SERVED))('%s', (_name, at) => {
  verifies(
    'agent:model:wire',
    'silence before the first byte ends in a transient error, and the connection is closed',
    async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      const { provider, server } = await serve(at, { fault: { type: 'silent' } })
      const failed = failure(withClocks(provider))
      await server.asked
      await vi.advanceTimersByTimeAsync(90_000)
      const { error, before } = await failed
      expect(error).toMatchObject({ kind: 'transient', message: 'The model was silent for 90000 ms.' })
      expect(before).toEqual([])
      await server.hungUp
    },
  )

  verifies('agent:model:wire', 'silence in the middle ends in a transient error after what was said', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { provider, server } = await serve(at, { ...TURN, fault: { type: 'stall', after: at.firstText } })
    const events = withClocks(provider).stream(request(user('hello there')), new AbortController().signal)
    const iterator = events[Symbol.asyncIterator]()
    expect(await iterator.next()).toEqual({ done: false, value: { type: 'text', delta: 'Hel' } })
    const next = iterator.next().catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(120_000)
    expect(await next).toMatchObject({ kind: 'transient', message: 'The model was silent for 120000 ms.' })
    await server.hungUp
  })

  verifies(
    'agent:model:wire',
    'a stream that is cut anywhere ends in a transient error, and no call of it is told',
    async () => {
      const length = Buffer.byteLength(frames(at.dialect, TURN).join(''))
      for (const part of [0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9]) {
        const { provider } = await serve(at, { ...TURN, fault: { type: 'cut', bytes: Math.floor(length * part) } })
        const { error, before } = await failure(provider)
        expect(error.kind, `cut at ${part}`).toBe('transient')
        expect(before.filter(({ type }) => type !== 'text')).toEqual([])
      }
    },
  )

  test('a stream that ends too early is told from one that is complete', async () => {
    const count = frames(at.dialect, TURN).length
    const outcomes: string[] = []
    for (let after = 0; after <= count; after++) {
      const { provider } = await serve(at, { ...TURN, fault: { type: 'end', after } })
      const events = await collect(provider, request(user('hello there'))).catch(
        (error: { kind: string }) => error.kind,
      )
      outcomes.push(Array.isArray(events) ? finishOf(events).reason : events)
      if (Array.isArray(events)) expect(events.filter(({ type }) => type === 'tool_call')).toHaveLength(1)
    }
    expect(outcomes.join(' ')).toMatch(/^(transient ){4,}tool_calls( tool_calls)*$/)
  })

  verifies('agent:model:wire', '429 is rate_limited, with the pause that the server asks for', async () => {
    const limit = (headers: Record<string, string>) =>
      refuse(at, { status: 429, message: 'Slow down', code: 'rate_limit_error', headers })
    expect(await limit({ 'retry-after': '7' })).toMatchObject({ kind: 'rate_limited', retryAfterMs: 7_000 })
    expect(await limit({ 'retry-after-ms': '1500' })).toMatchObject({ kind: 'rate_limited', retryAfterMs: 1_500 })
    expect(await limit({})).toMatchObject({ kind: 'rate_limited', retryAfterMs: null })
    const inTenSeconds = new Date(Date.now() + 10_000).toUTCString()
    const { retryAfterMs } = await limit({ 'retry-after': inTenSeconds })
    expect(retryAfterMs).toBeGreaterThan(0)
    expect(retryAfterMs).toBeLessThanOrEqual(10_000)
  })

  test('a refused key is auth, and no part of it is told', async () => {
    for (const status of [401, 403]) {
      const message = `Incorrect API key provided: ${KEY}. See https://x.example/?key=${KEY}`
      const error = await refuse(at, { status, message, code: 'invalid_api_key' })
      expect(error.kind).toBe('auth')
      expect(error.message).toContain('THE_KEY')
      expect(`${error.message} ${error.stack} ${String(error.cause)}`).not.toMatch(/sk-test|0123456789/)
    }
  })

  test('5xx, 408 and 529 are transient', async () => {
    for (const status of [500, 502, 503, 529, 408])
      expect(await refuse(at, { status, message: 'Sorry', code: 'server_error' })).toMatchObject({ kind: 'transient' })
  })

  test('another 4xx is bad_request with what was said, without keys', async () => {
    const error = await refuse(at, { status: 400, message: `No such field, ${KEY}`, code: 'invalid_request_error' })
    expect(error).toMatchObject({ kind: 'bad_request', retryAfterMs: null })
    expect(error.message).toMatch(/refused the request \(400\): No such field, …$/)
    expect((await refuse(at, { status: 404, message: 'No model m-1', code: 'not_found_error' })).message).toContain(
      'm-1',
    )
  })

  test('an answer that is no JSON still has its status', async () => {
    for (const [status, kind] of [
      [502, 'transient'],
      [404, 'bad_request'],
      [413, 'context_overflow'],
    ] as const) {
      const { provider } = await serve(at, { fault: { type: 'body', status, body: '<html>Oops</html>' } })
      expect((await failure(provider)).error.kind).toBe(kind)
    }
  })

  test('garbage instead of a stream is transient', async () => {
    const texts = ['<html>Welcome</html>', 'data: {"no', 'data: 5\n\n', 'data: {"foo":1}\n\n', '\u0000\u0001\n\n']
    for (const body of texts) {
      const headers = { 'content-type': 'text/event-stream' }
      const { provider } = await serve(at, { fault: { type: 'body', status: 200, body, headers } })
      const { error, before } = await failure(provider)
      expect(error.kind, body).toBe('transient')
      expect(before).toEqual([])
    }
  })

  test('a server that is not there is transient', async () => {
    const { error } = await failure(await openAt(`http://127.0.0.1:${await closedPort()}/v1`, at.vendor, at.elsewhere))
    expect(error).toMatchObject({ kind: 'transient', retryAfterMs: null })
  })

  test('a retry gets the answer after two failures', async () => {
    const failed: Reply = { fault: { type: 'refuse', status: 503, message: 'Busy' } }
    const { provider, server } = await serve(at, failed, { fault: { type: 'cut', bytes: 3 } }, { text: ['Here.'] })
    const events = await collect(withRetries(provider, { sleep: async () => {} }), request(user('hello there')))
    expect(events).toMatchObject([{ type: 'text', delta: 'Here.' }, { type: 'finish' }])
    expect(server.received).toHaveLength(3)
  })
})

describe('context overflow', () => {
  const { 'openai, Responses API': responses, 'openai-compatible': compatible, anthropic, google } = SERVED
  test.each([
    ['openai', responses, 400, 'Your input exceeds the context window of this model.', 'context_length_exceeded'],
    ['chat', compatible, 400, "This model's maximum context length is 8192 tokens. However, you requested 9000.", 'x'],
    [
      'vLLM',
      compatible,
      400,
      "This model's maximum context length is 4096 tokens, your prompt has 5000.",
      'BadRequest',
    ],
    [
      'llama.cpp',
      compatible,
      400,
      'the request exceeds the available context size, try increasing it',
      'exceed_context',
    ],
    ['Groq', compatible, 400, 'Please reduce the length of the messages or completion.', 'context_length_exceeded'],
    ['anthropic', anthropic, 400, 'prompt is too long: 213462 tokens > 200000 maximum', 'invalid_request_error'],
    ['anthropic, bytes', anthropic, 413, 'Request exceeds the maximum size', 'request_too_large'],
    [
      'google',
      google,
      400,
      'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
      'INVALID_ARGUMENT',
    ],
  ])('as %s says it', async (_who, at, status, message, code) => {
    expect((await refuse(at!, { status, message, code })).kind).toBe('context_overflow')
  })
})

describe('errors in a stream that has begun', () => {
  test('an overloaded Anthropic is transient, before and after the first text', async () => {
    const at = SERVED.anthropic!
    const overloaded =
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    const begun = frames('anthropic', { text: ['Hel'] }).slice(0, at.firstText)
    const early = await serve(at, { fault: { type: 'says', pieces: [overloaded] } })
    expect((await failure(early.provider)).error.kind).toBe('transient')
    const late = await serve(at, { fault: { type: 'says', pieces: [...begun, overloaded] } })
    const { error, before } = await failure(late.provider)
    expect(error).toMatchObject({ kind: 'transient', message: 'anthropic failed (503): Overloaded' })
    expect(before).toEqual([{ type: 'text', delta: 'Hel' }])
  })

  test('a rate limit of OpenAI in the stream is rate_limited, an overflow context_overflow', async () => {
    const says = async (at: Served, code: string, message: string) => {
      const begun = frames(at.dialect, { text: ['Hel'] }).slice(0, at.firstText)
      const error = at.dialect === 'chat' ? { error: { message, code, type: code } } : { type: 'error', code, message }
      const pieces = [...begun, `data: ${JSON.stringify({ sequence_number: 9, ...error })}\n\n`]
      const { provider } = await serve(at, { fault: { type: 'says', pieces } })
      return (await failure(provider)).error.kind
    }
    for (const at of [SERVED['openai, Responses API']!, SERVED['openai-compatible']!]) {
      expect(await says(at, 'rate_limit_exceeded', 'Too fast')).toBe('rate_limited')
      expect(await says(at, 'context_length_exceeded', 'Too long')).toBe('context_overflow')
      expect(await says(at, 'server_error', 'Oops')).toBe('transient')
    }
  })

  test('a call that Google could not finish is transient', async () => {
    const piece = { candidates: [{ content: { parts: [] }, finishReason: 'MALFORMED_FUNCTION_CALL' }] }
    const fault = { type: 'says', pieces: [`data: ${JSON.stringify(piece)}\n\n`] } as const
    const { provider } = await serve(SERVED.google!, { fault })
    expect((await failure(provider)).error.kind).toBe('transient')
  })
})

test('no money left is no rate limit', async () => {
  const quota = { status: 429, message: 'You exceeded your current quota', code: 'insufficient_quota' }
  expect((await refuse(SERVED['openai-compatible']!, quota)).kind).toBe('other')
})

test('Google says how long to wait in the body, and refuses a key with a 400', async () => {
  const says = async (status: number, error: object) => {
    const body = JSON.stringify({ error: { code: status, status: 'X', message: 'm', ...error } })
    return (await failure((await serve(SERVED.google!, { fault: { type: 'body', status, body } })).provider)).error
  }
  const retry = { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '3.5s' }] }
  expect(await says(429, retry)).toMatchObject({ kind: 'rate_limited', retryAfterMs: 3_500 })
  expect((await says(400, { message: 'API key not valid. Please pass a valid API key.' })).kind).toBe('auth')
})

async function refuse(
  at: Served,
  fault: { status: number; message: string; code: string; headers?: Record<string, string> },
) {
  const { provider } = await serve(at, { fault: { type: 'refuse', ...fault } })
  const { error, before } = await failure(provider)
  expect(before).toEqual([])
  return error
}

/** A port where nobody listens any more. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
