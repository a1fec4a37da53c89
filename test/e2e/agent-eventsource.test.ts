import { EventSource } from 'eventsource'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { expect, onTestFinished, test } from 'vitest'
import type { Script } from '../../src/agent/provider/script-format.ts'
import { startFlakyProxy } from '../support/flaky-proxy.ts'
import { soon } from '../support/soon.ts'
import { startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const FAILING: Script = {
  turns: [{ match: 'fail', steps: [{ error: { kind: 'bad_request', message: 'not today' } }] }],
}
const WORDS = Array.from({ length: 10 }, (_, index) => `word ${index} `)
const TALKING: Script = [WORDS.flatMap((text) => [{ text }, { stall: 35 }])]

/** A failing run's stream, and everything that a listener for `name` heard. */
async function listenTo(agent: TestAgent, name: string, query: string) {
  const id = await agent.session()
  const { events_url: path } = await agent.run(id, 'fail')
  const source = new EventSource(`${agent.url}${path}${query}`)
  onTestFinished(() => source.close())
  const heard: unknown[] = []
  source.addEventListener(name, (event) => heard.push('data' in event ? event.data : null))
  await new Promise((resolve) => source.addEventListener('done', resolve))
  return { source, heard }
}

verifies('agent:events:error-collision', async () => {
  const agent = await startTestAgent({ script: FAILING })
  const { source, heard } = await listenTo(agent, 'error', '')
  expect(heard).toHaveLength(1)
  expect(JSON.parse(String(heard[0]))).toMatchObject({ message: expect.stringContaining('not today') })
  // Its own error, of the connection, has no data.
  await agent.stop()
  await soon(() => expect(heard.length).toBeGreaterThan(1))
  expect(heard[1] ?? null).toBe(null)
  source.close()
})

verifies('agent:events:error-renamed', async () => {
  const agent = await startTestAgent({ script: FAILING })
  const { source, heard } = await listenTo(agent, 'run_error', '&error_event=run_error')
  const own: unknown[] = []
  source.addEventListener('error', (event) => own.push(event))
  expect(heard).toHaveLength(1)
  expect(JSON.parse(String(heard[0]))).toMatchObject({ message: expect.stringContaining('not today') })
  expect(own).toEqual([])
})

test('an EventSource that sends its key in a header is let in, one without is closed', async () => {
  const agent = await startTestAgent({ authKeys: ['k'] })
  const headers = { 'x-api-key': 'k' }
  const { body } = await agent.call('POST', '/sessions', { headers })
  const url = `${agent.url}/sessions/${body.session_id}/events?after=0`
  const source = new EventSource(url, {
    fetch: (address, init) => fetch(address, { ...init, headers: { ...init.headers, ...headers } }),
  })
  onTestFinished(() => source.close())
  const done = new Promise((resolve) => source.addEventListener('done', resolve))
  await agent.call('POST', `/sessions/${body.session_id}/run`, { body: { goal: 'hello' }, headers })
  await done
  const stranger = new EventSource(url)
  onTestFinished(() => stranger.close())
  await soon(() => expect(stranger.readyState).toBe(EventSource.CLOSED))
})

verifies('agent:events:exactly-once', 'an EventSource over a line that is cut misses nothing', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const proxy = await startFlakyProxy(agent.agent.port, [{ type: 'cut', after: 900 }])
  const id = await agent.session()
  const { events_url: path } = await agent.run(id, 'talk')
  const source = new EventSource(`${proxy.url}${path}`)
  onTestFinished(() => source.close())
  const seen: string[] = []
  for (const name of ['partial_message', 'message', 'done'])
    source.addEventListener(name, ({ lastEventId }) => void seen.push(lastEventId))
  await new Promise((resolve) => source.addEventListener('done', resolve))
  expect(proxy.connections).toBe(2)
  const all = await (await agent.events(`/sessions/${id}/events?after=0`)).until('done')
  expect(seen).toEqual(all.map(({ id: number }) => String(number)))
})

test('the stream parser of others reads the POST of the start-up form', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const { body } = await fetch(`${agent.url}/sessions/${id}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'list files' }),
  })
  const names: string[] = []
  const events = body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()) ?? []
  for await (const { event = '', id: number, data } of events) {
    expect(JSON.parse(data).id).toBe(Number(number))
    if (event !== 'partial_message') names.push(event)
  }
  expect(names).toEqual(['tool_call', 'tool_result', 'message', 'done'])
})
