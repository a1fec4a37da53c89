import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, closeSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import type { ShellLimits } from './limits.ts'
import { sandboxedLaunch } from './shell.ts'
import { sandbox, temporaryWorkspace } from './temporary.contract.ts'
import type { ShellPolicy } from './workspace.ts'

const TIGHT: ShellLimits = { processes: 24, memoryMb: 64, fileMb: 1 }
const NO_SANDBOX: Partial<ShellPolicy> = { mode: 'unsafe', sandbox: { works: false, reason: 'this test says so' } }
const SANDBOXED: [string, Partial<ShellPolicy>][] = sandbox.works ? [['in the sandbox', {}]] : []
const NOBODY = 65_534

describe.each([...SANDBOXED, ['without one', NO_SANDBOX]] as const)('a command %s', (_kind, policy) => {
  async function run(command: string, limits = TIGHT) {
    const { workspace, root } = await temporaryWorkspace({ ...policy, limits })
    const options = { timeoutMs: 30_000, maxOutputBytes: 100_000, signal: new AbortController().signal }
    const result = await workspace.shell?.run(command, options)
    return { ...result, root }
  }

  verifies('agent:shell:limits', 'that eats memory fails, and what comes after it goes on', async () => {
    // It stops by itself at four times the bound, should there be none.
    const { output } = await run('head -c 256M /dev/zero | tail -c 200M | wc -c; echo after')
    expect(output).toMatch(/memory|alloc/i)
    expect(output).toMatch(/\n0\nafter\n$/)
    expect((await run('head -c 32M /dev/zero | tail -c 16M | wc -c')).output).toBe(`${16 * 1024 ** 2}\n`)
  })

  verifies('agent:shell:limits', 'that writes without end is stopped at the size of a file', async () => {
    const { output, root } = await run('head -c 4M /dev/zero > big; echo "code $?"')
    expect(output).not.toContain('code 0')
    expect(statSync(join(root, 'big')).size).toBe(1024 ** 2)
  })

  test('is taken before the server when the memory of the machine runs out', async () => {
    expect((await run('cat /proc/self/oom_score_adj')).output).toBe('1000\n')
  })

  test('has room for ordinary work by default', async () => {
    const { workspace } = await temporaryWorkspace(policy)
    const options = { timeoutMs: 30_000, maxOutputBytes: 100_000, signal: new AbortController().signal }
    const result = await workspace.shell?.run(
      'ulimit -d; ulimit -f; seq 100 | xargs -P 50 -I{} echo {} | wc -l',
      options,
    )
    expect(result?.output).toBe('4194304\n8388608\n100\n')
  })
})

describe.runIf(sandbox.works)('processes of a command', () => {
  verifies('agent:shell:limits', 'are bounded where the server is not root', async () => {
    const { root } = await temporaryWorkspace()
    const asOther = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    if (asOther.uid !== undefined) {
      chmodSync(dirname(root), 0o755)
      chownSync(root, NOBODY, NOBODY)
    }
    // Forty at most, should there be no bound.
    const command = 'i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done; echo "all of them"'
    if (!sandbox.works) throw new Error('no sandbox')
    const confinement = { root, hidden: [], allowNetwork: false }
    const { file, args, env, cwd, ending } = sandboxedLaunch(sandbox, confinement, { command, limits: TIGHT })
    const child = spawn(file, args, { env, cwd, ...asOther, stdio: ['ignore', 'pipe', 'pipe', 'pipe', ending.root] })
    closeSync(ending.root)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += String(chunk)))
    await once(child, 'close')
    expect(said).toMatch(/fork/i)
    expect(said).not.toContain('all of them')
  })
})
