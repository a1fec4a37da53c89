import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { builtinTools } from './builtin.ts'
import { toolRegistry } from './registry.ts'
import { toolContext } from './tool-context.contract.ts'

const registry = toolRegistry(builtinTools({ shellOff: null, web: { allowNetwork: false } }))

async function files(given: Record<string, string | Buffer> = {}) {
  const at = await toolContext()
  for (const [name, content] of Object.entries(given)) {
    mkdirSync(join(at.root, name, '..'), { recursive: true })
    writeFileSync(join(at.root, name), content)
  }
  return { ...at, run: (name: string, input: unknown) => registry.run(name, input, at.context) }
}

describe('read_file', () => {
  test('shows lines with their numbers', async () => {
    const { run } = await files({ 'a.txt': 'one\r\ntwo\n\nfour' })
    expect(await run('read_file', { path: 'a.txt' })).toEqual({
      success: true,
      text: '     1\tone\n     2\ttwo\n     3\t\n     4\tfour',
    })
    expect(await run('read_file', { path: 'a.txt', offset: 2, limit: 1 })).toEqual({
      success: true,
      text: '     2\ttwo\n(Lines 2 to 2 of 4; go on with offset 3.)',
    })
    expect(await run('read_file', { path: 'a.txt', offset: 5 })).toMatchObject({
      success: false,
      text: expect.stringContaining('4 lines'),
    })
  })

  test('shows a long file piece by piece, without a line lost between', async () => {
    const lines = Array.from({ length: 7_000 }, (_, index) => `line ${index} ${'x'.repeat(index % 90)}`)
    const { run } = await files({ long: lines.join('\n') })
    const seen: string[] = []
    for (let offset = 1; offset <= lines.length; ) {
      const { text } = await run('read_file', { path: 'long', offset })
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(50 * 1024)
      expect(text).not.toContain('left out')
      seen.push(...text.split('\n').flatMap((line) => (line.includes('\t') ? [line.split('\t')[1]!] : [])))
      offset = seen.length + 1
    }
    expect(seen).toEqual(lines)
  })

  test('tells pictures and other binary files from text', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d', 'hex')
    const { run } = await files({
      'p.png': png,
      'b.bin': Buffer.from([1, 0, 2]),
      empty: '',
      latin: Buffer.from('f\xfcr', 'latin1'),
    })
    expect((await run('read_file', { path: 'p.png' })).text).toContain('a picture (PNG) of 12 bytes')
    expect((await run('read_file', { path: 'b.bin' })).text).toContain('a binary file of 3 bytes')
    expect((await run('read_file', { path: 'empty' })).text).toBe('(The file is empty.)')
    expect((await run('read_file', { path: 'latin' })).text).toBe('     1\tfür')
    const utf16 = await files({ wide: Buffer.from('\ufeffhi', 'utf16le') })
    expect((await utf16.run('read_file', { path: 'wide' })).text).toBe('     1\thi')
  })

  test('says what is near when a file is not there, and that a folder is one', async () => {
    const { run } = await files({ 'src/config.ts': 'x', 'src/Config.json': '{}' })
    const missing = await run('read_file', { path: 'src/config.js' })
    expect(missing).toMatchObject({
      success: false,
      text: expect.stringContaining('Near it there is: Config.json, config.ts'),
    })
    expect(await run('read_file', { path: 'src' })).toMatchObject({
      success: false,
      text: expect.stringContaining('is a folder'),
    })
    expect(await run('read_file', { path: '../x' })).toMatchObject({
      success: false,
      text: expect.stringContaining('leads out'),
    })
    expect(await run('read_file', { path: '.data/tokens.txt' })).toMatchObject({ success: false })
  })

  test('cuts lines that are endless', async () => {
    const { run } = await files({ min: `${'a'.repeat(10_000)}\nend` })
    const { text } = await run('read_file', { path: 'min' })
    expect(text).toContain('… (10000 characters)')
    expect(text).toContain('     2\tend')
  })
})

test('write_file makes and replaces files', async () => {
  const { run, root } = await files()
  expect(await run('write_file', { path: 'a/b.txt', content: 'hi' })).toEqual({
    success: true,
    text: 'Made a/b.txt (2 bytes).',
  })
  expect(await run('write_file', { path: 'a/b.txt', content: 'hi!' })).toMatchObject({
    success: true,
    text: 'Replaced a/b.txt (3 bytes).',
  })
  expect(readFileSync(join(root, 'a/b.txt'), 'utf8')).toBe('hi!')
})

test('list_dir lists', async () => {
  const { run } = await files({ 'b.txt': '', 'a/x': '' })
  expect(await run('list_dir', {})).toEqual({ success: true, text: 'a/\nb.txt' })
  expect(await run('list_dir', { path: null })).toEqual({ success: true, text: 'a/\nb.txt' })
  expect(await run('list_dir', { path: 'nothing' })).toMatchObject({ success: false })
})

describe('a file that changed since it was seen', () => {
  test('is not edited at first; the answer shows what is there now, and the next try counts', async () => {
    const { run, root } = await files({ a: 'one\ntwo\n' })
    await run('read_file', { path: 'a' })
    writeFileSync(join(root, 'a'), 'zero\none\ntwo\n')
    const edit = { path: './a', old_string: 'one', new_string: 'eins' }
    const first = await run('edit_file', edit)
    expect(first).toMatchObject({ success: false, text: expect.stringContaining('has changed since you last saw it') })
    expect(first.text).toContain('     2\tone')
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('zero\none\ntwo\n')
    expect(await run('edit_file', edit)).toMatchObject({ success: true })
  })

  test('is not overwritten at first', async () => {
    const { run, root } = await files()
    await run('write_file', { path: 'a', content: 'mine' })
    writeFileSync(join(root, 'a'), 'theirs')
    expect(await run('write_file', { path: 'a', content: 'mine too' })).toMatchObject({ success: false })
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('theirs')
    expect(await run('write_file', { path: 'a', content: 'mine too' })).toMatchObject({ success: true })
  })

  test('is none when the tools changed it themselves', async () => {
    const { run } = await files({ a: 'one\ntwo\n' })
    await run('read_file', { path: 'a' })
    await run('edit_file', { path: 'a', old_string: 'one', new_string: 'eins' })
    await run('apply_patch', { patch: '*** Begin Patch\n*** Update File: a\n-two\n+zwei\n*** End Patch' })
    expect(await run('edit_file', { path: 'a', old_string: 'zwei', new_string: 'drei' })).toMatchObject({
      success: true,
    })
  })
})

describe('edit_file', () => {
  test('edits and shows the place', async () => {
    const { run, root } = await files({ a: '\ufeff1\r\n2\r\n3\r\n4\r\n5\r\n' })
    const result = await run('edit_file', { path: 'a', old_string: '3\n4', new_string: 'three\nfour' })
    expect(result.text).toBe(
      'Edited a (line 3). There is now:\n     1\t1\n     2\t2\n     3\tthree\n     4\tfour\n     5\t5\n     6\t',
    )
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('\ufeff1\r\n2\r\nthree\r\nfour\r\n5\r\n')
  })

  test('refuses what is not text, and what is not there', async () => {
    const { run } = await files({ bin: Buffer.from([0, 1]), latin: Buffer.from('f\xfcr', 'latin1') })
    for (const path of ['bin', 'latin', 'nothing'])
      expect(await run('edit_file', { path, old_string: 'r', new_string: 'x' })).toMatchObject({ success: false })
  })

  test('by many at once loses no edit', async () => {
    const { root, context } = await files({ a: Array.from({ length: 20 }, (_, index) => `<${index}>`).join('\n') })
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => {
        const input = { path: 'a', old_string: `<${index}>`, new_string: `done ${index}` }
        return registry.run('edit_file', input, { ...context, state: new Map() })
      }),
    )
    expect(results.every(({ success }) => success)).toBe(true)
    const expected = Array.from({ length: 20 }, (_, index) => `done ${index}`).join('\n')
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe(expected)
  })
})
