import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

const PROGRAM = `
import { agentClient, AgentClientError } from 'switchboard/agent-client'
import { hubAdmin } from 'switchboard/hub-client'

const agent = agentClient({ url: 'http://127.0.0.1:1', patienceMs: 0 })
try {
  for await (const event of agent.events('x')) {
    if (event.event === 'done') { const steps: number = event.data.total_steps; console.log(steps) }
    // @ts-expect-error there is no such event
    if (event.event === 'nothing') console.log(event)
  }
} catch (error) {
  if (error instanceof AgentClientError) console.log(error.code, typeof hubAdmin)
}
`

test('the clients of the package are there for a program that installs it, with their types', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-package-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/switchboard'))
  symlinkSync(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
  const flags = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--types', 'node']
  const tsc = join(root, 'node_modules/typescript-7/bin/tsc')
  const checked = await run(process.execPath, [tsc, ...flags, 'program.ts'], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  )
  expect(checked.stdout).toBe('')
  const { stdout } = await run(process.execPath, ['program.js'], { cwd: folder })
  expect(stdout).toBe('agent_unreachable function\n')
}, 60_000)
