import { existsSync, linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { applyPatch } from './apply-patch.ts'
import { toolRegistry } from './registry.ts'
import { toolContext } from './tool-context.contract.ts'

const registry = toolRegistry([applyPatch])

async function patching(files: Record<string, string>) {
  const { root, context } = await toolContext()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text)
  return {
    root,
    patch: (body: string) => registry.run('apply_patch', { patch: `*** Begin Patch\n${body}\n*** End Patch` }, context),
    raw: (patch: string) => registry.run('apply_patch', { patch }, context),
    text: (name: string) => readFileSync(join(root, name), 'utf8'),
  }
}

describe('a patch', () => {
  test('updates, adds, deletes and moves files together', async () => {
    const at = await patching({ 'a.txt': 'one\ntwo\nthree\n', 'b.txt': 'bee\n', 'c.txt': 'see\n' })
    const result = await at.patch(
      '*** Update File: a.txt\n one\n-two\n+zwei\n three\n*** Add File: deep/new.txt\n+hello\n+\n+world\n*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: d.txt\n-see\n+sea',
    )
    expect(result).toEqual({
      success: true,
      text: 'Done: updated a.txt, added deep/new.txt, deleted b.txt, moved c.txt to d.txt.',
    })
    expect(at.text('a.txt')).toBe('one\nzwei\nthree\n')
    expect(at.text('deep/new.txt')).toBe('hello\n\nworld\n')
    expect(at.text('d.txt')).toBe('sea\n')
    expect(readdirSync(at.root).sort()).toEqual(['.data', 'a.txt', 'd.txt', 'deep'])
  })

  test('makes several changes in one file, in whatever order', async () => {
    const at = await patching({ a: '1\n2\n3\n4\n5\n6\n7\n8\n' })
    await at.patch('*** Update File: a\n@@\n 6\n-7\n+seven\n@@\n 1\n-2\n 3\n@@\n 4\n+four and a half\n 5')
    expect(at.text('a')).toBe('1\n3\n4\nfour and a half\n5\n6\nseven\n8\n')
  })

  test('finds its place by the line after @@', async () => {
    const file = 'def a():\n  x = 1\n  return x\n\ndef b():\n  x = 1\n  return x\n'
    const at = await patching({ a: file })
    await at.patch('*** Update File: a\n@@ def b():\n-  x = 1\n+  x = 2')
    expect(at.text('a')).toBe('def a():\n  x = 1\n  return x\n\ndef b():\n  x = 2\n  return x\n')
    await at.patch('*** Update File: a\n@@ def a():\n@@ x = 1\n+  y = 1')
    expect(at.text('a')).toContain('def a():\n  x = 1\n  y = 1\n')
  })

  test('adds at the end when it names no place, and matches the end when it says so', async () => {
    const at = await patching({ a: 'x\ny\nx\ny' })
    await at.patch('*** Update File: a\n x\n-y\n+z\n*** End of File')
    expect(at.text('a')).toBe('x\ny\nx\nz')
    await at.patch('*** Update File: a\n+end')
    expect(at.text('a')).toBe('x\ny\nx\nz\nend')
  })

  test('keeps line endings, spaces at the ends of lines that stay, a byte order mark, and the end of the file', async () => {
    const at = await patching({ a: '\ufeffone  \r\ntwo\r\nthree', b: 'one\r\ntwo\nthree\n' })
    expect(await at.patch('*** Update File: a\n one\n-two\n+zwei\n three\n+four')).toMatchObject({ success: true })
    expect(at.text('a')).toBe('\ufeffone  \r\nzwei\r\nthree\r\nfour')
    await at.patch('*** Update File: b\n one\n two\n-three\n+drei')
    expect(at.text('b')).toBe('one\r\ntwo\ndrei\n')
  })

  test('may stand in other text, as models like to have it', async () => {
    const at = await patching({ a: 'one\n' })
    await at.raw('```\n*** Begin Patch\n*** Update File: a\n-one\n+uno\n\n*** End Patch\n```')
    expect(at.text('a')).toBe('uno\n')
    await at.raw('*** Begin Patch\r\n*** Update File: a\r\n@@ -1,1 +1,1 @@\r\n-uno\r\n+eins\r\n*** End Patch\r\n')
    expect(at.text('a')).toBe('eins\n')
  })
})

describe('a patch changes nothing', () => {
  const FILES = { a: 'one\ntwo\none\ntwo\n', b: 'bee\n' }
  const GOOD = '*** Update File: b\n-bee\n+be\n'
  test.each([
    ['when a later part fits nowhere', '*** Update File: a\n-three\n+drei', /a: hunk 1 fits no place/],
    ['when a later part fits twice', '*** Update File: a\n-one\n+eins', /fits 2 places \(lines 1, 3\)/],
    ['when an anchor is there twice', '*** Update File: a\n@@ one\n-two\n+x', /anchor "one".*2 times/],
    ['when an anchor is not there', '*** Update File: a\n@@ zero\n-two\n+x', /anchor "zero".*0 times/],
    ['when parts overlap', '*** Update File: a\n one\n-two\n+x\n one\n@@\n-two\n one\n+y', /overlaps|fits/],
    ['when a file to change is not there', '*** Update File: c\n-x\n+y', /no "c"/],
    ['when a file to add is there', '*** Add File: a\n+x', /there already/],
    ['when the target of a move is there', '*** Update File: b2\n*** Move to: a\n-x\n+y', /no "b2"/],
    ['when a file is named twice', '*** Update File: ./b\n-bee\n+bi', /names b twice/],
    ['when a path leads out', '*** Add File: ../x\n+y', /leads out of the workspace/],
    ['when a line has no sign', '*** Update File: a\none', /must start with a space/],
    ['when a new file has a line without +', '*** Add File: c\nhello', /must start with "\+"/],
    ['when an update says nothing', '*** Update File: a\n one', /changes nothing/],
    ['when there is no header', 'hello', /no file header|must start with a space/],
  ])('%s', async (_name, part, problem) => {
    const at = await patching(FILES)
    const result = await at.patch(GOOD + part)
    expect(result).toMatchObject({ success: false, text: expect.stringMatching(problem) })
    for (const [name, text] of Object.entries(FILES)) expect(at.text(name)).toBe(text)
    expect(readdirSync(at.root).sort()).toEqual(['.data', 'a', 'b'])
  })

  test('when it is no patch', async () => {
    const at = await patching(FILES)
    expect(await at.raw('--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y')).toMatchObject({
      success: false,
      text: expect.stringContaining('*** Begin Patch'),
    })
    expect(await at.patch('')).toMatchObject({ success: false, text: expect.stringContaining('names no file') })
  })

  test('when one file cannot be written after others were', async () => {
    const at = await patching(FILES)
    linkSync(join(at.root, 'b'), join(at.root, 'b-again'))
    const result = await at.patch(
      '*** Update File: a\n one\n two\n one\n-two\n+zwei\n*** Add File: new\n+x\n*** Update File: b\n-bee\n+be',
    )
    expect(result).toMatchObject({ success: false, text: expect.stringContaining('hard link') })
    expect(result.text).toContain('Nothing was changed')
    expect(at.text('a')).toBe(FILES.a)
    expect(existsSync(join(at.root, 'new'))).toBe(false)
  })
})
