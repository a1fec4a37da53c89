import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { importsOf, sourceFiles } from '../support/sources.ts'
import { verifies } from '../support/verifies.ts'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
/** Prints the address of every module that is loaded. */
const HOOKS = `export async function load(url, context, next) { process._rawDebug('loaded ' + url); return next(url, context) }`
const TRACE = `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOKS)}`)})`

verifies('proof:start:lazy', () => {
  const trace = `data:text/javascript,${encodeURIComponent(TRACE)}`
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', trace, CLI, '--help'], {
    encoding: 'utf8',
  })
  expect(status, stderr).toBe(0)
  expect(stdout).toContain('Usage: switchboard')
  const loaded = stderr.split('\n').filter((line) => line.startsWith('loaded '))
  expect(loaded.some((line) => line.endsWith('/dist/cli.js'))).toBe(true)
  const packages = loaded.flatMap((line) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(line)?.[1] ?? [])
  expect(new Set(packages)).toEqual(new Set(['commander', 'picocolors', 'pino']))
})

verifies('proof:start:bundled', () => {
  const built = sourceFiles(['dist'], /\.js$/).filter(({ path }) => !/^dist\/(web|vendor)\//.test(path))
  const specifiers = built.flatMap(({ text }) => importsOf(text).map(({ specifier }) => specifier))
  expect(specifiers.filter((specifier) => specifier.endsWith('/vendor/typebox.js')).length).toBeGreaterThan(10)
  expect(specifiers.filter((specifier) => /^typebox(\/|$)/.test(specifier))).toEqual([])
})
