import { EventSource } from 'eventsource'
import { expect, onTestFinished } from 'vitest'
import { jsonLog } from '../../src/kit/log.ts'
import { rawRequest } from '../support/raw-http.ts'
import { soon } from '../support/soon.ts'
import { namesOf, startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const STALLING = [[{ text: 'so far' }, { stall: 'forever' as const }]]
const KEY = { 'x-api-key': 'first-key' }

verifies('agenthttp:rate:limited', async () => {
  const agent = await startTestAgent({ authKeys: ['first-key', 'second-key'], requestsPerSecond: 5, now: () => 0 })
  const statuses: number[] = []
  for (let call = 0; call < 12; call++) statuses.push((await agent.call('GET', '/tools', { headers: KEY })).status)
  expect(statuses).toEqual([...Array(10).fill(200), 429, 429])
  const refused = await agent.call('GET', '/tools', { headers: KEY })
  expect([refused.body.error.code, refused.headers.get('retry-after')]).toEqual(['too_many_requests', '1'])
  expect(refused.headers.get('ratelimit-remaining')).toBe('0')
  expect((await agent.call('GET', '/tools', { headers: { 'x-api-key': 'second-key' } })).status).toBe(200)
  for (let call = 0; call < 20; call++) expect((await agent.call('GET', '/health')).status).toBe(200)
})

verifies('agenthttp:rate:guesses', async () => {
  const agent = await startTestAgent({ authKeys: ['first-key'], requestsPerSecond: 5, now: () => 0 })
  const statuses: number[] = []
  for (let call = 0; call < 12; call++)
    statuses.push((await agent.call('GET', '/tools', { headers: { 'x-api-key': `guess-${call}` } })).status)
  expect(statuses).toEqual([...Array(10).fill(401), 429, 429])
  expect((await agent.call('GET', '/tools', { headers: KEY })).status).toBe(200)
})

verifies('agenthttp:rate:headers', async () => {
  const agent = await startTestAgent({ requestsPerSecond: 50, now: () => 0 })
  const id = await agent.session()
  const told = ({ headers }: { headers: Headers }) =>
    ['limit', 'remaining', 'reset', 'policy'].map((name) => headers.get(`ratelimit-${name}`))
  expect(told(await agent.call('GET', '/sessions'))).toEqual(['100', '98', '1', '100;w=2'])
  expect(told(await agent.call('GET', '/nothing'))).toEqual(['100', '97', '1', '100;w=2'])
  expect(told(await agent.events(`/sessions/${id}/events`))).toEqual(['100', '96', '1', '100;w=2'])
  const stream = await agent.events('/run', {
    method: 'POST',
    body: { goal: 'hello' },
    headers: { accept: 'text/event-stream' },
  })
  expect(told(stream)).toEqual(['100', '95', '1', '100;w=2'])
  const off = await startTestAgent({ requestsPerSecond: 0 })
  expect(told(await off.call('GET', '/sessions'))).toEqual([null, null, null, null])
})

verifies('agenthttp:bounds:told', async () => {
  const agent = await startTestAgent({ script: STALLING, maxSessions: 2, maxRuns: 1, maxQueue: 1 })
  const [one, two] = [await agent.session(), await agent.session()]
  const refused = async (path: string, body: object) => {
    const answer = await agent.call('POST', path, { body })
    return [answer.status, answer.body.error.code]
  }
  expect(await refused('/sessions', {})).toEqual([429, 'too_many_sessions'])
  await agent.run(one, 'wait')
  expect(await refused(`/sessions/${two}/run`, { goal: 'x' })).toEqual([429, 'too_many_runs'])
  await agent.run(one, 'next', { on_busy: 'enqueue' })
  expect(await refused(`/sessions/${one}/run`, { goal: 'x', on_busy: 'enqueue' })).toEqual([429, 'queue_full'])
  const alone = await agent.events('/run', {
    method: 'POST',
    body: { goal: 'wait' },
    headers: { accept: 'text/event-stream' },
  })
  await alone.next()
  expect(await refused('/run', { goal: 'x' })).toEqual([429, 'too_many_runs'])
  alone.close()
})

/** A ticket's path, made with a key. */
async function ticketFor(agent: TestAgent, id: string) {
  const { status, body, headers } = await agent.call('POST', `/sessions/${id}/events/ticket`, { headers: KEY })
  expect([status, headers.get('cache-control')]).toEqual([201, 'no-store'])
  return body
}

async function sessionWithKey(agent: TestAgent): Promise<string> {
  return (await agent.call('POST', '/sessions', { headers: KEY })).body.session_id
}

verifies('agenthttp:ticket:opens', async () => {
  const agent = await startTestAgent({ authKeys: ['first-key'] })
  const id = await sessionWithKey(agent)
  const { ticket, url, expires_at: expiresAt } = await ticketFor(agent, id)
  expect(url).toBe(`/sessions/${id}/events?ticket=${ticket}`)
  expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(60_000)
  const source = new EventSource(`${agent.url}${url}`)
  onTestFinished(() => source.close())
  const seen: string[] = []
  for (const name of ['tool_call', 'tool_result', 'message', 'done'])
    source.addEventListener(name, () => void seen.push(name))
  await new Promise((resolve) => source.addEventListener('open', resolve))
  await agent.call('POST', `/sessions/${id}/run`, { headers: KEY, body: { goal: 'list files' } })
  await soon(() => expect(seen).toEqual(['tool_call', 'tool_result', 'message', 'done']))
})

verifies('agenthttp:ticket:only', async () => {
  const agent = await startTestAgent({ authKeys: ['first-key'] })
  const [id, other] = [await sessionWithKey(agent), await sessionWithKey(agent)]
  const { ticket, url } = await ticketFor(agent, id)
  const query = `?ticket=${ticket}`
  for (const [method, path] of [
    ['GET', `/sessions/${other}/events${query}`],
    ['GET', `/sessions/${id}${query}`],
    ['POST', `/sessions/${id}/run${query}`],
    ['POST', `/sessions/${id}/events/ticket${query}`],
    ['GET', `/sessions${query}`],
    ['GET', `${url}x`],
    ['GET', `/sessions/${id}/events?ticket=`],
    ['GET', `/sessions/${id}/events?ticket=a.b.c`],
    ['GET', `/sessions/${id}/events${query}&ticket=${ticket}`],
    ['GET', `/sessions/${id}/events`],
  ] as const)
    expect((await agent.call(method, path)).status, path).toBe(401)
  expect((await agent.call('HEAD', url)).status).toBe(200)
})

verifies('agenthttp:ticket:ages', async () => {
  let aheadMs = 0
  const agent = await startTestAgent({ authKeys: ['first-key'], now: () => Date.now() + aheadMs })
  const id = await sessionWithKey(agent)
  const { url } = await ticketFor(agent, id)
  const status = async (headers: Record<string, string> = {}) => (await agent.call('HEAD', url, { headers })).status
  aheadMs = 59_000
  expect(await status()).toBe(200)
  aheadMs = 61_000
  expect([await status(), await status({ 'last-event-id': '0' })]).toEqual([401, 200])
  aheadMs = 61 * 60_000
  expect(await status({ 'last-event-id': '0' })).toBe(401)
  // A reader that has seen nothing yet can come back too: it is told where it stands.
  const fresh = await ticketFor(agent, id)
  const gone = new AbortController()
  const { body } = await fetch(agent.url + fresh.url, { signal: gone.signal })
  let text = ''
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (text.includes('\nid: 0\n\n')) break
  }
  expect(text).toContain('\nid: 0\n\n')
  gone.abort()
})

verifies('agenthttp:ticket:secret', async () => {
  const lines: string[] = []
  const log = jsonLog('debug', { write: (line: string) => void lines.push(line) })
  const agent = await startTestAgent({ authKeys: ['first-key'], log })
  const id = await sessionWithKey(agent)
  const { ticket, url } = await ticketFor(agent, id)
  const stream = await agent.events(url)
  await agent.call('POST', `/sessions/${id}/run`, { headers: KEY, body: { goal: 'list files' } })
  expect(namesOf(await stream.until('done')).at(-1)).toBe('done')
  await agent.call('GET', `${url}-broken`)
  await agent.stop()
  expect(lines.join('')).not.toContain(ticket)
  expect(lines.join('')).not.toContain('first-key')
})

verifies(['agenthttp:type:json', 'agenthttp:type:curl'], async () => {
  const agent = await startTestAgent()
  const send = async (type: string | null, body: string) => {
    const head = type === null ? '' : `Content-Type: ${type}\r\n`
    const { status } = await rawRequest(
      agent.agent.port,
      `POST /sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    return status
  }
  for (const type of ['multipart/form-data; boundary=x', 'application/xml', 'text/html', 'image/png', 'x'])
    expect(await send(type, '{}'), type).toBe(415)
  for (const type of [
    null,
    'application/json',
    'Application/JSON; charset=utf-8',
    'application/vnd.api+json',
    'application/x-www-form-urlencoded',
    'text/plain;charset=UTF-8',
  ])
    expect(await send(type, '{}'), String(type)).toBe(201)
  for (const type of [null, 'text/plain', 'image/png']) expect(await send(type, ''), String(type)).toBe(201)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
    expect(await send(type, 'title=x'), type).toBe(415)
  expect(await send('application/json', 'title=x')).toBe(400)
  const { body } = await agent.call('POST', '/run', { body: 'goal=x', headers: { 'content-type': 'text/plain' } })
  expect(body.error).toEqual({
    code: 'unsupported_media_type',
    message: 'The body is not JSON; send it with Content-Type: application/json.',
  })
})

verifies('agenthttp:errors:expect', async () => {
  const agent = await startTestAgent()
  const send = (expectation: string) =>
    rawRequest(
      agent.agent.port,
      `POST /sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: ${expectation}\r\nContent-Length: 2\r\n\r\n{}`,
    )
  const refused = await send('a-miracle')
  expect(refused.status).toBe(417)
  expect(JSON.parse(refused.body)).toMatchObject({
    error: { code: 'expectation_failed' },
    request_id: expect.any(String),
  })
  expect((await agent.call('GET', '/sessions')).body).toEqual([])
  expect((await send('100-continue')).status).toBeLessThan(300)
})

verifies('agenthttp:origin:asked', async () => {
  const origin = 'https://app.example'
  const agent = await startTestAgent({ allowedOrigins: [origin] })
  const allowed = (headers: Headers) => headers.get('access-control-allow-origin')
  const preflight = { origin, 'access-control-request-method': 'POST' }
  const asked = await agent.call('OPTIONS', '/sessions', { headers: preflight })
  expect([asked.status, allowed(asked.headers)]).toEqual([204, origin])
  expect(asked.headers.get('access-control-allow-headers')).toContain('X-API-Key')
  const made = await agent.call('POST', '/sessions', { body: {}, headers: { origin } })
  expect([made.status, allowed(made.headers)]).toEqual([201, origin])
  const stream = await agent.events(`/sessions/${made.body.session_id}/events`, { headers: { origin } })
  expect(allowed(stream.headers)).toBe(origin)
  const foreign = await agent.call('GET', '/sessions', { headers: { origin: 'https://evil.example' } })
  expect([foreign.status, allowed(foreign.headers)]).toEqual([403, null])
  expect(
    (await agent.call('OPTIONS', '/sessions', { headers: { ...preflight, origin: 'https://evil.example' } })).status,
  ).toBe(403)
})

verifies('agenthttp:alone:plan', async () => {
  const agent = await startTestAgent({
    script: [[{ tool_calls: [{ name: 'propose_plan', input: { plan: 'tidy up' } }] }], [{ text: 'So be it.' }]],
  })
  const refused = await agent.call('POST', '/run', { body: { goal: 'x', plan_mode: true } })
  expect([refused.status, refused.body.error.details]).toEqual([422, { field: 'plan_mode' }])
  expect((await agent.call('POST', '/run', { body: { goal: 'x', plan_mode: false } })).status).toBe(200)
  const { body } = await agent.call('POST', '/run', { body: { goal: 'x' } })
  expect(body).toMatchObject({ finish_reason: 'NoMoreToolCalls', usage: { total_steps: 2 } })
  const [result] = body.messages[2].content
  expect([result.is_error, result.content]).toEqual([true, expect.stringContaining('Nobody can be asked')])
})

const ASKING = Array.from({ length: 5 }, (_, index) => [
  { tool_calls: [{ name: 'list_dir', input: { path: '.', n: index } }] },
  { usage: { input_tokens: 80, output_tokens: 20 } },
])

verifies('agenthttp:budget:steps', async () => {
  const agent = await startTestAgent({ script: ASKING, maxSteps: 3 })
  const id = await agent.session()
  const events = await agent.finish(id, 'go on')
  expect(events.at(-1)?.data).toMatchObject({ finish_reason: 'BudgetExceeded', total_steps: 3 })
  const results = events.filter(({ event }) => event === 'tool_result').map(({ data }) => data.success)
  expect(results).toEqual([true, true, false])
  const fewer = await agent.finish(await agent.session({ max_steps: 4 }), 'go on', { max_steps: 2 })
  expect(fewer.at(-1)?.data).toMatchObject({ finish_reason: 'BudgetExceeded', total_steps: 2 })
  expect((await agent.call('POST', '/run', { body: { goal: 'x' } })).body.usage.total_steps).toBe(3)
})

verifies('agenthttp:budget:tokens', async () => {
  const agent = await startTestAgent({ script: ASKING, maxTokens: 250 })
  const byFlag = await agent.finish(await agent.session(), 'go on')
  expect(byFlag.at(-1)?.data).toMatchObject({ finish_reason: 'BudgetExceeded', total_steps: 3 })
  const byField = await agent.finish(await agent.session(), 'go on', { max_tokens: 150 })
  expect(byField.at(-1)?.data).toMatchObject({ finish_reason: 'BudgetExceeded', usage: { total_tokens: 200 } })
  const more = await agent.finish(await agent.session(), 'go on', { max_tokens: 100_000 })
  expect(more.at(-1)?.data.total_steps).toBe(3)
  const { body } = await agent.call('POST', '/run', { body: { goal: 'x', max_tokens: 100 } })
  expect(body).toMatchObject({ finish_reason: 'BudgetExceeded', usage: { total_steps: 1 } })
})

verifies('agenthttp:budget:clock', async () => {
  const agent = await startTestAgent({ script: STALLING })
  const inSession = await agent.finish(await agent.session(), 'wait', { wall_clock_ms: 100 })
  expect(inSession.at(-1)?.data.finish_reason).toBe('WallClockExceeded')
  const { body } = await agent.call('POST', '/run', { body: { goal: 'wait', wall_clock_ms: 100 } })
  expect(body.finish_reason).toBe('WallClockExceeded')
  expect(body.messages.at(-1)).toMatchObject({ role: 'assistant', content: [{ text: 'so far' }] })
  const short = await startTestAgent({ script: STALLING, wallClockMs: 100 })
  expect((await short.call('POST', '/run', { body: { goal: 'wait' } })).body.finish_reason).toBe('WallClockExceeded')
})
