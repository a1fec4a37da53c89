import { expect } from 'vitest'
import { namesOf, type SeenEvent, startTestAgent, type TestAgentOptions } from './test-agent.ts'

/** Works until it is cancelled; what is short gets a word. */
const SCRIPT = [
  { match: 'wait', steps: [{ text: 'so far' }, { stall: 'forever' as const }] },
  { match: 'short', steps: [{ text: 'There you are.' }] },
]
const runsOf = (events: readonly SeenEvent[]) => [...new Set(events.map(({ data }) => data.run_id))]

/** Reads the `events_url` of a run that waits and of one that interrupts: each shows its own run, early and late. */
export async function expectOwnEvents(settings: TestAgentOptions): Promise<void> {
  const agent = await startTestAgent({ script: SCRIPT, ...settings })
  const id = await agent.session()
  await agent.run(id, 'wait')
  const queued = await agent.run(id, 'short', { on_busy: 'enqueue' })
  const early = await agent.events(`${queued.events_url}&until=done`)
  const next = await agent.run(id, 'wait', { on_busy: 'interrupt' })
  const interrupting = await agent.events(next.events_url)
  expect(runsOf(await interrupting.until('partial_message'))).toEqual([next.run_id])
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
  await agent.stop()
}
