import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { runCli, temporaryFolder } from '../support/processes.ts'
import { ANY_PORTS, answerTo, ask, startUp } from '../support/running-up.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 120_000 })

async function run(args: string[], cwd: string) {
  const program = runCli(args, { cwd })
  return { code: await program.ended, output: program.output() }
}

verifies('cli:backup:while-running', async () => {
  const cwd = temporaryFolder()
  const up = await startUp(ANY_PORTS, cwd)
  await answerTo(up.sim, 'ann', 'write hello.txt: hi')
  const { code, output } = await run(['backup', 'all.tar.gz'], cwd)
  expect([code, output]).toEqual([0, expect.stringMatching(/files of .* are in .*all\.tar\.gz/)])
  expect(statSync(join(cwd, 'all.tar.gz')).mode & 0o777).toBe(0o600)
  await up.program.kill('SIGKILL')

  const restored = join(cwd, 'restored')
  mkdirSync(restored)
  execFileSync('tar', ['-xzf', 'all.tar.gz', '-C', restored], { cwd })
  const again = await startUp([...ANY_PORTS, '--data-dir', restored], cwd)
  const { messages } = await ask(`${again.hub}/hub/messages`)
  expect(messages.map(({ content }: { content: string }) => content)).toEqual(['write hello.txt: hi'])
  expect(await answerTo(again.sim, 'bob', 'list files')).toContain('hello.txt')
})

test('long names, links and large files come back as they were; locks do not come along', async () => {
  const cwd = temporaryFolder()
  const data = join(cwd, 'data')
  const deep = `workspace/${'a-long-folder-name/'.repeat(8)}`
  mkdirSync(join(data, deep), { recursive: true })
  mkdirSync(join(data, 'hub'))
  const large = Buffer.alloc(700_001, 'x')
  writeFileSync(join(data, deep, 'größe.bin'), large)
  writeFileSync(join(data, 'workspace', 'lock.db'), 'mine')
  writeFileSync(join(data, 'hub', 'lock.db'), '')
  symlinkSync('../elsewhere', join(data, 'workspace', 'link'))
  const { output } = await run(['backup', 'b.tgz', '--data-dir', 'data', '--json'], cwd)
  expect(JSON.parse(output)).toEqual({ file: join(cwd, 'b.tgz'), files: 2 })
  const names = execFileSync('tar', ['-tzf', 'b.tgz'], { cwd, encoding: 'utf8' })
  expect(names).not.toContain('hub/lock.db')
  expect(names).toContain('workspace/lock.db')
  mkdirSync(join(cwd, 'out'))
  execFileSync('tar', ['-xzf', 'b.tgz', '-C', 'out'], { cwd })
  expect(readFileSync(join(cwd, 'out', deep, 'größe.bin')).equals(large)).toBe(true)
  expect(readlinkSync(join(cwd, 'out', 'workspace', 'link'))).toBe('../elsewhere')
  await run(['backup', 'c.tgz', '--data-dir', 'data', '--without-workspace'], cwd)
  expect(execFileSync('tar', ['-tzf', 'c.tgz'], { cwd, encoding: 'utf8' })).not.toContain('workspace')
  const nothing = await run(['backup', 'd.tgz', '--data-dir', 'nowhere'], cwd)
  expect([nothing.code, nothing.output]).toEqual([1, expect.stringMatching(/There is no data directory .*nowhere/)])
  mkdirSync(join(cwd, 'photos'))
  const other = await run(['backup', 'e.tgz', '--data-dir', 'photos'], cwd)
  expect([other.code, other.output]).toEqual([1, expect.stringMatching(/photos is no data directory of ours/)])
  const unwritable = await run(['backup', '/no/such/folder/d.tgz', '--data-dir', 'data'], cwd)
  expect([unwritable.code, unwritable.output]).toEqual([1, expect.stringMatching(/cannot be written/)])
})
