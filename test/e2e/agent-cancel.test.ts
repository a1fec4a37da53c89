import { execFileSync } from 'node:child_process'
import { expect } from 'vitest'
import { soon } from '../support/soon.ts'
import { type EventReader, startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

/** Loaded machines are slow; what hangs would take for ever. */
const AT_ONCE_MS = 5_000

/** Cancels, and gives the last event of the run. */
async function cancel(agent: TestAgent, id: string, reader: EventReader) {
  const startedAt = Date.now()
  const answer = await agent.call('POST', `/sessions/${id}/cancel`)
  expect(answer.body).toEqual({ session_id: id, cancelled: true })
  const events = await reader.until('done')
  expect(events.at(-1)?.data.finish_reason).toBe('Cancelled')
  expect(Date.now() - startedAt).toBeLessThan(AT_ONCE_MS)
  expect((await agent.call('POST', `/sessions/${id}/cancel`)).body.cancelled).toBe(false)
  return events
}

verifies('agenthttp:cancel:stream', async () => {
  const agent = await startTestAgent({ script: [[{ text: ['so', ' far'] }, { stall: 'forever' }]] })
  const id = await agent.session()
  const reader = await agent.events((await agent.run(id, 'wait')).events_url)
  await reader.until('partial_message')
  await reader.until('partial_message')
  await cancel(agent, id, reader)
  const { transcript, status } = (await agent.call('GET', `/sessions/${id}`)).body
  expect(status).toBe('idle')
  expect(transcript.at(-1)).toMatchObject({ role: 'assistant', content: [{ type: 'text', text: 'so far' }] })
})

verifies('agenthttp:cancel:shell', async () => {
  const agent = await startTestAgent({ unsafeShell: false })
  const isOff = agent.agent.shellOff !== null
  const shell = isOff ? await startTestAgent({ unsafeShell: true }) : agent
  const id = await shell.session()
  const seconds = String(100_000 + Math.floor(Math.random() * 100_000))
  const alive = () => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).split(`sleep ${seconds}`).length - 1
  const command = `sleep ${seconds} & setsid sleep ${seconds}`
  const reader = await shell.events((await shell.run(id, `run: ${command}`)).events_url)
  await reader.until('tool_call')
  await soon(() => expect(alive()).toBeGreaterThan(1))
  await cancel(shell, id, reader)
  await soon(() => expect(alive()).toBe(0))
  expect((await shell.finish(id, 'hello')).at(-1)?.data.finish_reason).toBe('NoMoreToolCalls')
})

verifies('agent:alone:stateless', 'a command in the background ends with the run that nobody can ask', async () => {
  const { agent: probe } = await startTestAgent({ unsafeShell: false })
  const seconds = String(100_000 + Math.floor(Math.random() * 100_000))
  const start = { name: 'shell', input: { command: `sleep ${seconds}`, run_in_background: true } }
  const agent = await startTestAgent({
    unsafeShell: probe.shellOff !== null,
    script: [[{ tool_calls: [start] }], [{ text: 'It runs.' }]],
  })
  const { status, body } = await agent.call('POST', '/run', { body: { goal: 'go' } })
  expect([status, body.finish_reason]).toEqual([200, 'NoMoreToolCalls'])
  expect(JSON.stringify(body.messages)).toContain('It runs in the background')
  expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(`sleep ${seconds}`)
})

verifies('agenthttp:cancel:plan', async () => {
  const agent = await startTestAgent()
  const id = await agent.session()
  const reader = await agent.events((await agent.run(id, 'plan: tidy up')).events_url)
  await reader.until('plan_proposed')
  await cancel(agent, id, reader)
  const late = await agent.call('POST', `/sessions/${id}/plan`, { body: { decision: 'approve' } })
  expect([late.status, late.body.error.code]).toEqual([409, 'no_plan'])
})
