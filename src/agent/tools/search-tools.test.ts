import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { glob } from './glob.ts'
import { globMatcher } from './glob-match.ts'
import { grep } from './grep.ts'
import { toolRegistry } from './registry.ts'
import { toolContext } from './tool-context.contract.ts'

const registry = toolRegistry([glob, grep])

async function tree(files: Record<string, string | Buffer>) {
  const at = await toolContext()
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(at.root, name, '..'), { recursive: true })
    writeFileSync(join(at.root, name), content)
  }
  const text = async (name: string, input: unknown) => (await registry.run(name, input, at.context)).text
  return { ...at, text, run: (name: string, input: unknown) => registry.run(name, input, at.context) }
}

describe('a pattern for paths', () => {
  test.each([
    ['*.ts', 'a.ts', true],
    ['*.ts', 'deep/er/a.ts', true],
    ['*.ts', 'a.tsx', false],
    ['src/*.ts', 'src/a.ts', true],
    ['src/*.ts', 'src/deep/a.ts', false],
    ['src/**/*.ts', 'src/a.ts', true],
    ['src/**/*.ts', 'src/a/b/c.ts', true],
    ['**/test/**', 'a/test/b/c', true],
    ['**', 'a/b', true],
    ['./src/*', 'src/a', true],
    ['/src/*', 'src/a', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['[a-c]x', 'bx', true],
    ['[!a-c]x', 'bx', false],
    ['[]x', '[]x', true],
    ['*.{md,txt}', 'a/b.txt', true],
    ['{a,b}/{c,d}', 'b/c', true],
    ['{a', '{a', true],
    ['a\\*b', 'a*b', true],
    ['a\\*b', 'axb', false],
    ['a.b', 'axb', false],
    ['é*', 'éx', true],
    ['*', '.hidden', true],
  ])('%s and %s: %s', (pattern, path, expected) => {
    expect(globMatcher(pattern)(path)).toBe(expected)
  })

  test('takes no time to speak of, however many stars it has', () => {
    const matches = globMatcher(`${'*a'.repeat(500)}*b`)
    expect(matches('a'.repeat(5_000))).toBe(false)
    expect(globMatcher(`${'**/'.repeat(200)}x`)(`${'a/'.repeat(500)}y`)).toBe(false)
  })

  test('never fails, whatever it is', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (pattern, path) => typeof globMatcher(pattern)(path) === 'boolean'))
  })
})

describe('glob', () => {
  test('finds files, but not what git ignores, packages, or other outputs', async () => {
    const { text } = await tree({
      '.gitignore': 'dist/\n*.log\n!keep.log\n/only-root\n# a comment\n',
      'a.ts': '',
      'x.log': '',
      'keep.log': '',
      'only-root': '',
      'sub/only-root': '',
      'sub/.gitignore': 'b.ts\n',
      'sub/b.ts': '',
      'sub/c.ts': '',
      'dist/d.ts': '',
      'node_modules/p/e.ts': '',
      '.git/f.ts': '',
      '.switchboard-output/g.ts': '',
    })
    expect(await text('glob', { pattern: '*.ts' })).toBe('a.ts\nsub/c.ts')
    expect(await text('glob', { pattern: '*.log' })).toBe('keep.log')
    expect(await text('glob', { pattern: 'only-root' })).toBe('sub/only-root')
    expect(await text('glob', { pattern: '*.ts', path: 'node_modules' })).toBe('node_modules/p/e.ts')
    expect(await text('glob', { pattern: '*.ts', path: './dist/' })).toBe('dist/d.ts')
    expect(await text('glob', { pattern: 'c.ts', path: 'sub' })).toBe('sub/c.ts')
    expect(await text('glob', { pattern: '*.rb' })).toBe('No file matches "*.rb".')
  })

  test('shows so many', async () => {
    const { text } = await tree(Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index + 10}`, ''])))
    expect(await text('glob', { pattern: 'f*', limit: 2 })).toBe(
      'f10\nf11\n(More than 2; narrow the pattern or the path.)',
    )
  })

  test('stays in the workspace', async () => {
    const { run, root, outside } = await tree({})
    symlinkSync(outside, join(root, 'link'))
    expect(await run('glob', { pattern: '**' })).toMatchObject({ text: 'No file matches "**".' })
    for (const path of ['..', 'link', '/etc', '.data'])
      expect(await run('glob', { pattern: '**', path })).toMatchObject({ success: false })
  })
})

describe('grep', () => {
  const FILES = {
    'a.txt': 'first\nsecond hit\nthird\nfourth\nfifth HIT\n',
    'sub/b.md': 'a hit\r\nno\r\n',
    'bin.dat': Buffer.from('hit\0hit'),
    'node_modules/p/c.txt': 'hit',
    '.switchboard-output/.gitignore': '*\n',
    '.switchboard-output/out.txt': 'hit in an output',
  }

  test('shows the lines that match', async () => {
    const { text } = await tree(FILES)
    expect(await text('grep', { pattern: 'hit' })).toBe('a.txt:2: second hit\nsub/b.md:1: a hit')
    expect(await text('grep', { pattern: 'hit', ignore_case: true, path: 'a.txt' })).toBe(
      'a.txt:2: second hit\na.txt:5: fifth HIT',
    )
    expect(await text('grep', { pattern: '(?i)^f.*t$' })).toBe('a.txt:1: first\na.txt:5: fifth HIT')
    expect(await text('grep', { pattern: 'hit', glob: '*.md' })).toBe('sub/b.md:1: a hit')
    expect(await text('grep', { pattern: 'hit$', files_only: true })).toBe('a.txt\nsub/b.md')
    expect(await text('grep', { pattern: 'nowhere' })).toBe('No line matches.')
  })

  test('shows lines around', async () => {
    const { text } = await tree({ a: '1\n2\n3\n4\n5\n6\n7\n8\n9\n' })
    expect(await text('grep', { pattern: '^[37]$', context: 1 })).toBe(
      'a-2- 2\na:3: 3\na-4- 4\n--\na-6- 6\na:7: 7\na-8- 8',
    )
  })

  test('looks where it is told to, even where it would not by itself', async () => {
    const { text } = await tree(FILES)
    expect(await text('grep', { pattern: 'hit', path: '.switchboard-output/out.txt' })).toBe(
      '.switchboard-output/out.txt:1: hit in an output',
    )
    expect(await text('grep', { pattern: 'hit', path: '.switchboard-output' })).toBe(
      '.switchboard-output/out.txt:1: hit in an output',
    )
    expect(await text('grep', { pattern: 'hit', path: 'node_modules' })).toBe('node_modules/p/c.txt:1: hit')
  })

  test('shows so many, in all', async () => {
    const { text } = await tree({ a: 'x\n'.repeat(50), b: 'x\n'.repeat(50) })
    const shown = await text('grep', { pattern: 'x', limit: 60 })
    expect(shown.split('\n')).toHaveLength(61)
    expect(shown).toContain('b:10: x\n(There may be more')
    expect((await text('grep', { pattern: 'x', limit: 100 })).split('\n')).toHaveLength(100)
  })

  test('says what is wrong with a pattern', async () => {
    const { run } = await tree(FILES)
    expect(await run('grep', { pattern: '(' })).toMatchObject({
      success: false,
      text: expect.stringContaining('no regular expression'),
    })
    expect(await run('grep', { pattern: '' })).toMatchObject({
      success: false,
      text: expect.stringContaining('pattern must not be empty'),
    })
  })

  test('gives up a pattern that takes for ever, and holds nobody up meanwhile', { timeout: 60_000 }, async () => {
    const { run } = await tree({ evil: `${'a'.repeat(50)}!\n` })
    let ticks = 0
    const clock = setInterval(() => (ticks += 1), 20)
    const result = await run('grep', { pattern: '^(a+)+$' })
    clearInterval(clock)
    expect(result).toMatchObject({ success: false, text: expect.stringContaining('takes too long') })
    // The thread that searches is not the one that serves: that one ran on.
    expect(ticks).toBeGreaterThan(20)
  })

  test('ends at once when it is cancelled', async () => {
    const { context } = await tree({ evil: `${'a'.repeat(50)}!\n` })
    const stop = new AbortController()
    const running = registry.run('grep', { pattern: '^(a+)+$' }, { ...context, signal: stop.signal })
    setTimeout(() => stop.abort(), 50)
    expect(await running).toEqual({ success: false, text: 'Cancelled.' })
  })

  test('copes with many files', async () => {
    const { text } = await tree(
      Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`d${index % 10}/f${index}`, `needle ${index}\n`])),
    )
    expect((await text('grep', { pattern: 'needle', limit: 1_000 })).split('\n')).toHaveLength(300)
  })
})
