import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { requirements } from './requirements.ts'
import { type SourceFile, sourceFiles, withoutComments } from './support/sources.ts'

const THIS = 'test/requirements.test.ts'
const tests = sourceFiles(['src', 'test'], /\.(test|contract)\.ts$/).filter(({ path }) => path !== THIS)

test('every rule is shown by a test', () => {
  const cited = new Set(liveTests(tests).flatMap(({ text }) => citedIds(text)))
  const missing = Object.keys(requirements).filter((id) => !cited.has(id))
  expect(missing.length, `${missing.length} rules have no test:\n${missing.join('\n')}\n`).toBe(0)
})

test('every rule that a test cites exists', () => {
  const known = new Set(Object.keys(requirements))
  const unknown = tests.flatMap(({ path, text }) =>
    citedIds(text).flatMap((id) => (known.has(id) ? [] : [`${path}: ${id}`])),
  )
  expect(unknown.length, `${unknown.length} cited rules do not exist:\n${unknown.join('\n')}\n`).toBe(0)
})

test('every rule has an id of three parts, a source and one sentence of its own', () => {
  const sentences = new Set<string>()
  for (const [id, { source, behaviour }] of Object.entries(requirements)) {
    expect(id).toMatch(/^[a-z]+(:[a-z0-9]+(-[a-z0-9]+)*){2}$/)
    expect(source, id).toMatch(/^(spec|design|reference)\/[a-z-]+\.md: .|^reference\/[a-z-]+\.md |^issue \d+: ./)
    expect(behaviour, id).toMatch(/^[A-Z/`\-a-z_.].{15,}\.$/)
    expect(sentences.has(behaviour), `${id} says what another rule says`).toBe(false)
    sentences.add(behaviour)
  }
})

test('ids are read from calls of verifies only', () => {
  expect(citedIds(`verifies('a:b:c', async () => {})`)).toEqual(['a:b:c'])
  expect(citedIds(`  verifies(\n    ["a:b:c", 'd:e:f'],\n    'title',`)).toEqual(['a:b:c', 'd:e:f'])
  expect(citedIds(`test('a:b:c')\n// verifies('d:e:f', run)\nconst id = 'g:h:i'`)).toEqual([])
})

test('a contract counts only when a test calls for it', () => {
  const contract = { path: 'src/kit/x.contract.ts', text: '' }
  const caller = { path: 'src/kit/x.test.ts', text: `import { xContract } from './x.contract.ts'` }
  expect(liveTests([contract])).toEqual([])
  expect(liveTests([contract, caller])).toEqual([contract, caller])
})

/** The ids in the first argument of each `verifies( … )`. */
function citedIds(text: string): string[] {
  const calls = withoutComments(text).matchAll(/\bverifies\(\s*(\[[^\]]*\]|'[^']*'|"[^"]*")/g)
  return [...calls].flatMap(([, ids = '']) => [...ids.matchAll(/['"]([^'"]*)['"]/g)].map(([, id = '']) => id))
}

/** Without the contracts that no other test file imports. */
function liveTests(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(
    ({ path }) =>
      !path.endsWith('.contract.ts') ||
      files.some((other) => other.path !== path && other.text.includes(`/${basename(path)}'`)),
  )
}
