import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { soon } from '../../../test/support/soon.ts'
import { verifies } from '../../../test/support/verifies.ts'
import type { ShellOptions, WorkspaceShell } from './port.ts'
import { processesWith, sandbox, temporaryWorkspace, uniqueSeconds } from './temporary.contract.ts'

const NO_SANDBOX = { works: false as const, reason: 'this test says so' }

function options(overrides: Partial<ShellOptions> = {}): ShellOptions {
  return { timeoutMs: 15_000, maxOutputBytes: 100_000, signal: new AbortController().signal, ...overrides }
}

async function shells(): Promise<{ shell: WorkspaceShell; root: string }> {
  const { workspace, root } = await temporaryWorkspace()
  if (workspace.shell === null) throw new Error('no shell')
  return { shell: workspace.shell, root }
}

async function unsafe(): Promise<{ shell: WorkspaceShell; root: string }> {
  const { workspace, root } = await temporaryWorkspace({ mode: 'unsafe', sandbox: NO_SANDBOX })
  if (workspace.shell === null) throw new Error('no shell')
  return { shell: workspace.shell, root }
}

verifies('agent:shell:off', 'where commands cannot be shut in there is no shell, and it is said why', async () => {
  const { workspace } = await temporaryWorkspace({ sandbox: NO_SANDBOX })
  expect(workspace.shell).toBeNull()
  expect(workspace.shellOff).toContain('this test says so')
  expect(workspace.shellOff).toContain('--unsafe-shell')
  const off = await temporaryWorkspace({ mode: 'off' })
  expect(off.workspace.shell).toBeNull()
  expect(off.workspace.shellOff).toContain('switched off')
})

const SANDBOXED: [string, typeof shells] = ['in the sandbox', shells]
const KINDS: [string, typeof shells][] = [...(sandbox.works ? [SANDBOXED] : []), ['without one', unsafe]]

describe.each(KINDS)('a command %s', (_kind, open) => {
  test('gives its outputs in order and its exit code, and works in the root', async () => {
    const { shell, root } = await open()
    const result = await shell.run('pwd; echo one; echo two >&2; echo three; exit 7', options())
    expect(result).toEqual({ exitCode: 7, output: `${root}\none\ntwo\nthree\n`, truncated: false, timedOut: false })
  })

  test('writes files into the workspace', async () => {
    const { shell, root } = await open()
    await shell.run('mkdir a && echo hi > a/b', options())
    expect(readFileSync(join(root, 'a/b'), 'utf8')).toBe('hi\n')
  })

  verifies('agent:shell:environment', 'sees nothing of the environment of the server', async () => {
    const { shell } = await open()
    process.env.SWITCHBOARD_TEST_KEY = 'sk-do-not-tell'
    const { output } = await shell.run('env; cat /proc/self/environ /proc/1/environ 2>/dev/null', options())
    delete process.env.SWITCHBOARD_TEST_KEY
    expect(output).not.toContain('sk-do-not-tell')
    const names = (await shell.run('env', options())).output.split('\n').map((line) => line.split('=')[0])
    const allowed = ['PATH', 'HOME', 'LANG', 'TERM', 'PWD', 'OLDPWD', 'SHLVL', '_', 'SWITCHBOARD_COMMAND', '']
    expect(names.filter((name) => !allowed.includes(name ?? ''))).toEqual([])
  })

  test('has nothing to read from, so that it cannot wait for an answer', async () => {
    const { shell } = await open()
    expect(await shell.run('cat; echo end', options())).toMatchObject({ exitCode: 0, output: 'end\n' })
  })

  verifies(
    'agent:shell:on-exit',
    'ends when it ends, though a child holds its pipes; the child ends with it',
    async () => {
      const { shell } = await open()
      const seconds = uniqueSeconds()
      const result = await shell.run(`sleep ${seconds} & echo done`, options())
      expect(result).toMatchObject({ exitCode: 0, output: 'done\n', timedOut: false })
      await soon(() => expect(processesWith(seconds)).toEqual([]))
    },
  )

  verifies(
    'agent:shell:no-process-left',
    'that is cancelled leaves no process, not even one in another session',
    async () => {
      const { shell } = await open()
      const seconds = uniqueSeconds()
      const stop = new AbortController()
      const running = shell.run(
        `echo up; sleep ${seconds} & setsid sleep ${seconds} & setsid setsid sleep ${seconds}`,
        {
          ...options({ signal: stop.signal }),
          onOutput: () => stop.abort(),
        },
      )
      expect(await running).toMatchObject({ exitCode: null, timedOut: false })
      expect(processesWith(seconds)).toEqual([])
    },
  )

  verifies(
    'agent:shell:no-process-left',
    'that takes too long is killed with all that it started, and what it said is kept',
    async () => {
      const { shell } = await open()
      const seconds = uniqueSeconds()
      const result = await shell.run(
        `echo up; trap "" TERM INT HUP; sleep ${seconds} & setsid sleep ${seconds}`,
        options({ timeoutMs: 1_500 }),
      )
      expect(result).toEqual({ exitCode: null, output: 'up\n', truncated: false, timedOut: true })
      expect(processesWith(seconds)).toEqual([])
    },
  )

  test('is not started when it is cancelled before', async () => {
    const { shell, root } = await open()
    await shell.run('touch here', options({ signal: AbortSignal.abort() }))
    expect(existsSync(join(root, 'here'))).toBe(false)
  })

  test('that prints without end is kept to its limit, with beginning and end', async () => {
    const { shell } = await open()
    const result = await shell.run('echo first; yes | head -c 30000000; echo last', options({ maxOutputBytes: 10_000 }))
    expect(result.truncated).toBe(true)
    expect(result.output.length).toBeLessThan(10_100)
    expect(result.output).toMatch(/^first\n[\s\S]*characters left out[\s\S]*\nlast\n$/)
  })

  test('that prints bytes that are no text gives something that can be shown', async () => {
    const { shell } = await open()
    const { output } = await shell.run(String.raw`printf 'a\000b\033[31mred\033[0m\377\303\244\r\nend\007'`, options())
    expect(output).toBe('a\ufffdbred\ufffdä\nend\ufffd')
  })

  test('in the background goes on, is read piece by piece, and ends when killed', async () => {
    const { shell } = await open()
    const seconds = uniqueSeconds()
    const command = shell.start(`echo one; sleep ${seconds} & setsid sleep ${seconds}`)
    await soon(() => expect(processesWith(seconds).length).toBeGreaterThan(1))
    await soon(() => expect(command.read()).toEqual({ output: 'one\n', running: true, exitCode: null }))
    expect(command.read()).toEqual({ output: '', running: true, exitCode: null })
    await command.kill()
    expect(processesWith(seconds)).toEqual([])
    expect(command.read()).toMatchObject({ running: false, exitCode: null })
    await command.kill()
  })

  test('in the background that ends by itself says how', async () => {
    const { shell } = await open()
    const command = shell.start('echo bye; exit 3')
    await soon(() => expect(command.read().running).toBe(false))
    expect(command.read()).toEqual({ output: '', running: false, exitCode: 3 })
  })

  test('in the background is one of a few', async () => {
    const { shell } = await open()
    const commands = Array.from({ length: 8 }, () => shell.start('sleep 60'))
    expect(() => shell.start('sleep 60')).toThrow(expect.objectContaining({ code: 'too_many_commands' }))
    await commands[0]!.kill()
    commands.push(shell.start('sleep 60'))
    await Promise.all(commands.map((command) => command.kill()))
  })

  test('in the background that prints without end is kept to a limit', async () => {
    const { shell } = await open()
    const command = shell.start('yes | head -c 20000000')
    let output = ''
    await soon(() => {
      const read = command.read()
      output = read.output.length > output.length ? read.output : output
      expect(read.running).toBe(false)
    })
    expect(output.length).toBeLessThan(300_000)
  })

  test('that cannot be one is refused', async () => {
    const { shell } = await open()
    for (const command of ['echo \0', 'x'.repeat(200_000)])
      await expect(shell.run(command, options())).rejects.toMatchObject({ code: 'bad_request' })
    expect(await shell.run('no-such-program-here', options())).toMatchObject({ exitCode: 127 })
  })
})
