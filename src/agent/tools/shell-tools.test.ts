import { describe, expect, test } from 'vitest'
import { soon } from '../../../test/support/soon.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { processesWith, sandbox, uniqueSeconds } from '../workspace/temporary.contract.ts'
import type { ToolContext } from './port.ts'
import { closeTools, toolRegistry } from './registry.ts'
import { shellTools } from './shell.ts'
import { toolContext } from './tool-context.contract.ts'

const registry = toolRegistry(shellTools())

async function shell(changed: Partial<ToolContext> = {}) {
  const at = await toolContext()
  const context = { ...at.context, ...changed }
  return { ...at, context, run: (name: string, input: unknown) => registry.run(name, input, context) }
}

test('without a shell in the workspace it says why', async () => {
  const { context } = await toolContext({ sandbox: { works: false, reason: 'not here' } })
  expect(await registry.run('shell', { command: 'true' }, context)).toMatchObject({
    success: false,
    text: expect.stringContaining('not here'),
  })
})

describe.runIf(sandbox.works)('shell', () => {
  test('shows the output and the exit code', async () => {
    const { run } = await shell()
    expect(await run('shell', { command: 'echo hi; echo there >&2' })).toEqual({
      success: true,
      text: 'hi\nthere\n(Exit code 0.)',
    })
    expect(await run('shell', { command: 'exit 3' })).toEqual({
      success: false,
      text: '(It printed nothing.)\n(Exit code 3.)',
    })
  })

  test('tells what is printed while it runs', async () => {
    const told: string[] = []
    const { run } = await shell({ onProgress: (text) => told.push(text) })
    await run('shell', { command: 'echo one; sleep 0.2; echo two' })
    expect(told.join('')).toBe('one\ntwo\n')
    expect(told.length).toBeGreaterThan(1)
  })

  test('that takes too long says so', async () => {
    const { run } = await shell()
    const result = await run('shell', { command: 'sleep 100', timeout_ms: 300 })
    expect(result).toEqual({ success: false, text: expect.stringContaining('Killed after 300 ms') })
  })

  test('that is cancelled ends with all it started', async () => {
    const stop = new AbortController()
    const seconds = uniqueSeconds()
    const { run } = await shell({ signal: stop.signal })
    const running = run('shell', { command: `sleep ${seconds} & setsid sleep ${seconds}` })
    await soon(() => expect(processesWith(`sleep\0${seconds}`).length).toBeGreaterThan(1))
    stop.abort()
    expect(await running).toMatchObject({ success: false, text: expect.stringContaining('Cancelled') })
    expect(processesWith(seconds)).toEqual([])
  })

  test('that prints a lot keeps it in a file', async () => {
    const { run, workspace } = await shell()
    const { text } = await run('shell', { command: 'seq 1 100000' })
    const [path = ''] = /\.switchboard-output\/\S+\.txt/.exec(text) ?? []
    expect(String(await workspace.files.read(path, 10_000_000))).toContain('\n100000\n')
  })

  verifies('agent:shell:background', 'in the background is read, listed and killed by its id', async () => {
    const { run } = await shell()
    const seconds = uniqueSeconds()
    const started = await run('shell', { command: `echo up; sleep ${seconds}`, run_in_background: true })
    const id = /bg_\w+/.exec(started.text)?.[0]
    await soon(async () => expect((await run('shell_output', { id })).text).toBe('up\n(It runs.)'))
    expect((await run('shell_output', { id })).text).toBe('(Nothing new.)\n(It runs.)')
    expect(await run('shell_output', { id: 'bg_0' })).toEqual({
      success: false,
      text: `There is no background command "bg_0". There are: ${id}.`,
    })
    expect(await run('shell_kill', { id })).toEqual({ success: true, text: `${id} has ended.` })
    expect((await run('shell_output', { id })).text).toBe('(Nothing new.)\n(It has ended (killed).)')
    expect(processesWith(seconds)).toEqual([])
  })

  test('in the background is bounded, belongs to its session, and ends with it', async () => {
    const { run, context } = await shell()
    const seconds = uniqueSeconds()
    const command = { command: `setsid sleep ${seconds}`, run_in_background: true }
    for (let count = 0; count < 8; count += 1) expect(await run('shell', command)).toMatchObject({ success: true })
    expect(await run('shell', command)).toMatchObject({ success: false, text: expect.stringContaining('shell_kill') })
    const other = { ...context, state: new Map() }
    expect((await registry.run('shell_output', { id: 'x' }, other)).text).toContain('There is none')
    await soon(() => expect(processesWith(`sleep\0${seconds}`)).toHaveLength(8))
    await closeTools(context.state)
    expect(processesWith(seconds)).toEqual([])
  })
})
