import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { temporaryWorkspace } from './temporary.contract.ts'

const never = new AbortController().signal
const text = (words: string) => Buffer.from(words)

test('a file is written with the folders above it and read again', async () => {
  const { workspace, root } = await temporaryWorkspace()
  await workspace.files.write('a/b/c.txt', text('hello'))
  expect(String(await workspace.files.read('a/b/c.txt', 100))).toBe('hello')
  expect(String(await workspace.files.read(join(root, 'a/b/c.txt'), 100))).toBe('hello')
  expect(String(await workspace.files.read('a/x/../b/./c.txt', 100))).toBe('hello')
  expect(readdirSync(join(root, 'a/b'))).toEqual(['c.txt'])
})

test('writing keeps the mode of the file', async () => {
  const { workspace, root } = await temporaryWorkspace()
  writeFileSync(join(root, 'run.sh'), 'old')
  chmodSync(join(root, 'run.sh'), 0o751)
  await workspace.files.write('run.sh', text('new'))
  expect(statSync(join(root, 'run.sh')).mode & 0o777).toBe(0o751)
  expect(readFileSync(join(root, 'run.sh'), 'utf8')).toBe('new')
})

test('who reads while a file is written sees the old text or the new one, never a part', async () => {
  const { workspace } = await temporaryWorkspace()
  const texts = ['a', 'b'].map((letter) => text(letter.repeat(300_000)))
  await workspace.files.write('big.txt', texts[0]!)
  let writing = true
  const writer = (async () => {
    for (let round = 0; round < 40; round += 1) await workspace.files.write('big.txt', texts[round % 2]!)
    writing = false
  })()
  let reads = 0
  for (; writing; reads += 1) {
    const bytes = await workspace.files.read('big.txt', 1_000_000)
    expect(texts.some((whole) => whole.equals(bytes))).toBe(true)
  }
  await writer
  expect(reads).toBeGreaterThan(0)
})

test('what is missing, a folder, or too large is told apart', async () => {
  const { workspace } = await temporaryWorkspace()
  await workspace.files.write('folder/file', text('12345'))
  await expect(workspace.files.read('nothing', 10)).rejects.toMatchObject({ code: 'not_found' })
  await expect(workspace.files.read('folder/file/below', 10)).rejects.toMatchObject({ code: 'not_found' })
  await expect(workspace.files.read('folder', 10)).rejects.toMatchObject({ code: 'is_directory' })
  await expect(workspace.files.read('.', 10)).rejects.toMatchObject({ code: 'is_directory' })
  await expect(workspace.files.write('folder', text(''))).rejects.toMatchObject({ code: 'is_directory' })
  await expect(workspace.files.read('folder/file', 4)).rejects.toMatchObject({ code: 'too_large' })
  await expect(workspace.files.read('x'.repeat(300), 4)).rejects.toMatchObject({ code: 'bad_path' })
  await expect(workspace.files.list('folder/file')).rejects.toMatchObject({ code: 'not_found' })
  expect(await workspace.files.stat('nothing')).toBeNull()
  expect(await workspace.files.stat('folder')).toMatchObject({ kind: 'directory' })
  expect(await workspace.files.stat('folder/file')).toMatchObject({ kind: 'file', bytes: 5 })
})

test('a file is removed, a folder is not', async () => {
  const { workspace, root } = await temporaryWorkspace()
  await workspace.files.write('folder/file', text(''))
  await workspace.files.remove('folder/file')
  await expect(workspace.files.remove('folder/file')).rejects.toMatchObject({ code: 'not_found' })
  await expect(workspace.files.remove('folder')).rejects.toMatchObject({ code: 'is_directory' })
  await expect(workspace.files.remove('.')).rejects.toMatchObject({ code: 'is_directory' })
  expect(readdirSync(join(root, 'folder'))).toEqual([])
})

test('names are taken as they are, whatever their letters', async () => {
  const { workspace, root } = await temporaryWorkspace()
  // Composed and decomposed, a right-to-left mark, look-alikes of dots and slashes, a line break, a tilde.
  const names = [
    'é.txt',
    'e\u0301.txt',
    '\u202egpj.txt',
    '\uff0e\uff0e\uff0fetc',
    '․․∕x',
    'a\nb',
    '~',
    '-rf',
    '...',
    '日本語',
  ]
  for (const name of names) await workspace.files.write(name, text(name))
  expect(readdirSync(root).sort()).toEqual([...names, '.data'].sort())
  for (const name of names) expect(String(await workspace.files.read(name, 100))).toBe(name)
})

test('a list is sorted, marks folders and leaves out what is hidden', async () => {
  const { workspace } = await temporaryWorkspace()
  await workspace.files.write('b.txt', text(''))
  await workspace.files.write('a/x', text(''))
  expect(await workspace.files.list('.')).toEqual(['a/', 'b.txt'])
})

describe('a walk', () => {
  test('gives every file below a folder, but follows no link and enters nothing hidden', async () => {
    const { workspace, root, outside } = await temporaryWorkspace()
    for (const path of ['b.txt', 'a/1', 'a/c/2', 'd/3']) await workspace.files.write(path, text(path))
    symlinkSync(outside, join(root, 'out'))
    symlinkSync(join(root, 'a'), join(root, 'again'))
    expect(await walked(workspace.files.walk('.', never))).toEqual(['b.txt', 'a/1', 'a/c/2', 'd/3'])
    expect(await walked(workspace.files.walk('a', never))).toEqual(['a/1', 'a/c/2'])
    expect(await walked(workspace.files.walk('a/1', never))).toEqual(['a/1'])
    expect(await walked(workspace.files.walk('.', never, async (folder) => folder !== 'a/c'))).toEqual([
      'b.txt',
      'a/1',
      'd/3',
    ])
  })

  test('ends when it is aborted', async () => {
    const { workspace } = await temporaryWorkspace()
    for (const path of ['a/1', 'b/2']) await workspace.files.write(path, text(path))
    const stop = new AbortController()
    const seen: string[] = []
    for await (const { path } of workspace.files.walk('.', stop.signal)) {
      seen.push(path)
      stop.abort()
    }
    expect(seen).toEqual(['a/1'])
  })

  test('of a folder that is not there fails', async () => {
    const { workspace } = await temporaryWorkspace()
    await expect(walked(workspace.files.walk('nothing', never))).rejects.toMatchObject({ code: 'not_found' })
  })
})

test('links inside the workspace work, and writing through one keeps it', async () => {
  const { workspace, root } = await temporaryWorkspace()
  await workspace.files.write('real/file.txt', text('old'))
  symlinkSync('real', join(root, 'folder'))
  symlinkSync('folder/file.txt', join(root, 'file'))
  expect(String(await workspace.files.read('folder/file.txt', 100))).toBe('old')
  await workspace.files.write('file', text('new'))
  expect(lstatSync(join(root, 'file')).isSymbolicLink()).toBe(true)
  expect(readFileSync(join(root, 'real/file.txt'), 'utf8')).toBe('new')
  expect(await workspace.files.stat('file')).toMatchObject({ kind: 'file' })
  await workspace.files.remove('file')
  expect(await workspace.files.list('.')).toEqual(['folder', 'real/'])
})

verifies(
  'agent:files:hard-links',
  'a hard link can be read but not written, since its other name may lie outside',
  async () => {
    const { workspace, root, outside } = await temporaryWorkspace()
    linkSync(join(outside, 'secret.txt'), join(root, 'linked.txt'))
    await expect(workspace.files.write('linked.txt', text('x'))).rejects.toMatchObject({
      code: 'outside_workspace',
      message: expect.stringContaining('Remove it, then write it anew'),
    })
    expect(statSync(join(outside, 'secret.txt')).nlink).toBe(2)
    await workspace.files.remove('linked.txt')
    await workspace.files.write('linked.txt', text('x'))
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).not.toBe('x')
  },
)

test('a folder in place of a file that is written to does not keep temporary files', async () => {
  const { workspace, root } = await temporaryWorkspace()
  mkdirSync(join(root, 'taken'))
  await expect(workspace.files.write('taken', text('x'))).rejects.toMatchObject({ code: 'is_directory' })
  expect(readdirSync(root).sort()).toEqual(['.data', 'taken'])
})

async function walked(files: AsyncIterable<{ path: string }>): Promise<string[]> {
  const paths: string[] = []
  for await (const { path } of files) paths.push(path)
  return paths
}
