import { EventSource } from 'eventsource'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { soon } from '../support/soon.ts'
import { namesOf, type SeenEvent, startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const WORDS = Array.from({ length: 40 }, (_, index) => `word${index} `)
/** Says a little, and then waits for a cancel. */
const STALLING = [[{ text: 'so far' }, { stall: 'forever' as const }]]
/** A tool call, then many deltas with pauses, so that readers come and go while it speaks. */
const TALKING = [
  [{ tool_calls: [{ name: 'list_dir', input: { path: '.' } }] }],
  WORDS.flatMap((text) => [{ text }, { stall: 35 }]),
]

const idsOf = (events: readonly SeenEvent[]) => events.map(({ id }) => id)

verifies(
  'agent:events:preamble',
  'a stream begins with the time to come back and a comment, and is not to be buffered',
  async () => {
    const agent = await startTestAgent({ heartbeatMs: 20 })
    const reader = await agent.events(`/sessions/${await agent.session()}/events`, { headers: { accept: 'text/html' } })
    expect(reader.status).toBe(200)
    expect(reader.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(reader.headers.get('x-accel-buffering')).toBe('no')
    expect(reader.headers.get('cache-control')).toContain('no-cache')
    expect(reader.headers.get('content-encoding')).toBeNull()
    void reader.next().catch(() => null)
    await soon(() => expect(reader.comments.length).toBeGreaterThan(3))
    expect(reader.retries).toEqual([1000])
  },
)

verifies(
  ['agent:events:last-event-id', 'agent:events:numbered'],
  'Last-Event-ID replays what came after it, and wins over after',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    const all = await agent.finish(id, 'list files')
    const path = `/sessions/${id}/events`
    for (const [index, event] of all.slice(0, -1).entries()) {
      const headers = { 'last-event-id': String(event.id) }
      const resumed = await agent.events(`${path}?after=0`, { headers })
      expect(await resumed.until('done')).toEqual(all.slice(index + 1))
      resumed.close()
      const after = await agent.events(`${path}?after=${event.id}`)
      expect(await after.until('done')).toEqual(all.slice(index + 1))
      after.close()
    }
    expect(all.every(({ id: seq, data }) => data.id === seq)).toBe(true)
  },
)

verifies(
  'agent:events:expired',
  'a cursor beyond the head is 410 with the ids there are, one that is no number 422',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    const newest = (await agent.finish(id, 'hello')).at(-1)?.id
    const path = `/sessions/${id}/events`
    for (const answer of [
      await agent.call('GET', path, { headers: { 'last-event-id': '999' } }),
      await agent.call('GET', `${path}?after=999`),
    ]) {
      expect([answer.status, answer.body.error.code]).toEqual([410, 'cursor_expired'])
      expect(answer.body.error.details).toEqual({ oldest: 1, newest })
    }
    for (const [query, header] of [
      ['?after=x', ''],
      ['?after=-1', ''],
      ['?after=1&after=2', ''],
      ['', 'abc'],
      ['?error_event=a%0Ab', ''],
      ['?until=never', ''],
    ] as const) {
      const headers: Record<string, string> = header === '' ? {} : { 'last-event-id': header }
      expect((await agent.call('GET', path + query, { headers })).status, query).toBe(422)
    }
  },
)

verifies(
  ['agent:events:until-done', 'agent:events:stays-open'],
  'until=done ends the stream with the run, and a reconnect is told that nothing is left',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    const { events_url: path } = await agent.run(id, 'hello')
    const reader = await agent.events(`${path}&until=done`)
    const events = await reader.until('never')
    expect(events.at(-1)?.event).toBe('done')
    const headers = { 'last-event-id': String(events.at(-1)?.id) }
    expect((await agent.call('GET', `${path}&until=done`, { headers })).status).toBe(204)
    // Without it the session's stream stays for the next run.
    const staying = await agent.events(`/sessions/${id}/events`, { headers })
    await agent.run(id, 'list files')
    expect(namesOf(await staying.until('done'))).toEqual(['tool_call', 'tool_result', 'message', 'done'])
  },
)

verifies(
  ['agent:events:extended', 'agent:events:numbered'],
  'more kinds of events come only with extended',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    const plain = await agent.finish(id, 'list files')
    expect(namesOf(plain)).not.toContain('run_started')
    const extended = await agent.events(`/sessions/${id}/events?after=0&extended=1`)
    const all = await extended.until('done')
    expect(all[0]?.event).toBe('run_started')
    expect(all.filter(({ event }) => plain.some((one) => one.event === event))).toEqual(plain)
    expect(idsOf(all)).toEqual(all.map((_, index) => index + 1))
  },
)

test('error_event gives the error another name', async () => {
  const agent = await startTestAgent({ script: [[{ error: { kind: 'bad_request', message: 'no' } }]] })
  const id = await agent.session()
  expect(namesOf(await agent.finish(id, 'x'))).toEqual(['error', 'done'])
  const renamed = await agent.events(`/sessions/${id}/events?after=0&error_event=run_error`)
  expect(namesOf(await renamed.until('done'))).toEqual(['run_error', 'done'])
})

verifies('agent:events:bare-active', 'a bare stream starts at the active run', async () => {
  const agent = await startTestAgent({ script: STALLING })
  const id = await agent.session()
  await agent.run(id, 'x')
  const path = `/sessions/${id}/events`
  const first = await (await agent.events(path)).next()
  const second = await (await agent.events(path)).next()
  expect(first).toEqual(second)
  expect(first?.data.text).toBe('so far')
})

verifies(
  'agent:events:bare-late',
  'a bare stream opened after a fast run sees it; later ones, once it was taken, only what comes',
  async () => {
    let aheadMs = 0
    const agent = await startTestAgent({ now: () => Date.now() + aheadMs })
    const id = await agent.session()
    const path = `/sessions/${id}/events`
    const told = await agent.finish(id, 'list files')
    // Several late readers all see it.
    expect(await (await agent.events(path)).until('done')).toEqual(told)
    expect(await (await agent.events(path)).until('done')).toEqual(told)
    aheadMs += 6_000
    expect(await (await agent.events(path)).until('done')).toEqual(told)
    await soon(async () => {
      const late = await agent.events(path)
      const first = await Promise.race([late.next(), new Promise((resolve) => setTimeout(resolve, 100, 'nothing'))])
      late.close()
      expect(first).toBe('nothing')
    })
    const live = await agent.events(path)
    const { run_id: runId } = await agent.run(id, 'again')
    expect((await live.until('done')).every(({ data }) => data.run_id === runId)).toBe(true)
  },
)

verifies(
  'agent:events:bare-early',
  'a bare stream that was open when a run was accepted takes it at once',
  async () => {
    const agent = await startTestAgent()
    const id = await agent.session()
    const open = await agent.events(`/sessions/${id}/events`)
    await agent.run(id, 'first')
    await open.until('done')
    const late = await agent.events(`/sessions/${id}/events`)
    const { run_id: second } = await agent.run(id, 'second')
    expect((await late.next())?.data.run_id).toBe(second)
  },
)

verifies('agent:events:disconnect', 'a reader that goes does not cancel the run', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const posted = await agent.events(`/sessions/${id}/run`, { method: 'POST', body: { message: 'hello' } })
  await posted.next()
  posted.close()
  const rest = await (await agent.events(`/sessions/${id}/events?after=0`)).until('done')
  expect(rest.at(-1)?.data.finish_reason).toBe('NoMoreToolCalls')
})

test('HEAD of a stream answers and ends', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const response = await fetch(`${agent.url}/sessions/${id}/events`, {
    method: 'HEAD',
    signal: AbortSignal.timeout(5_000),
  })
  await response.text()
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
})

test('a long log is replayed in one go, faster than it can be read', async () => {
  const text = 'x'.repeat(200_000)
  const calls = Array.from({ length: 40 }, (_, index) => ({
    name: 'write_file',
    input: { path: `f${index}`, content: text },
  }))
  const agent = await startTestAgent({ script: [[{ tool_calls: calls }], [{ text: 'done' }]] })
  const id = await agent.session()
  const { events_url: path } = await agent.run(id, 'write')
  await soon(async () => expect((await agent.call('GET', `/sessions/${id}/runs`)).body.runs[0].status).toBe('finished'))
  const events = await (await agent.events(path)).until('done')
  expect(events.filter(({ event }) => event === 'tool_call')).toHaveLength(40)
  expect(events.at(-1)?.event).toBe('done')
})

/** Reads with cuts: after so many events the connection is dropped, and taken up again by id. */
async function readInPieces(agent: TestAgent, path: string, cuts: readonly number[]): Promise<SeenEvent[]> {
  const seen: SeenEvent[] = []
  for (let round = 0; seen.at(-1)?.event !== 'done'; round++) {
    const last = seen.at(-1)
    const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': String(last.id) }
    const reader = await agent.events(path, { headers })
    const most = cuts[round] ?? Number.POSITIVE_INFINITY
    for (let count = 0; count < most; count++) {
      const event = await reader.next()
      if (event === null) break
      seen.push(event)
      if (event.event === 'done') break
    }
    reader.close()
  }
  return seen
}

const CUTS = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 12 })

verifies(
  'agent:events:exactly-once',
  'a reader cut anywhere that resumes by id sees every event exactly once, in order',
  async () => {
    const agent = await startTestAgent()
    const property = fc.asyncProperty(CUTS, async (cuts) => {
      const id = await agent.session()
      const { events_url: path } = await agent.run(id, 'list files')
      const seen = await readInPieces(agent, path, cuts)
      const all = await (await agent.events(`/sessions/${id}/events?after=0`)).until('done')
      expect(seen).toEqual(all)
      expect(namesOf(all)).toEqual(['tool_call', 'tool_result', 'message', 'done'])
    })
    await fc.assert(property, { numRuns: 25 })
  },
  60_000,
)

verifies(
  'agenthttp:events:readers',
  async () => {
    const agent = await startTestAgent({ script: TALKING, requestsPerSecond: 0 })
    const id = await agent.session()
    const { events_url: path } = await agent.run(id, 'talk')
    const cuts = fc.sample(CUTS, { numRuns: 200, seed: 7 })
    const seen = await Promise.all(cuts.map((one) => readInPieces(agent, path, one)))
    const all = await (await agent.events(`/sessions/${id}/events?after=0`)).until('done')
    expect(all.length).toBeGreaterThan(20)
    expect(idsOf(all)).toEqual([...idsOf(all)].sort((a, b) => a - b))
    for (const one of seen) expect(one).toEqual(all)
  },
  60_000,
)

test('the EventSource of others reads a run, and stops by itself with until=done', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const { events_url: path } = await agent.run(id, 'list files')
  const source = new EventSource(`${agent.url}${path}&until=done`)
  onTestFinished(() => source.close())
  const seen: string[] = []
  for (const name of ['tool_call', 'tool_result', 'message', 'done']) {
    source.addEventListener(name, ({ data, lastEventId }) => {
      expect(JSON.parse(data).id).toBe(Number(lastEventId))
      seen.push(name)
    })
  }
  // The reconnect after the end is answered with 204, which closes it for good.
  await soon(() => expect(source.readyState).toBe(EventSource.CLOSED))
  expect(seen).toEqual(['tool_call', 'tool_result', 'message', 'done'])
})

test('the EventSource of others comes back by itself after a cut and misses nothing', async () => {
  const agent = await startTestAgent({ script: TALKING })
  const id = await agent.session()
  const { events_url: path } = await agent.run(id, 'talk')
  let cut = false
  const source = new EventSource(`${agent.url}${path}`, {
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      if (cut || response.body === null) return response
      cut = true
      let chunks = 0
      const short = new TransformStream({
        transform(chunk, controller) {
          controller.enqueue(chunk)
          chunks += 1
          if (chunks === 4) controller.terminate()
        },
      })
      return new Response(response.body.pipeThrough(short), { headers: response.headers })
    },
  })
  onTestFinished(() => source.close())
  const seen: number[] = []
  const told = new Promise<void>((resolve) => source.addEventListener('done', () => resolve()))
  for (const name of ['tool_call', 'tool_result', 'partial_message', 'message', 'done'])
    source.addEventListener(name, ({ lastEventId }) => void seen.push(Number(lastEventId)))
  await told
  const all = await (await agent.events(`/sessions/${id}/events?after=0`)).until('done')
  expect(seen).toEqual(idsOf(all))
})
