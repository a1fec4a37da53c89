import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { type AgentClient, AgentClientError, type AgentEvent, agentClient } from '../../src/client/agent-client.ts'
import { type Fault, startFlakyProxy } from '../support/flaky-proxy.ts'
import { soon } from '../support/soon.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const WORDS = Array.from({ length: 12 }, (_, index) => `word ${index} `)
const TALKING: Script = {
  turns: [
    { match: 'talk', steps: [{ tool_calls: [{ name: 'list_dir', input: {} }] }] },
    { match: 'talk', steps: WORDS.flatMap((text) => [{ text }, { stall: 35 }]) },
    { match: 'wait', steps: [{ text: 'so far' }, { stall: 'forever' }] },
    { match: 'fail', steps: [{ error: { kind: 'bad_request', message: 'not today' } }] },
  ],
  after: 'That is all.',
}

/** A client that does not wait between tries, and what it would have waited. */
function hasty(url: string, options: { apiKey?: string; idleMs?: number; patienceMs?: number } = {}) {
  const pauses: number[] = []
  const pause = async (ms: number) => {
    pauses.push(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { client: agentClient({ url, pause, ...options }), pauses }
}

async function gather(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const all: AgentEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

async function failureOf(promise: Promise<unknown>): Promise<AgentClientError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof AgentClientError)) throw new Error(`not refused: ${error}`)
  return error
}

const names = (events: readonly AgentEvent[]) =>
  events.map(({ event }) => event).filter((name) => name !== 'partial_message')

verifies('agent:client:calls', 'every call of the client does what it says', async () => {
  const agent = await startTestAgent({ script: TALKING, authKeys: ['key-of-ann'] })
  const client = agentClient({ url: `${agent.url}/`, apiKey: 'key-of-ann' })
  expect(await client.health()).toEqual({ status: 'ok', model: expect.stringMatching(/^scripted:/) })
  expect((await client.tools()).map(({ name }) => name)).toContain('list_dir')

  const { session_id: id } = await client.createSession({ title: 'first', system_prompt: 'Be brief.' })
  expect(await client.session(id)).toMatchObject({ title: 'first', system_prompt: 'Be brief.', turn_count: 0 })
  expect(await client.rename(id, 'renamed')).toMatchObject({ session_id: id, title: 'renamed' })

  expect(await client.cancel(id)).toBe(false)
  const receipt = await client.run(id, 'wait', { max_steps: 3 })
  expect(receipt).toMatchObject({ session_id: id, status: 'running' })
  expect(await client.cancel(id)).toBe(true)
  expect(await client.runs(id)).toMatchObject([{ run_id: receipt.run_id, goal: 'wait', finish_reason: 'Cancelled' }])

  const forked = await client.fork(id, { title: 'copy', messages: 1 })
  expect(forked).toMatchObject({ forked_from: id })
  expect((await client.session(forked.session_id)).transcript).toHaveLength(1)

  await client.remove(id)
  expect(await failureOf(client.session(id))).toMatchObject({ code: 'not_found', status: 404 })
  expect(await client.statelessRun('hello', { max_steps: 2 })).toMatchObject({
    status: 'finished',
    finish_reason: 'NoMoreToolCalls',
  })
})

test('sessions come in pages', async () => {
  const agent = await startTestAgent()
  const client = agentClient({ url: agent.url })
  const made: string[] = []
  for (const title of ['a', 'b', 'c']) made.unshift((await client.createSession({ title })).session_id)
  expect(await client.listSessions()).toMatchObject({ sessions: [{}, {}, {}], next: null })
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<AgentClient['listSessions']>> = await client.listSessions({
      limit: 2,
      ...(cursor === null ? {} : { cursor }),
    })
    seen.push(...page.sessions.map(({ session_id }) => session_id))
    cursor = page.next
  } while (cursor !== null)
  expect(seen).toEqual(made)
})

test('a key makes a session and a run once', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const client = agentClient({ url: agent.url })
  const make = () => client.createSession({ title: 'x' }, { idempotencyKey: 'k' })
  const { session_id: id } = await make()
  expect((await make()).session_id).toBe(id)
  const first = await client.run(id, 'wait', { idempotencyKey: 'r' })
  expect(await client.run(id, 'wait', { idempotencyKey: 'r' })).toEqual(first)
  expect(await failureOf(client.run(id, 'another', { idempotencyKey: 'r' }))).toMatchObject({ code: 'key_reused' })
})

verifies('agent:client:calls', 'refusals are told with the server’s code, words and details', async () => {
  const agent = await startTestAgent({ script: TALKING, authKeys: ['secret-key'] })
  const client = agentClient({ url: agent.url, apiKey: 'secret-key' })
  const { session_id: id } = await client.createSession()
  const { run_id: runId } = await client.run(id, 'wait')
  const busy = await failureOf(client.run(id, 'more'))
  expect(busy).toMatchObject({ code: 'session_busy', status: 409, details: { active_run_id: runId } })
  const wrong = await failureOf(agentClient({ url: agent.url, apiKey: 'wrong-key' }).tools())
  expect(wrong).toMatchObject({ code: 'unauthorized', status: 401, message: expect.stringContaining('X-API-Key') })
  expect(JSON.stringify([wrong, wrong.stack])).not.toContain('wrong-key')
  expect(await failureOf(client.createSession({ max_steps: 0 }))).toMatchObject({ status: 422 })
})

test('no server, and something that is none, are told apart', async () => {
  const { createServer } = await import('node:http')
  const other = createServer((_, response) => void response.end('<html>')).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await soon(() => expect(other.listening).toBe(true))
  const address = other.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const client = agentClient({ url: `http://127.0.0.1:${port}` })
  expect(await failureOf(client.tools())).toMatchObject({ code: 'not_an_agent' })
  expect(await failureOf(gather(client.events('x')))).toMatchObject({ code: 'not_an_agent' })
  const nobody = agentClient({ url: 'http://127.0.0.1:1' })
  expect(await failureOf(nobody.tools())).toMatchObject({ code: 'agent_unreachable', status: null })
  expect(await failureOf(nobody.statelessRun('x'))).toMatchObject({ code: 'agent_unreachable', status: null })
})

test('a run is followed from its first event to its done', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const client = agentClient({ url: agent.url })
  const { session_id: id } = await client.createSession()
  let told = ''
  const events = client.runAndFollow(id, 'talk', { onAccepted: ({ run_id }) => (told = run_id) })
  const seen = await gather(events)
  expect(names(seen)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
  expect(new Set(seen.map(({ data }) => data.run_id))).toEqual(new Set([told]))
  expect(await gather(client.events(id, { untilDone: true }))).toEqual(seen)
  const extended = await gather(client.events(id, { untilDone: true, extended: true }))
  expect(extended[0]).toMatchObject({ id: 1, event: 'run_started', data: { goal: 'talk' } })
  expect(await gather(client.events(id, { untilDone: true, after: seen.at(-1)?.id ?? 0 }))).toEqual([])
})

test('a queued run is followed past the done of the one before it', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const client = agentClient({ url: agent.url })
  const { session_id: id } = await client.createSession()
  const first = await client.run(id, 'talk')
  const seen = await gather(client.runAndFollow(id, 'hello', { on_busy: 'enqueue' }))
  expect(seen.some(({ data }) => data.run_id === first.run_id)).toBe(false)
  expect(names(seen)).toEqual(['message', 'done'])
})

test('a run that fails tells error, then done', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const client = agentClient({ url: agent.url })
  const { session_id: id } = await client.createSession()
  const seen = await gather(client.runAndFollow(id, 'fail'))
  expect(names(seen)).toEqual(['error', 'done'])
  expect(seen[0]?.data).toMatchObject({ message: expect.stringContaining('not today') })
})

const FAULT: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ type: fc.constant('cut' as const), after: fc.nat(6_000), how: fc.constantFrom('reset', 'end') }),
  fc.record({ type: fc.constant('stall' as const), after: fc.nat(3_000) }),
  fc.record({ type: fc.constant('half-open' as const), after: fc.nat(3_000) }),
  fc.record({ type: fc.constant('slow' as const), bytes: fc.integer({ min: 7, max: 900 }), everyMs: fc.constant(1) }),
  fc.constant({ type: 'refuse' as const }),
)

verifies(
  ['agent:client:resumes', 'agent:client:runs-once'],
  'over a bad network every event comes exactly once, in order, and the run is run once',
  async () => {
    const agent = await startTestAgent({ script: TALKING })
    const direct = agentClient({ url: agent.url })
    const property = fc.asyncProperty(fc.array(FAULT, { maxLength: 6 }), async (faults) => {
      const { session_id: id } = await direct.createSession()
      const proxy = await startFlakyProxy(agent.agent.port, faults)
      const { client } = hasty(proxy.url, { idleMs: 300 })
      const seen = await gather(client.runAndFollow(id, 'talk'))
      await proxy.stop()
      expect(await direct.runs(id)).toHaveLength(1)
      expect(seen).toEqual(await gather(direct.events(id, { untilDone: true })))
      expect(names(seen)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
    })
    await fc.assert(property, { numRuns: 12 })
  },
  120_000,
)

verifies('agent:client:runs-once', 'a run whose answer was lost is not run twice', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const { session_id: id } = await agentClient({ url: agent.url }).createSession()
  const proxy = await startFlakyProxy(agent.agent.port, [
    { type: 'cut', after: 0 },
    { type: 'cut', after: 3 },
  ])
  const { client, pauses } = hasty(proxy.url)
  const seen = await gather(client.runAndFollow(id, 'talk'))
  expect(names(seen)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
  expect(pauses).toHaveLength(2)
  expect(await client.session(id)).toMatchObject({ turn_count: 1 })
})

verifies('agent:client:silent', 'a line that has gone silent is made anew', async () => {
  const agent = await startTestAgent({ script: TALKING, heartbeatMs: 20 })
  const { session_id: id } = await agentClient({ url: agent.url }).createSession()
  const proxy = await startFlakyProxy(agent.agent.port, [{ type: 'half-open', after: 600 }])
  const { client } = hasty(proxy.url, { idleMs: 500 })
  await client.run(id, 'talk').catch(() => undefined)
  const seen = await gather(client.events(id, { untilDone: true }))
  expect(names(seen)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
})

verifies(
  'agent:client:pauses',
  'pauses start at what the server asks for, grow, and start anew after a success',
  async () => {
    const agent = await startTestAgent({ script: TALKING })
    const { session_id: id } = await agentClient({ url: agent.url }).createSession()
    await agent.run(id, 'wait')
    const [pass, refuse] = [{ type: 'pass' }, { type: 'refuse' }] as const
    const proxy = await startFlakyProxy(agent.agent.port, [pass, refuse, refuse, refuse, pass, refuse])
    const pauses: number[] = []
    const client = agentClient({ url: proxy.url, random: () => 0.5, pause: async (ms) => void pauses.push(ms) })
    const stop = new AbortController()
    const reading = gather(client.events(id, { signal: stop.signal }))
    for (const connections of [1, 5, 7]) {
      await soon(() => expect(proxy.connections).toBe(connections))
      await soon(async () => expect((await agent.call('GET', '/metrics')).text).toMatch(/streams\S* 1$/m))
      if (connections < 7) proxy.cutAll()
    }
    stop.abort()
    await reading
    // The server says `retry: 1000`; each pause is three quarters of its step here.
    expect(pauses).toEqual([750, 1500, 3000, 6000, 750, 1500])
  },
)

verifies('agent:client:abort', 'an abort ends the iteration without an error, at any time', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const client = agentClient({ url: agent.url })
  const { session_id: id } = await client.createSession()
  const stop = new AbortController()
  const seen: AgentEvent[] = []
  for await (const event of client.runAndFollow(id, 'wait', { signal: stop.signal })) {
    seen.push(event)
    setImmediate(() => stop.abort())
  }
  expect(seen).toMatchObject([{ event: 'partial_message', data: { text: 'so far' } }])
  expect(await gather(client.events(id, { signal: stop.signal }))).toEqual([])
  expect(await gather(client.runAndFollow(id, 'more', { signal: stop.signal }))).toEqual([])
  // Not while it waits for the server to come back, either.
  const later = new AbortController()
  const nobody = agentClient({ url: 'http://127.0.0.1:1' })
  const waiting = gather(nobody.events(id, { signal: later.signal }))
  later.abort()
  expect(await waiting).toEqual([])
  expect(await client.session(id)).toMatchObject({ status: 'running', turn_count: 1 })
})

test('leaving the loop closes the connection', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const client = agentClient({ url: agent.url })
  const { session_id: id } = await client.createSession()
  for await (const event of client.runAndFollow(id, 'wait')) {
    expect(event.event).toBe('partial_message')
    break
  }
  await soon(async () => expect((await agent.call('GET', '/metrics')).text).toMatch(/streams\S* 0$/m))
})

verifies(
  'agent:client:gives-up',
  'what coming back cannot mend is thrown: a wrong key, no session, a cursor that is no more',
  async () => {
    const agent = await startTestAgent({ script: TALKING, authKeys: ['k'] })
    const client = agentClient({ url: agent.url, apiKey: 'k' })
    const { session_id: id } = await client.createSession()
    expect(await failureOf(gather(agentClient({ url: agent.url }).events(id)))).toMatchObject({ status: 401 })
    expect(await failureOf(gather(client.events(id, { after: 99 })))).toMatchObject({
      status: 410,
      code: 'cursor_expired',
      details: { newest: 0 },
    })
    const reading = gather(client.events(id))
    await client.run(id, 'hello')
    await client.remove(id)
    expect(await failureOf(reading)).toMatchObject({ status: 404, code: 'not_found' })
  },
)

verifies('agent:client:gives-up', 'a server that stays away is given up in the end', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const { session_id: id } = await agentClient({ url: agent.url }).createSession()
  await agent.run(id, 'wait')
  let now = 0
  const pause = async (ms: number) => {
    now += ms
    await new Promise((resolve) => setImmediate(resolve))
  }
  const client = agentClient({ url: agent.url, now: () => now, pause, patienceMs: 60_000 })
  const reading = failureOf(gather(client.events(id)))
  await agent.stop()
  expect(await reading).toMatchObject({ code: 'agent_unreachable', status: null })
  expect(now).toBeGreaterThan(60_000)
})
