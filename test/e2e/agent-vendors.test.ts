import { describe, expect, test } from 'vitest'
import { type Fault, modelServer, type Reply } from '../../src/agent/provider/model-server.contract.ts'
import { frames } from '../../src/agent/provider/model-wire.contract.ts'
import { namesOf, startTestAgent, type TestAgentOptions } from '../support/test-agent.ts'

const KEY = 'sk-test-0123456789abcdefghij'
const CALLS: Reply = { calls: [{ id: 'call_1', name: 'list_dir', arguments: '{"path":"."}' }] }
const ANSWER: Reply = { text: ['There is ', 'nothing.'] }
const QUICK = { firstMs: 1, mostMs: 5 }

const VENDORS = {
  openai: { dialect: 'chat', firstText: 2, overflow: 'context_length_exceeded' },
  anthropic: { dialect: 'anthropic', firstText: 4, overflow: 'invalid_request_error' },
} as const

/** An agent whose model is a server that speaks the vendor's format over real sockets. */
async function served(vendor: keyof typeof VENDORS, replies: Reply[], options: Partial<TestAgentOptions> = {}) {
  const server = await modelServer(...replies)
  const name = vendor.toUpperCase()
  const agent = await startTestAgent({
    model: `${vendor}:m-1`,
    env: { [`${name}_API_KEY`]: KEY, [`${name}_BASE_URL`]: `${server.url}/v1` },
    retries: QUICK,
    modelTries: 3,
    ...options,
  })
  return { server, agent, play: async (goal = 'look around') => agent.finish(await agent.session(), goal) }
}

const failing = (fault: Fault, turn: Reply = ANSWER): Reply => ({ ...turn, fault })
const refusing = (status: number, more: Partial<Extract<Fault, { type: 'refuse' }>> = {}) =>
  failing({ type: 'refuse', status, message: 'Sorry', ...more })

describe.each(['openai', 'anthropic'] as const)('%s', (vendor) => {
  const { dialect, firstText, overflow } = VENDORS[vendor]
  const tooLong = refusing(400, { code: overflow, message: 'prompt is too long: 210000 tokens > 200000 maximum' })

  test('a run with a tool call goes over the wire, and the key only in a header', async () => {
    const { play, server, agent } = await served(vendor, [CALLS, ANSWER])
    const events = await play()
    expect(namesOf(events)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
    expect(events.at(-1)?.data).toMatchObject({ finish_reason: 'NoMoreToolCalls', total_steps: 2 })
    expect(events.at(-1)?.data.usage).toMatchObject({ input_tokens: 22, output_tokens: 14 })
    expect(server.received).toHaveLength(2)
    expect(JSON.stringify(server.received.map(({ headers }) => headers))).toContain(KEY)
    expect(JSON.stringify(server.received.map(({ path, body }) => [path, body]))).not.toContain(KEY)
    expect(JSON.stringify(events)).not.toContain(KEY)
    expect((await agent.call('GET', '/health', { headers: { accept: 'application/json' } })).body.model).toBe(
      `${vendor}:m-1`,
    )
  })

  test('silence before the first byte is tried again, and in the end told', async () => {
    const quick = { firstByteMs: 60, modelTries: 2 }
    const recovering = await served(vendor, [failing({ type: 'silent' }), ANSWER], { ...quick, firstByteMs: 1_000 })
    expect(namesOf(await recovering.play())).toEqual(['message', 'done'])
    const { play, server, agent } = await served(vendor, [failing({ type: 'silent' })], quick)
    const events = await play()
    expect(events.map(({ event }) => event)).toEqual(['error', 'done'])
    expect(events[0]?.data).toMatchObject({ code: 'provider_transient', message: expect.stringContaining('silent') })
    expect(events[1]?.data.finish_reason).toBe('ProviderStop')
    expect(server.received).toHaveLength(2)
    const alone = await agent.call('POST', '/run', { body: { goal: 'x' } })
    expect([alone.status, alone.body.error.code]).toEqual([502, 'provider_failed'])
  })

  test('silence in the middle ends the run after what was said, and is not tried again', async () => {
    const stalled = failing({ type: 'stall', after: firstText })
    const { play, server, agent } = await served(vendor, [stalled], { betweenChunksMs: 200 })
    const events = await play()
    expect(events.map(({ event }) => event)).toEqual(['partial_message', 'error', 'done'])
    expect(events.at(-1)?.data.finish_reason).toBe('ProviderStop')
    expect(server.received).toHaveLength(1)
    await server.hungUp
    const [session] = (await agent.call('GET', '/sessions')).body
    const { transcript, status } = (await agent.call('GET', `/sessions/${session.session_id}`)).body
    expect(status).toBe('idle')
    expect(transcript.at(-1)).toMatchObject({ role: 'assistant', content: [{ type: 'text', text: 'There is ' }] })
  })

  test('a turn that takes too long in all is ended', async () => {
    const { play } = await served(vendor, [failing({ type: 'stall', after: firstText })], { wholeTurnMs: 300 })
    expect((await play()).map(({ event }) => event)).toEqual(['partial_message', 'error', 'done'])
  })

  test('a stream cut after any number of bytes ends in an answer or in an error, once', async () => {
    const length = Buffer.byteLength(frames(dialect, ANSWER).join(''))
    for (const part of [0, 0.2, 0.4, 0.6, 0.8, 0.95]) {
      const cut = failing({ type: 'cut', bytes: Math.floor(length * part) })
      const { play } = await served(vendor, [cut, ANSWER])
      const events = await play()
      const names = namesOf(events)
      const partials = events.filter(({ event }) => event === 'partial_message').map(({ data }) => data.text)
      // Nothing had been told: asked again. Something had: the run says that it broke off.
      const whole = partials.join('') === 'There is nothing.' && names[0] === 'message'
      expect(whole ? names : names.slice(-2), `cut at ${part}`).toEqual(whole ? ['message', 'done'] : ['error', 'done'])
      if (part === 0) expect(whole).toBe(true)
    }
  })

  test('429 is waited for as long as the vendor asks, if that is not too long', async () => {
    const soon = await served(vendor, [refusing(429, { headers: { 'retry-after-ms': '30' } }), ANSWER])
    expect(namesOf(await soon.play())).toEqual(['message', 'done'])
    const metrics = (await soon.agent.call('GET', '/metrics')).text
    expect(metrics).toContain('switchboard_agent_model_retries_total{failure="rate_limited"} 1')
    const late = await served(vendor, [refusing(429, { headers: { 'retry-after': '3600' } })])
    expect((await late.play()).map(({ event, data }) => data.code ?? event)).toEqual(['provider_rate_limited', 'done'])
    expect(late.server.received).toHaveLength(1)
  })

  test('5xx is tried again, and in the end told', async () => {
    const passing = await served(vendor, [refusing(503), refusing(500), ANSWER])
    expect(namesOf(await passing.play())).toEqual(['message', 'done'])
    const lasting = await served(vendor, [refusing(502)])
    const events = await lasting.play()
    expect(events.map(({ event, data }) => data.code ?? event)).toEqual(['provider_transient', 'done'])
    expect(lasting.server.received).toHaveLength(3)
  })

  test('a conversation that is too long is made shorter; one that cannot be ends with ContextOverflow', async () => {
    const alone = await served(vendor, [tooLong])
    expect((await alone.play()).map(({ data }) => data.code ?? data.finish_reason)).toEqual([
      'context_overflow',
      'ContextOverflow',
    ])

    const long = await served(vendor, [CALLS, ANSWER, CALLS, ANSWER, tooLong, { text: ['In short.'] }, ANSWER])
    const id = await long.agent.session()
    await long.agent.finish(id, 'goal-one')
    await long.agent.finish(id, 'second')
    const { events_url: path } = await long.agent.run(id, 'third')
    const reader = await long.agent.events(`${path}&extended=1`)
    const events = await reader.until('done')
    expect(events.map(({ event }) => event)).toContain('compaction')
    expect(events.at(-1)?.data.finish_reason).toBe('NoMoreToolCalls')
    const last = JSON.stringify(long.server.received.at(-1)?.body)
    expect(last).toContain('In short.')
    expect(last).not.toContain('goal-one')
    // The next run starts from the summary; people see the whole conversation, and not the summary.
    await long.agent.finish(id, 'fourth')
    const asked = JSON.stringify(long.server.received.at(-1)?.body)
    expect([asked.includes('In short.'), asked.includes('goal-one')]).toEqual([true, false])
    const shown = JSON.stringify((await long.agent.call('GET', `/sessions/${id}`)).body.transcript)
    expect([shown.includes('In short.'), shown.includes('goal-one')]).toEqual([false, true])
  })
})
