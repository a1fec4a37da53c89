import { expect } from 'vitest'
import { temporaryFolder } from '../support/processes.ts'
import { expectOwnEvents } from '../support/queued-events.ts'
import { startRedis } from '../support/servers/redis.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const LONG_MS = 120_000

const STORES: Record<string, () => Promise<void>> = {
  memory: () => expectOwnEvents({}),
  SQLite: () => expectOwnEvents({ dataDir: temporaryFolder() }),
  Redis: async () => {
    const redis = await startRedis([])
    try {
      await expectOwnEvents({ redisUrl: redis.url })
    } finally {
      await redis.remove()
    }
  },
}

for (const [name, run] of Object.entries(STORES))
  verifies(
    ['agent:run:events-url', 'agent:events:of-run'],
    `events_url of a run that waits shows that run alone (${name})`,
    run,
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
