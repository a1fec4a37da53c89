import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { probeSandbox } from './bubblewrap.ts'
import { SECRET, type TemporaryWorkspace, temporaryWorkspace } from './temporary.contract.ts'
import { openWorkspace } from './workspace.ts'

const never = new AbortController().signal

/** What somebody may have planted, and the path that is then asked for. */
const ESCAPES: [string, (at: TemporaryWorkspace) => string][] = [
  ['..', () => '..'],
  ['.. and a name', () => '../outside/secret.txt'],
  ['.. behind a folder', () => 'a/../../outside/secret.txt'],
  ['.. many times', () => `${'../'.repeat(40)}etc/passwd`],
  ['an absolute path', ({ outside }) => join(outside, 'secret.txt')],
  ['an absolute path of the machine', () => '/etc/passwd'],
  ['a neighbour whose name starts like the root', ({ root }) => `${root}-2/secret.txt`],
  ['/proc/self/root', ({ outside }) => `/proc/self/root${outside}/secret.txt`],
  ['/proc/self/environ', () => '/proc/self/environ'],
  ['/proc/self/cwd', ({ root }) => `/proc/self/cwd/../../../../../..${root}/../outside/secret.txt`],
  ['/dev/fd', () => '/dev/fd/0'],
  ['a link as the last part', ({ root, outside }) => link(root, 'link', join(outside, 'secret.txt'))],
  ['a relative link as the last part', ({ root }) => link(root, 'link', '../outside/secret.txt')],
  ['a link to /proc/self/environ', ({ root }) => link(root, 'link', '/proc/self/environ')],
  ['a link as a folder above', ({ root, outside }) => `${link(root, 'link', outside)}/secret.txt`],
  ['a link to the folder above the root', ({ root }) => `${link(root, 'link', '..')}/outside/secret.txt`],
  ['a link to /', ({ root, outside }) => `${link(root, 'link', '/')}${outside}/secret.txt`],
  ['a link to /proc/self/root', ({ root, outside }) => `${link(root, 'link', '/proc/self/root')}${outside}/secret.txt`],
  ['a link in a chain of links', ({ root, outside }) => `${link(root, 'two', link(root, 'one', outside))}/secret.txt`],
  ['a hidden file', () => '.data/tokens.txt'],
  ['a hidden file by an absolute path', ({ hidden }) => join(hidden, 'tokens.txt')],
  ['a hidden file by a link', ({ root }) => link(root, 'link', '.data/tokens.txt')],
  ['a hidden file by a linked folder', ({ root }) => `${link(root, 'link', '.data')}/tokens.txt`],
]

describe('refused, whatever is asked of it:', () => {
  test.each(ESCAPES)('%s', async (_name, plant) => {
    const at = await temporaryWorkspace()
    const path = plant(at)
    const before = snapshot(at)
    const { files } = at.workspace
    const refused = { code: 'outside_workspace', message: expect.stringMatching(/[;:] |try again/) }
    await expect(files.read(path, 1_000)).rejects.toMatchObject(refused)
    await expect(files.write(path, Buffer.from('x'))).rejects.toMatchObject(refused)
    await expect(files.list(path)).rejects.toMatchObject(refused)
    await expect(files.stat(path)).rejects.toMatchObject(refused)
    await expect(files.walk(path, never)[Symbol.asyncIterator]().next()).rejects.toMatchObject(refused)
    expect(snapshot(at)).toEqual(before)
  })

  verifies('agent:files:links', 'a file to be made outside', async () => {
    const at = await temporaryWorkspace()
    link(at.root, 'link', at.outside)
    for (const path of ['../outside/new', 'link/new', 'link/deep/new', '.data/new', '.data/deep/new']) {
      await expect(at.workspace.files.write(path, Buffer.from('x'))).rejects.toMatchObject({
        code: 'outside_workspace',
      })
    }
    expect(readdirSync(at.outside)).toEqual(['secret.txt'])
    expect(readdirSync(at.hidden)).toEqual(['tokens.txt'])
  })

  verifies('agent:files:links', 'a dangling link, as the last part and as a folder above', async () => {
    const at = await temporaryWorkspace()
    link(at.root, 'file', join(at.outside, 'new.txt'))
    link(at.root, 'folder', join(at.outside, 'new-folder'))
    const refused = { code: 'outside_workspace' }
    await expect(at.workspace.files.write('file', Buffer.from('x'))).rejects.toMatchObject(refused)
    await expect(at.workspace.files.read('file', 10)).rejects.toMatchObject(refused)
    await expect(at.workspace.files.write('folder/file', Buffer.from('x'))).rejects.toMatchObject(refused)
    await expect(at.workspace.files.write('folder/deep/file', Buffer.from('x'))).rejects.toMatchObject(refused)
    expect(readdirSync(at.outside)).toEqual(['secret.txt'])
  })

  verifies('agent:files:links', 'removing through a link; the link itself may go', async () => {
    const at = await temporaryWorkspace()
    link(at.root, 'link', at.outside)
    const refused = { code: 'outside_workspace' }
    for (const path of ['link/secret.txt', '../outside/secret.txt', '.data/tokens.txt'])
      await expect(at.workspace.files.remove(path)).rejects.toMatchObject(refused)
    await at.workspace.files.remove('link')
    expect(readFileSync(join(at.outside, 'secret.txt'), 'utf8')).toBe(SECRET)
  })

  test('a link that leads to itself', async () => {
    const at = await temporaryWorkspace()
    link(at.root, 'loop', 'loop')
    await expect(at.workspace.files.read('loop', 10)).rejects.toMatchObject({ code: 'outside_workspace' })
    await expect(at.workspace.files.write('loop/x', Buffer.from('x'))).rejects.toMatchObject({
      code: 'outside_workspace',
    })
  })

  test('a NUL in the path', async () => {
    const { workspace } = await temporaryWorkspace()
    await expect(workspace.files.read('a\0/../../x', 10)).rejects.toMatchObject({ code: 'bad_path' })
  })
})

test('a pipe is refused and does not hold the reader', async () => {
  const { workspace, root } = await temporaryWorkspace()
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(root, 'pipe')])
  await expect(workspace.files.read('pipe', 10)).rejects.toMatchObject({ code: 'not_a_file' })
  await expect(workspace.files.write('pipe', Buffer.from('x'))).rejects.toMatchObject({ code: 'not_a_file' })
})

verifies('agent:files:proc', 'a workspace of the whole machine still refuses /proc and has no shell', async () => {
  const workspace = await openWorkspace({
    root: '/',
    hidden: [],
    shell: { mode: 'sandbox', allowNetwork: false, sandbox: await probeSandbox() },
  })
  for (const path of ['/proc/self/environ', 'proc/self/environ', 'dev/null', 'sys/kernel'])
    await expect(workspace.files.read(path, 1_000)).rejects.toMatchObject({ code: 'outside_workspace' })
  expect(workspace.shell).toBeNull()
  expect(workspace.shellOff).not.toBe('')
})

verifies('agent:workspace:own-data', "a workspace in the server's own data is refused", async () => {
  const { hidden, root } = await temporaryWorkspace()
  mkdirSync(join(hidden, 'deeper'))
  const shell = { mode: 'off' as const, allowNetwork: false, sandbox: { works: false as const, reason: '' } }
  for (const folder of [hidden, join(hidden, 'deeper'), link(root, 'way', hidden)]) {
    const opened = openWorkspace({ root: join(root, folder.replace(root, '')), hidden: [hidden], shell })
    await expect(opened).rejects.toMatchObject({ code: 'workspace_outside' })
  }
})

verifies(
  'agent:files:race',
  'a folder that is swapped for a link all the time never leads a read or a write outside',
  async () => {
    const at = await temporaryWorkspace()
    mkdirSync(join(at.root, 'a/deep'), { recursive: true })
    mkdirSync(join(at.outside, 'deep'))
    linkSync(join(at.outside, 'secret.txt'), join(at.outside, 'deep/file.txt'))
    await at.workspace.files.write('a/deep/file.txt', Buffer.from('inside'))
    const swapper = startSwapping(at)
    const outcomes = { inside: 0, refused: 0 }
    const until = Date.now() + 1_500
    while (Date.now() < until) {
      for (const work of attempts(at)) {
        const text = await work().catch((error: { code?: string }) => error.code ?? String(error))
        expect(['inside', 'outside_workspace', 'not_found']).toContain(text)
        outcomes[text === 'inside' ? 'inside' : 'refused'] += 1
      }
    }
    await swapper.stop()
    // Both happened, so the test has tried what it is about.
    expect(outcomes.inside).toBeGreaterThan(0)
    expect(outcomes.refused).toBeGreaterThan(0)
    expect(readdirSync(at.outside).sort()).toEqual(['deep', 'secret.txt'])
    expect(readdirSync(join(at.outside, 'deep'))).toEqual(['file.txt'])
    expect(readFileSync(join(at.outside, 'deep/file.txt'), 'utf8')).toBe(SECRET)
  },
)

/** One of each, through the folder that changes. */
function attempts({ workspace: { files } }: TemporaryWorkspace): (() => Promise<string>)[] {
  return [
    async () => String(await files.read('a/deep/file.txt', 1_000)),
    async () => files.write('a/deep/file.txt', Buffer.from('inside')).then(() => 'inside'),
    async () => files.write('a/deep/new/file.txt', Buffer.from('inside')).then(() => 'inside'),
    async () => files.remove('a/deep/new/file.txt').then(() => 'inside'),
    async () => ((await files.list('a/deep')).includes('secret.txt') ? 'outside' : 'inside'),
    async () => {
      for await (const { bytes } of files.walk('a', never)) if (bytes === SECRET.length) return 'outside'
      return 'inside'
    },
  ]
}

function startSwapping({ root, outside }: TemporaryWorkspace): { stop(): Promise<void> } {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const script = `
    const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
    const { workerData: { root, outside, flag } } = require('node:worker_threads')
    let count = 0
    // A write may have made the folder anew in the moment between; then that one goes aside.
    const insist = (work) => {
      for (;;) try { return work() } catch { try { renameSync(root + '/a', root + '/aside' + count++) } catch {} }
    }
    while (Atomics.load(flag, 0) === 0) {
      renameSync(root + '/a', root + '/b')
      insist(() => symlinkSync(outside, root + '/a'))
      unlinkSync(root + '/a')
      insist(() => renameSync(root + '/b', root + '/a'))
    }`
  const worker = new Worker(script, { eval: true, workerData: { root, outside, flag } })
  const ended = once(worker, 'exit')
  const stop = async () => {
    Atomics.store(flag, 0, 1)
    await ended
  }
  onTestFinished(stop)
  return { stop }
}

function link(root: string, name: string, target: string): string {
  symlinkSync(target, join(root, name))
  return name
}

/** All there is, by name and text. */
function snapshot({ outside, hidden }: TemporaryWorkspace): string[] {
  return [outside, hidden].flatMap((folder) =>
    readdirSync(folder).map((name) => `${name}: ${readFileSync(join(folder, name), 'utf8')}`),
  )
}
