/**
 * One request, one result: a run without a session. The demo model really calls a tool, so this needs no account.
 * Starts an agent server, asks it for the files in its folder, and checks the answer. Exits 0 when all is well.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentClient } from '../src/client/agent-client.ts'
import { startExampleAgent } from './support/example-agent.ts'

const { url, workspace, stop } = await startExampleAgent()
try {
  await writeFile(join(workspace, 'shopping.txt'), 'milk')
  const agent = agentClient({ url })

  const result = await agent.statelessRun('list files', { max_steps: 5 })

  assert.deepEqual([result.status, result.finish_reason], ['finished', 'NoMoreToolCalls'])
  assert.deepEqual(
    result.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant'],
  )
  const answer = result.messages.at(-1)?.content[0]?.text ?? ''
  assert.match(answer, /shopping\.txt/)
  console.log(`${result.usage.total_steps} steps, ${result.usage.total_tokens} tokens: ${answer}`)
} finally {
  await stop()
}
