import { describe, expect, test } from 'vitest'
import { MAX_LINES, violations } from './support/boundaries.ts'
import { importsOf, sourceFiles } from './support/sources.ts'

test('the source keeps the import table of ARCHITECTURE.md and the size budget', () => {
  const files = sourceFiles(['src', 'web'], /\.(ts|tsx|css|html)$/)
  expect(files.length).toBeGreaterThan(10)
  expect(violations(files).join('\n')).toBe('')
})

describe('a violation is caught:', () => {
  test.each([
    ['wire importing kit', 'src/wire/hub.ts', `import { AppError } from '../kit/errors.ts'`],
    ['wire importing a package', 'src/wire/hub.ts', `import { z } from 'zod'`],
    ['kit importing wire', 'src/kit/tail.ts', `import type { Message } from '../wire/relay.ts'`],
    ['kit importing a package of another file', 'src/kit/tail.ts', `import { pino } from 'pino'`],
    ['hub importing sim', 'src/hub/main.ts', `import { startSim } from '../sim/main.ts'`],
    ['sim importing client', 'src/sim/main.ts', `export { hubClient } from '../client/hub.ts'`],
    ['client importing hub', 'src/client/hub.ts', `import type { Client } from '../hub/model.ts'`],
    ['bridge importing hub', 'src/bridge/main.ts', `import { startHub } from '../hub/main.ts'`],
    ['the command line importing a domain file', 'src/cli.ts', `import { route } from './hub/router.ts'`],
    ['a command importing a domain file', 'src/cli/up.ts', `import { route } from '../hub/router.ts'`],
    ['a service importing a command', 'src/hub/main.ts', `import { table } from '../cli/terminal.ts'`],
    ['a domain file knowing the web framework', 'src/hub/delivery.ts', `import type { FastifyReply } from 'fastify'`],
    ['a domain file choosing a store', 'src/hub/delivery.ts', `import { openSqlite } from './store/sqlite.ts'`],
    ['a domain file choosing it late', 'src/hub/delivery.ts', `const it = await import('./upstream/ilink.ts')`],
    ['the database outside its file', 'src/hub/store/rows.ts', `import { DatabaseSync } from '@photostructure/sqlite'`],
    ['a driver outside its folder', 'src/hub/outbound.ts', `import {\n  request,\n  Pool,\n} from 'undici'`],
    ['a tool reading files by itself', 'src/agent/tools/read.ts', `import { readFile } from 'node:fs/promises'`],
    ['reading the environment', 'src/hub/config.ts', `const level = process.env.LEVEL`],
    ['reading the environment by import', 'src/hub/config.ts', `import { env } from 'node:process'`],
    ['ending the process', 'src/kit/log.ts', `  process.exit(1)`],
    [
      'a timeout that gets lost',
      'src/hub/x.ts',
      `const end = AbortSignal.any([\n  gone,\n  AbortSignal.timeout(5),\n])`,
    ],
    ['an ending that is not .ts', 'src/kit/tail.ts', `import { ring } from './doorbell.js'`],
    ['the product importing a test', 'src/kit/tail.ts', `import { contract } from './doorbell.contract.ts'`],
    ['the product importing from test/', 'src/kit/tail.ts', `import { gate } from '../../test/support/gate.ts'`],
    ['a worker of another folder', 'src/hub/x.ts', `new Worker(new URL('../sim/worker.ts', import.meta.url))`],
    ['a file that is too long', 'src/kit/tail.ts', 'a\n'.repeat(MAX_LINES + 1)],
    ['a page that is too long', 'web/panel.tsx', 'a\n'.repeat(MAX_LINES + 1)],
  ])('%s', (_what, path, text) => {
    expect(violations([{ path, text }])).toHaveLength(1)
    expect(violations([{ path, text }])[0]).toMatch(new RegExp(`^${path}: `))
  })
})

describe('what is allowed passes:', () => {
  test.each([
    ['main.ts choosing adapters', 'src/hub/main.ts', `import { openSqlite } from './store/sqlite.ts'`],
    ['a port as a type', 'src/hub/delivery.ts', `import type { HubStore } from './store/port.ts'`],
    ['an adapter inside its folder', 'src/hub/store/sqlite.ts', `import { rows } from './rows.ts'`],
    ['the web framework in http/', 'src/hub/http/relay-routes.ts', `import type { FastifyReply } from 'fastify'`],
    ['a test building from adapters', 'src/hub/delivery.test.ts', `import { memoryStore } from './store/memory.ts'`],
    ['a command starting a service', 'src/cli/up.ts', `import { startHub } from '../hub/main.ts'\nprocess.exit(1)`],
    ['the command line starting a service', 'src/cli.ts', `import { startHub } from './hub/main.ts'\nprocess.exit(1)`],
    [
      'telling of a thing in a comment',
      'src/hub/config.ts',
      `// process.env is read in cli.ts\n/** import('fastify') */`,
    ],
    ['other things of the process', 'src/hub/config.ts', `import { versions } from 'node:process'`],
    ['a worker by its built file', 'src/hub/x.ts', `new Worker(new URL('./worker.js', import.meta.url))`],
    ['a file as long as may be', 'src/kit/tail.ts', 'a\n'.repeat(MAX_LINES)],
  ])('%s', (_what, path, text) => {
    expect(violations([{ path, text }])).toEqual([])
  })
})

test('the scanner finds every kind of import and tells types apart', () => {
  const text = [
    `import 'side-effect'`,
    `import type { A } from 'a'`,
    `import { type B, b } from 'b'`,
    `import {\n  c,\n  type C,\n} from 'c'`,
    `import * as d from 'd'`,
    `export { e } from 'e'`,
    `export type { F } from 'f'`,
    `export * from 'g'`,
    `const h = await import('h')`,
    `export const text = 'no import from "i"'`,
  ].join('\n')
  const found = importsOf(text).sort((left, right) => left.specifier.localeCompare(right.specifier))
  expect(found.map(({ specifier, typeOnly }) => (typeOnly ? `type ${specifier}` : specifier))).toEqual([
    'type a',
    'b',
    'c',
    'd',
    'e',
    'type f',
    'g',
    'h',
    'side-effect',
  ])
})
