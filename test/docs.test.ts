import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { AGENT_SETTINGS } from '../src/agent/config.ts'
import { HUB_SETTINGS } from '../src/hub/config.ts'
import { sourceFiles } from './support/sources.ts'
import { verifies } from './support/verifies.ts'

const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const FRONT = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md']
const PAGES = [
  ...FRONT.map((path) => ({ path, text: readFileSync(at(path), 'utf8') })),
  ...sourceFiles(['docs'], /\.md$/),
]

verifies('docs:decisions:table', () => {
  const decisions = sourceFiles(['docs/decisions'], /\/\d{4}-[^/]+\.md$/)
  expect(decisions.length).toBeGreaterThan(30)
  const names = decisions.map(({ path }) => posix.basename(path))
  const numbers = names.map((name) => name.slice(0, 4))
  expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([])
  const titles = decisions.map(({ text }) => text.split('\n', 1)[0] ?? '')
  const table = readFileSync(at('docs/decisions/README.md'), 'utf8')
  const rows = [...table.matchAll(/^\| \[(\d{4})\]\((\d{4}-[^)]+)\) +\| (.+?) +\|$/gm)]
  const told = rows.map(([, number, name, title]) => `${name} # ${number}: ${title}`)
  expect(told.sort()).toEqual(names.map((name, index) => `${name} ${titles[index]}`))
})

test('every setting of the hub and of the agent server is on its page', () => {
  for (const [page, settings] of [
    ['docs/operations.md', HUB_SETTINGS],
    ['docs/agent.md', AGENT_SETTINGS],
  ] as const) {
    const rows = readFileSync(at(page), 'utf8')
    for (const { env } of Object.values(settings)) expect(rows, env).toContain(`\`${env}\``)
  }
})

test('links between pages lead to files and headings that there are', () => {
  const links = PAGES.flatMap(({ path, text }) =>
    [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => ({ path, target })),
  )
  expect(links.length).toBeGreaterThan(100)
  expect(links.filter(({ path, target }) => !leadsSomewhere(path, target))).toEqual([])
})

function leadsSomewhere(from: string, target: string): boolean {
  const [file = '', heading] = target.split('#')
  const path = file === '' ? from : posix.join(posix.dirname(from), file)
  if (!existsSync(at(path))) return false
  return heading === undefined || headingsOf(readFileSync(at(path), 'utf8')).includes(heading)
}

/** As the addresses of headings are made: small letters, no punctuation, hyphens for spaces, a number for doubles. */
function headingsOf(text: string): string[] {
  const seen = new Map<string, number>()
  return [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => {
    const name = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-')
    const before = seen.get(name) ?? 0
    seen.set(name, before + 1)
    return before === 0 ? name : `${name}-${before}`
  })
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '')
}
