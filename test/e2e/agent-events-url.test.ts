import { expect } from 'vitest'
import { temporaryFolder } from '../support/processes.ts'
import { startRedis } from '../support/servers/redis.ts'
import { namesOf, type SeenEvent, startTestAgent, type TestAgentOptions } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

/** Works until it is cancelled; whatever else is asked gets a word. */
const SCRIPT = [
  { match: 'wait', steps: [{ text: 'so far' }, { stall: 'forever' as const }] },
  { match: 'short', steps: [{ text: 'There you are.' }] },
]
const LONG_MS = 120_000
const runsOf = (events: readonly SeenEvent[]) => [...new Set(events.map(({ data }) => data.run_id))]

const STORES: Record<string, () => Promise<{ settings: TestAgentOptions; remove(): Promise<void> }>> = {
  memory: async () => ({ settings: {}, remove: async () => {} }),
  SQLite: async () => ({ settings: { dataDir: temporaryFolder() }, remove: async () => {} }),
  Redis: async () => {
    const redis = await startRedis([])
    return { settings: { redisUrl: redis.url }, remove: async () => redis.remove() }
  },
}

for (const [name, open] of Object.entries(STORES))
  verifies(
    ['agent:run:events-url', 'agent:events:of-run'],
    `events_url of a run that waits shows that run alone (${name})`,
    async () => {
      const { settings, remove } = await open()
      const agent = await startTestAgent({ script: SCRIPT, ...settings })
      try {
        const id = await agent.session()
        await agent.run(id, 'wait')
        const queued = await agent.run(id, 'short', { on_busy: 'enqueue' })
        const early = await agent.events(`${queued.events_url}&until=done`)
        const next = await agent.run(id, 'wait', { on_busy: 'interrupt' })
        const interrupting = await agent.events(next.events_url)
        const begun = await interrupting.until('partial_message')
        expect(runsOf(begun)).toEqual([next.run_id])
        await agent.call('POST', `/sessions/${id}/cancel`)
        expect(runsOf(await interrupting.until('done'))).toEqual([next.run_id])

        const told = await early.until('never')
        expect(namesOf(told)).toEqual(['message', 'done'])
        expect(runsOf(told)).toEqual([queued.run_id])
        // The same later, and nothing once its done is known, though another run is under way.
        await agent.run(id, 'wait')
        const late = await agent.events(`${queued.events_url}&until=done`)
        expect(await late.until('never')).toEqual(told)
        const headers = { 'last-event-id': String(told.at(-1)?.id) }
        expect((await agent.call('GET', `${queued.events_url}&until=done`, { headers })).status).toBe(204)
      } finally {
        await agent.stop()
        await remove()
      }
    },
    LONG_MS,
  )

verifies('agent:events:of-run', 'run alone starts where the run does, and one that is not there is told', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  await agent.finish(id, 'first')
  const { run_id: runId, events_url: url } = await agent.run(id, 'list files')
  const path = `/sessions/${id}/events`
  expect(url).toMatch(new RegExp(`^${path}\\?after=[1-9]\\d*&run=${runId}$`))
  const told = await (await agent.events(url)).until('done')
  await agent.finish(id, 'third')
  for (const query of [`run=${runId}`, `run=${runId.toUpperCase()}`, `after=0&run=${runId}`]) {
    const alone = await agent.events(`${path}?${query}&until=done`)
    expect(await alone.until('never'), query).toEqual(told)
  }
  const unknown = await agent.call('GET', `${path}?run=${crypto.randomUUID()}`)
  expect([unknown.status, unknown.body.error.code]).toEqual([404, 'not_found'])
  expect(unknown.body.error.message).toContain('/runs')
  for (const query of ['run=', 'run=x', `run=${runId}&run=${runId}`]) {
    const wrong = await agent.call('GET', `${path}?${query}`)
    expect([wrong.status, wrong.body.error.details.field], query).toEqual([422, 'run'])
  }
})
