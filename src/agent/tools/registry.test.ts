import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { AppError } from '../../kit/errors.ts'
import { silentLog } from '../../kit/log.ts'
import { builtinTools } from './builtin.ts'
import { defineTool, done } from './define-tool.ts'
import type { Tool } from './port.ts'
import { readFile } from './read-file.ts'
import { closeTools, toolRegistry } from './registry.ts'
import { toolContext } from './tool-context.contract.ts'

function tool(run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return {
    name: 'it',
    description: 'Does it.',
    parameters: { type: 'object' },
    readOnly: true,
    source: 'builtin',
    run,
    ...more,
  }
}

test('the tools are told in the order they were given', () => {
  const registry = toolRegistry(builtinTools({ shellOff: null, web: { allowNetwork: true } }))
  expect(registry.describe().map(({ name, readOnly }) => (readOnly ? name : `${name}!`))).toEqual([
    'read_file',
    'write_file!',
    'edit_file!',
    'apply_patch!',
    'list_dir',
    'glob',
    'grep',
    'shell!',
    'shell_output',
    'shell_kill!',
    'web_fetch',
  ])
  for (const { parameters, source } of registry.describe()) {
    expect(JSON.parse(JSON.stringify(parameters))).toMatchObject({ type: 'object', properties: expect.anything() })
    expect(source).toBe('builtin')
  }
})

test('a tool that is off is told apart with its reason, and refuses', async () => {
  const registry = toolRegistry(builtinTools({ shellOff: 'No bubblewrap.', web: { allowNetwork: false } }))
  expect(registry.describe().map(({ name }) => name)).not.toContain('shell')
  expect(registry.describeOff()).toEqual([
    { name: 'shell', reason: 'No bubblewrap.' },
    { name: 'shell_output', reason: 'No bubblewrap.' },
    { name: 'shell_kill', reason: 'No bubblewrap.' },
    { name: 'web_fetch', reason: expect.stringContaining('--allow-network') },
  ])
  const { context } = await toolContext()
  expect(await registry.run('shell', { command: 'true' }, context)).toEqual({
    success: false,
    text: 'shell cannot be used here. No bubblewrap.',
  })
})

test('an unknown tool is answered with the names of those there are', async () => {
  const { context } = await toolContext()
  const registry = toolRegistry([tool(async () => done('')), tool(async () => done(''), { name: 'other' })])
  expect(await registry.run('bash', {}, context)).toEqual({
    success: false,
    text: 'There is no tool "bash". There are: it, other.',
  })
})

describe('an input', () => {
  const Input = Type.Object({ path: Type.String({ minLength: 1 }), limit: Type.Optional(Type.Integer({ minimum: 1 })) })
  const registry = toolRegistry([
    defineTool({
      name: 'it',
      description: '',
      input: Input,
      readOnly: true,
      run: async (input) => done(JSON.stringify(input)),
    }),
  ])

  test.each([
    [{}, 'path is missing'],
    [{ path: 5 }, 'path must be a string'],
    [{ path: '' }, 'path must not be empty'],
    [{ path: 'x', limit: 'many' }, 'limit must be'],
    [{ path: 'x', limit: 0 }, 'limit must be >= 1'],
    ['text', 'The input must be an object'],
    [[], 'The input must be an object'],
  ])('like %j is refused with the field that is wrong', async (input, problem) => {
    const { context } = await toolContext()
    const result = await registry.run('it', input, context)
    expect(result).toEqual({ success: false, text: expect.stringContaining(problem) })
    expect(result.text).toContain('Nothing was done')
  })

  test('may say null for what is left out', async () => {
    const { context } = await toolContext()
    expect(await registry.run('it', { path: 'x', limit: null }, context)).toEqual({
      success: true,
      text: '{"path":"x"}',
    })
  })

  test('is checked by a schema of any kind, and not where a schema cannot be read', async () => {
    const { context } = await toolContext()
    const seen = async (input: unknown) => done(JSON.stringify(input))
    const plain = {
      type: 'object',
      properties: { kind: { enum: ['a', 'b'] }, n: { type: ['integer', 'null'] } },
      required: ['kind'],
    }
    const odd = toolRegistry([
      tool(seen, { parameters: plain }),
      tool(seen, { name: 'odd', parameters: { $ref: '#/nowhere', type: 7 } }),
    ])
    expect(await odd.run('it', { kind: 'a', n: null }, context)).toEqual({
      success: true,
      text: '{"kind":"a","n":null}',
    })
    expect(await odd.run('it', { kind: 'c' }, context)).toMatchObject({
      success: false,
      text: expect.stringContaining('kind must be one of "a", "b"'),
    })
    expect((await odd.run('odd', { x: 1 }, context)).success).toBeTypeOf('boolean')
  })
})

test('a tool that throws gives a short failure: what was foreseen in its words, the rest in the log alone', async () => {
  const { context } = await toolContext()
  const logged: unknown[] = []
  const log = { ...silentLog, error: (message: string, fields = {}) => void logged.push([message, fields]) }
  const foreseen = tool(async () => {
    throw new AppError('not_found', 'There is no such thing.')
  })
  expect(await toolRegistry([foreseen], { log }).run('it', {}, context)).toEqual({
    success: false,
    text: 'There is no such thing.',
  })
  expect(logged).toEqual([])
  const bug = new TypeError('x is not a function at secret.ts:5')
  const faulty = tool(() => {
    throw bug
  })
  const result = await toolRegistry([faulty], { log }).run('it', {}, context)
  expect(result).toEqual({ success: false, text: 'it failed because of a fault in the server. Try another way.' })
  expect(logged).toEqual([['a tool failed', { tool: 'it', error: bug }]])
})

describe('a cancel', () => {
  test('before the start runs nothing', async () => {
    const { context } = await toolContext()
    let ran = false
    const registry = toolRegistry([
      tool(async () => {
        ran = true
        return done('')
      }),
    ])
    expect(await registry.run('it', {}, { ...context, signal: AbortSignal.abort() })).toMatchObject({ success: false })
    expect(ran).toBe(false)
  })

  test('does not wait for a tool that does not listen', async () => {
    const { context } = await toolContext()
    const held = gate()
    const stop = new AbortController()
    const registry = toolRegistry([
      tool(async () => {
        await held.pass()
        throw new Error('too late')
      }),
    ])
    const running = registry.run('it', {}, { ...context, signal: stop.signal })
    await held.reached
    stop.abort()
    expect(await running).toEqual({ success: false, text: 'Cancelled.' })
    held.open()
  })
})

describe('a long output', () => {
  const long = Array.from({ length: 10_000 }, (_, index) => `line ${index}`).join('\n')

  verifies('agent:tools:output', 'is cut in its middle, and the whole is in a file that can be read', async () => {
    const { context, root } = await toolContext()
    const registry = toolRegistry([tool(async () => done(long)), readFile])
    const { success, text } = await registry.run('it', {}, context)
    expect(success).toBe(true)
    expect(Buffer.byteLength(text)).toBeLessThan(52 * 1024)
    expect(text.startsWith('line 0\nline 1\n')).toBe(true)
    expect(text.endsWith('line 9998\nline 9999')).toBe(true)
    const [path = ''] = /\.switchboard-output\/\S+\.txt/.exec(text) ?? []
    expect(text).toContain('8000 lines')
    expect(readFileSync(join(root, path), 'utf8')).toBe(long)
    expect(readFileSync(join(root, '.switchboard-output/.gitignore'), 'utf8')).toBe('*\n')
    expect((await registry.run('read_file', { path, offset: 5_000, limit: 1 }, context)).text).toContain(
      '  5000\tline 4999',
    )
  })

  test('is kept for so many calls, the oldest goes', async () => {
    const { context, root } = await toolContext()
    let now = Date.now()
    const registry = toolRegistry([tool(async () => done(long))], { now: () => (now += 1_000) })
    for (let call = 0; call < 53; call += 1) await registry.run('it', {}, context)
    expect(readdirSync(join(root, '.switchboard-output')).filter((name) => name.endsWith('.txt'))).toHaveLength(50)
  })

  test('is cut, and said so, where it cannot be kept', async () => {
    const { context } = await toolContext()
    await context.workspace.files.write('.switchboard-output', Buffer.from('a file in its place'))
    const { text } = await toolRegistry([tool(async () => done(long))]).run('it', {}, context)
    expect(text).toContain('The whole could not be kept.')
  })
})

test('closing the tools of a session closes what they keep', async () => {
  const close = vi.fn(async () => {})
  const state = new Map<string, unknown>([
    ['a', { close }],
    ['b', { close: () => Promise.reject(new Error('no')) }],
    ['c', 'text'],
    ['d', { close }],
  ])
  await closeTools(state)
  expect(close).toHaveBeenCalledTimes(2)
  expect(state.size).toBe(0)
})
