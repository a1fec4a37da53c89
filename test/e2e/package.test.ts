import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, vi } from 'vitest'
import { temporaryFolder } from '../support/processes.ts'
import { ANY_PORTS, answerTo, startUp } from '../support/running-up.ts'
import { importsOf, sourceFiles } from '../support/sources.ts'
import { verifies } from '../support/verifies.ts'

vi.setConfig({ testTimeout: 300_000 })

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

verifies(['package:pack:contents', 'package:install:runs', 'package:files:permissions'], async () => {
  const folder = temporaryFolder()
  const { tarball, files } = await pack(folder)
  expect(manifest.scripts.prepack).toContain('npm run --silent build')
  expect(files).toEqual(
    expect.arrayContaining([
      ...['dist/cli.js', 'dist/web/panel.html', 'dist/web/console.html', 'dist/web/chat.html'],
      ...['dist/client/hub-client.d.ts', 'README.md', 'LICENSE', 'SECURITY.md', 'docs/deploy.md'],
    ]),
  )
  expect(files.filter((path) => /^(src|test|web|bench|node_modules)\/|\.test\.|\.map$/.test(path))).toEqual([])

  await run('npm', ['install', '--prefer-offline', '--ignore-scripts', '--engine-strict', tarball], { cwd: folder })
  const version = await run('npx', ['--no-install', 'switchboard', '--version'], { cwd: folder })
  expect(version.stdout.trim()).toBe(manifest.version)

  const up = await startUp(ANY_PORTS, folder, {}, join(folder, 'node_modules/.bin/switchboard'))
  for (const page of [`${up.sim}/`, up.line('panel'), up.line('console')]) await opens(page)
  expect(await answerTo(up.sim, 'ann', 'write hello.txt: hi')).toMatch(/Made hello.txt/)
  up.program.child.kill('SIGINT')
  expect(await up.program.ended).toBe(0)
  expect(openToOthers(join(folder, '.switchboard'))).toEqual([])
})

verifies('package:dependencies:run-time', () => {
  const sources = sourceFiles(['src'], /\.ts$/).filter(({ path }) => !/\.(test|contract)\.ts$/.test(path))
  const imported = new Set(
    sources
      .flatMap(({ text }) => importsOf(text))
      .filter(({ specifier }) => /^(@|\w)/.test(specifier) && !/^node:/.test(specifier))
      .map(({ specifier }) => packageName(specifier))
      .filter((name) => !builtinModules.includes(name)),
  )
  expect(imported.size).toBeGreaterThan(10)
  // The writer thread asks for tsx only where it is run from its source.
  const missing = [...imported].filter((name) => name !== 'tsx' && !(name in manifest.dependencies))
  expect(missing).toEqual([])
})

verifies('package:dependencies:reasons', () => {
  const page = readFileSync(join(root, 'docs/decisions/dependencies.md'), 'utf8')
  const told = [...page.matchAll(/`([^`]+)`/g)].map(([, name = '']) => new RegExp(`^${name.replace('*', '.+')}$`))
  const names = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })
  expect(names.filter((name) => !told.some((pattern) => pattern.test(name)))).toEqual([])
})

/** As `npm test` has built it: building anew would take dist/ from under the other tests. */
async function pack(folder: string): Promise<{ tarball: string; files: string[] }> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const [packed] = JSON.parse((await run('npm', args, { cwd: root })).stdout)
  const files = packed.files.map(({ path }: { path: string }) => path)
  return { tarball: join(folder, packed.filename), files }
}

/** The page is there, and so is everything it loads. */
async function opens(url: string): Promise<void> {
  const page = await fetch(url, { headers: { accept: 'text/html' } })
  expect(page.status, url).toBe(200)
  const html = await page.text()
  const loaded = [...html.matchAll(/(?:src|href)="([^"]+\.(?:js|css|svg))"/g)].map(([, path = '']) => path)
  expect(loaded.length, url).toBeGreaterThan(1)
  for (const path of loaded) expect((await fetch(new URL(path, page.url))).status, path).toBe(200)
}

/** What anybody but the owner may read or write, below `folder`. The agent's workspace is its own affair. */
function openToOthers(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  expect(entries.length).toBeGreaterThan(8)
  return ['.', ...entries]
    .filter((path) => !/^workspace(\/|$)/.test(path))
    .filter((path) => (statSync(join(folder, path)).mode & 0o077) !== 0)
}

function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
