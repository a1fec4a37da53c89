import { expect } from 'vitest'
import { startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const details = async (agent: TestAgent, id: string) => (await agent.call('GET', `/sessions/${id}`)).body

verifies('agenthttp:fork:copies', async () => {
  const agent = await startTestAgent()
  const id = await agent.session({ title: 'First', system_prompt: 'Be kind.', workspace: 'sub', plan_mode: false })
  await agent.finish(id, 'list files')
  await agent.finish(id, 'hello')
  const before = await details(agent, id)
  const whole = await agent.call('POST', `/sessions/${id}/fork`)
  expect([whole.status, whole.body.forked_from]).toEqual([201, id])
  expect(whole.headers.get('location')).toBe(`/sessions/${whole.body.session_id}`)
  const copy = await details(agent, whole.body.session_id)
  expect(copy.transcript).toEqual(before.transcript)
  expect(copy).toMatchObject({ title: 'First', system_prompt: 'Be kind.', workspace: before.workspace, turn_count: 0 })
  expect(copy.usage.total_tokens).toBe(0)

  const part = await agent.call('POST', `/sessions/${id}/fork`, { body: { title: 'Other', messages: 2 } })
  const short = await details(agent, part.body.session_id)
  expect([short.title, short.transcript]).toEqual(['Other', before.transcript.slice(0, 2)])
  for (const [messages, length] of [
    [0, 0],
    [1_000, before.transcript.length],
  ]) {
    const { body } = await agent.call('POST', `/sessions/${id}/fork`, { body: { messages } })
    expect((await details(agent, body.session_id)).transcript).toHaveLength(length ?? 0)
  }

  // Each goes its own way: the call without a result in the short one too.
  const events = await agent.finish(part.body.session_id, 'hello again')
  expect([events[0]?.id, events.at(-1)?.data.finish_reason]).toEqual([2, 'NoMoreToolCalls'])
  expect(await details(agent, id)).toEqual(before)
  await agent.call('DELETE', `/sessions/${id}`)
  expect((await details(agent, whole.body.session_id)).transcript).toEqual(before.transcript)
  expect((await agent.call('POST', `/sessions/${id}/fork`)).status).toBe(404)
})

verifies('agenthttp:fork:repeated', async () => {
  const agent = await startTestAgent({ maxSessions: 2 })
  const id = await agent.session()
  const headers = { 'idempotency-key': 'once' }
  const first = await agent.call('POST', `/sessions/${id}/fork`, { headers })
  const again = await agent.call('POST', `/sessions/${id}/fork`, { headers })
  expect([again.status, again.body]).toEqual([201, first.body])
  const other = await agent.call('POST', `/sessions/${id}/fork`, { headers, body: { title: 'x' } })
  expect([other.status, other.body.error.code]).toEqual([409, 'key_reused'])
  const full = await agent.call('POST', `/sessions/${id}/fork`)
  expect([full.status, full.body.error.code]).toEqual([429, 'too_many_sessions'])
})
