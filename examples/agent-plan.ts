/**
 * A person in the loop: in plan mode the agent may write nothing before its plan is approved. It proposes one, the person
 * changes it, and the agent carries out what the person wants.
 */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentClient } from '../src/client/agent-client.ts'
import { startExampleAgent } from './support/example-agent.ts'

const write = { name: 'write_file', input: { path: 'greeting.txt', content: 'Good day!' } }
const { url, workspace, stop } = await startExampleAgent([
  [{ tool_calls: [write] }],
  [{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. Write "Hi" into greeting.txt' } }] }],
  [{ tool_calls: [write] }],
  [{ text: 'It is written.' }],
])
try {
  const agent = agentClient({ url })
  const { session_id: session } = await agent.createSession({ plan_mode: true })

  const writes: boolean[] = []
  for await (const event of agent.runAndFollow(session, 'write a greeting')) {
    if (event.event === 'tool_result' && event.data.name === 'write_file') writes.push(event.data.success)
    if (event.event !== 'plan_proposed') continue
    assert.deepEqual(await readdir(workspace), [], 'nothing was written yet')
    await agent.decidePlan(session, {
      decision: 'approve',
      plan_id: event.data.plan_id,
      plan: '1. Write "Good day!" into greeting.txt',
      feedback: 'More polite, please.',
    })
  }

  assert.deepEqual(writes, [false, true], 'refused before the approval, done after it')
  assert.equal(await readFile(join(workspace, 'greeting.txt'), 'utf8'), 'Good day!')
  const { transcript } = await agent.session(session)
  const told = transcript.flatMap(({ content }) => content).find(({ content }) => content?.includes('More polite'))
  assert.match(told?.content ?? '', /approved with changes.*Good day!/s)
  console.log('The agent was told:', told?.content)
} finally {
  await stop()
}
