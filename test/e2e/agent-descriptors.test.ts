import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { probeSandbox } from '../../src/agent/workspace/bubblewrap.ts'
import { agentProcess, runWithOpenFile, START_MS } from '../support/agent-process.ts'
import { temporaryFolder, untilAnswers } from '../support/processes.ts'
import { verifies } from '../support/verifies.ts'

const { works } = await probeSandbox()

describe.runIf(works)('a command', () => {
  verifies(
    'agent:shell:descriptors',
    async () => {
      const secret = join(temporaryFolder(), 'secret.txt')
      writeFileSync(secret, 'held open by whoever started the server')
      const look = 'for f in /proc/1/fd/* /proc/self/fd/*; do readlink $f; done; cat <&9; cat /proc/self/fd/200'
      const agent = await agentProcess([
        [{ tool_calls: [{ name: 'shell', input: { command: look } }] }],
        [{ text: 'Seen.' }],
      ])
      runWithOpenFile(agent.args, secret)
      await untilAnswers(`${agent.url}/health`, undefined, START_MS)
      // The server has it open, or nothing would be shown.
      expect(holders(secret)).toBeGreaterThan(0)
      const { body } = await agent.call('POST', '/run', { goal: 'look' })
      expect(body.finish_reason).toBe('NoMoreToolCalls')
      const said = JSON.stringify(body.messages)
      expect(said).toContain('/dev/null')
      expect(said).not.toContain('secret.txt')
      expect(said).not.toContain('held open')
    },
    120_000,
  )
})

/** How many descriptors of other processes lead to a file. */
function holders(path: string): number {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const links = all.flatMap((id) => {
    try {
      return readdirSync(`/proc/${id}/fd`).map((fd) => readlinkSync(`/proc/${id}/fd/${fd}`))
    } catch {
      return [] // it has ended, or is not ours to look at
    }
  })
  return links.filter((link) => link === path).length
}
