import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../test/support/processes.ts'
import { soon } from '../../../test/support/soon.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { silentLog } from '../../kit/log.ts'
import { startProgram } from '../workspace/program.ts'
import { processesWith } from '../workspace/temporary.contract.ts'
import { type Mcp, openMcp } from './mcp.ts'
import type { McpOptions } from './mcp-connection.ts'
import { serveHttp } from './mcp-fixture.contract.ts'
import type { ToolContext } from './port.ts'
import { toolRegistry } from './registry.ts'
import { toolContext } from './tool-context.contract.ts'

const FIXTURE = fileURLToPath(new URL('./mcp-fixture.contract.ts', import.meta.url))
const ENVIRONMENT = { PATH: process.env.PATH ?? '', HOME: '/home/somebody' }

let marks = 0

/** A configuration of the fixture as a program, with a word in its command line to find it by. */
function program(env: Record<string, string> = {}) {
  marks += 1
  const mark = `mcp-fixture-${process.pid}-${marks}`
  return { mark, config: { command: process.execPath, args: ['--import', 'tsx', FIXTURE, mark], env } }
}

async function opened(mcpServers: Record<string, unknown>, options: Partial<McpOptions> = {}) {
  const warnings: string[] = []
  const log = {
    ...silentLog,
    warn: (message: string, fields = {}) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
  }
  const mcp = await openMcp({ mcpServers }, { startProgram, environment: ENVIRONMENT, log, ...options })
  onTestFinished(() => mcp.close())
  const { context } = await toolContext()
  const run = (name: string, input: unknown = {}, changed: Partial<ToolContext> = {}) =>
    toolRegistry(mcp.tools).run(name, input, { ...context, ...changed })
  return { mcp, run, warnings }
}

describe('a server that is a program', () => {
  verifies('agent:tools:mcp', 'offers its tools under its name, and they can be called', async () => {
    const { mcp, run } = await opened({ 'my calc': program().config })
    expect(mcp.servers).toEqual([{ name: 'my calc', tools: 7, problem: null }])
    expect(mcp.tools.map(({ name, readOnly, source }) => [name, readOnly, source]).slice(0, 3)).toEqual([
      ['mcp__my_calc__add', true, 'my calc'],
      ['mcp__my_calc__environment', false, 'my calc'],
      ['mcp__my_calc__fail', false, 'my calc'],
    ])
    expect(mcp.tools[0]!.parameters).toMatchObject({ type: 'object', required: ['a', 'b'] })
    expect(await run('mcp__my_calc__add', { a: 2, b: 3 })).toEqual({ success: true, text: '5' })
    expect(await run('mcp__my_calc__add', { a: 2 })).toMatchObject({
      success: false,
      text: expect.stringContaining('b is missing'),
    })
    expect(await run('mcp__my_calc__fail')).toEqual({ success: false, text: 'it did not work' })
    expect(await run('mcp__my_calc__picture')).toEqual({
      success: true,
      text: '(image of type image/png, not shown)\na \ufffd[31mpicture',
    })
    expect(await run('mcp__my_calc__odd_name')).toMatchObject({
      success: true,
      text: expect.stringContaining('"fine": true'),
    })
  })

  test('gets the environment of its configuration, PATH and HOME, and nothing else', async () => {
    process.env.SWITCHBOARD_TEST_KEY = 'sk-do-not-tell'
    const cwd = realpathSync(temporaryFolder())
    // A folder of its own, so tsx must be found from elsewhere.
    const { config } = program({ GIVEN: 'yes' })
    const args = ['--import', import.meta.resolve('tsx'), ...config.args.slice(2)]
    const { run } = await opened({ it: { ...config, args, cwd } })
    const { text } = await run('mcp__it__environment')
    delete process.env.SWITCHBOARD_TEST_KEY
    const told = JSON.parse(text)
    expect(told.env).toEqual({ ...ENVIRONMENT, GIVEN: 'yes' })
    expect(told.cwd).toBe(cwd)
  })

  test('that does not start is reported, and the others work', async () => {
    const { mcp, run, warnings } = await opened({
      absent: { command: '/no/such/program' },
      failing: { command: 'sh', args: ['-c', 'echo "no key given" >&2; exit 4'] },
      good: program().config,
    })
    expect(mcp.servers.map(({ name, tools }) => [name, tools])).toEqual([
      ['absent', null],
      ['failing', null],
      ['good', 7],
    ])
    expect(mcp.servers[1]!.problem).toMatch(/ended with 4.*no key given/)
    expect(warnings.join('\n')).toMatch(/does not start.*absent/)
    expect(await run('mcp__good__add', { a: 1, b: 1 })).toEqual({ success: true, text: '2' })
  })

  test('that never answers the greeting is given up', async () => {
    const { mcp } = await opened({ silent: { command: 'sleep', args: ['1000'] } }, { connectTimeoutMs: 300 })
    expect(mcp.servers[0]).toMatchObject({ tools: null, problem: expect.stringContaining('timed out') })
  })

  test('that dies during a call gives a failure, and is started anew by the next', async () => {
    const { mark, config } = program()
    const { run, warnings } = await opened({ it: config })
    const [before] = processesWith(mark)
    expect(await run('mcp__it__die')).toMatchObject({
      success: false,
      text: expect.stringContaining('The MCP server it is not there'),
    })
    expect(await run('mcp__it__add', { a: 1, b: 2 })).toEqual({ success: true, text: '3' })
    expect(warnings.join()).toContain('has gone')
    expect(processesWith(mark)).not.toContain(before)
  })

  test('that cannot be started anew is tried later and later', async () => {
    let now = 0
    let starts = 0
    const { config } = program()
    const failing: McpOptions['startProgram'] = (launch) => {
      starts += 1
      return startProgram(starts === 1 ? launch : { ...launch, command: '/no/such/program' })
    }
    const { run } = await opened({ it: config }, { startProgram: failing, now: () => now })
    await run('mcp__it__die')
    expect(await run('mcp__it__add', { a: 1, b: 2 })).toMatchObject({ success: false })
    expect(starts).toBe(2)
    expect(await run('mcp__it__add', { a: 1, b: 2 })).toMatchObject({
      success: false,
      text: expect.stringMatching(/again in 1 s/),
    })
    expect(starts).toBe(2)
    now += 1_001
    expect(await run('mcp__it__add', { a: 1, b: 2 })).toMatchObject({ success: false })
    expect(starts).toBe(3)
    now += 900
    await run('mcp__it__add', { a: 1, b: 2 })
    expect(starts).toBe(3)
  })

  test('that does not answer a call is waited for only so long, and a cancel ends the wait', async () => {
    const { run } = await opened({ it: program().config }, { callTimeoutMs: 300 })
    expect(await run('mcp__it__hang')).toMatchObject({
      success: false,
      text: expect.stringContaining('did not answer in time'),
    })
    const patient = await opened({ it: program().config })
    const stop = new AbortController()
    const hanging = patient.run('mcp__it__hang', {}, { signal: stop.signal })
    stop.abort()
    expect(await hanging).toMatchObject({ success: false, text: expect.stringContaining('Cancelled') })
  })

  test('ends when the tools are closed, with what it started', async () => {
    const { mark, config } = program()
    const { mcp } = await opened({
      it: {
        ...config,
        command: 'sh',
        args: ['-c', `sleep 1000.${process.pid}77 & "$0" "$@"`, process.execPath, ...config.args],
      },
    })
    await soon(() => expect(processesWith(`sleep\u00001000.${process.pid}77`)).toHaveLength(1))
    await mcp.close()
    await soon(() => expect(processesWith(mark)).toEqual([]))
    await soon(() => expect(processesWith(`sleep\u00001000.${process.pid}77`)).toEqual([]))
    expect(await mcp.tools[0]!.run({ a: 1, b: 1 }, (await toolContext()).context).catch((error) => error.code)).toBe(
      'mcp_unreachable',
    )
  })
})

describe('a server at an address', () => {
  verifies('agent:tools:mcp', 'is asked with the headers of its configuration', async () => {
    const server = await serveHttp()
    onTestFinished(() => server.close())
    const { mcp, run } = await opened({ far: { url: server.url, headers: { 'x-key': 'k1' } } })
    expect(mcp.servers).toEqual([{ name: 'far', tools: 7, problem: null }])
    expect(await run('mcp__far__add', { a: 20, b: 3 })).toEqual({ success: true, text: '23' })
    expect(server.seen.headers.every((headers) => headers['x-key'] === 'k1')).toBe(true)
  })

  test('that goes and comes back is found again', async () => {
    const server = await serveHttp()
    let now = 0
    const { run } = await opened({ far: { url: server.url } }, { now: () => now })
    await server.close()
    expect(await run('mcp__far__add', { a: 1, b: 1 })).toMatchObject({
      success: false,
      text: expect.stringContaining('is not there'),
    })
    const again = await serveHttp(server.port)
    onTestFinished(() => again.close())
    now += 60_000
    expect(await run('mcp__far__add', { a: 1, b: 1 })).toEqual({ success: true, text: '2' })
  })

  test('that is not there at the start has no tools', async () => {
    const server = await serveHttp()
    await server.close()
    const { mcp } = await opened({ far: { url: server.url } })
    expect(mcp).toMatchObject({ tools: [], servers: [{ name: 'far', tools: null }] })
  })
})

test('a server that speaks only the newer protocol is understood, as a program and at an address', async () => {
  const { config } = program()
  const server = await serveHttp(0, 'reject')
  onTestFinished(() => server.close())
  const { mcp, run } = await opened({ near: { ...config, args: [...config.args, 'reject'] }, far: { url: server.url } })
  expect(mcp.servers.map(({ tools }) => tools)).toEqual([7, 7])
  expect(await run('mcp__near__add', { a: 1, b: 2 })).toEqual({ success: true, text: '3' })
  expect(await run('mcp__far__add', { a: 1, b: 2 })).toEqual({ success: true, text: '3' })
})

test('names that are too long or collide stay apart', async () => {
  const long = 'server-'.repeat(12)
  const { mcp } = await opened({ [long]: program().config, 'a b': program().config, 'a?b': program().config })
  const names = mcp.tools.map(({ name }) => name)
  expect(new Set(names).size).toBe(21)
  for (const name of names) expect(name).toMatch(/^[\w-]{1,64}$/)
})

test.each([
  [{}, 'mcpServers'],
  [{ mcpServers: { a: {} } }, 'a needs either a command or a url'],
  [{ mcpServers: { a: { command: 'x', url: 'http://x' } } }, 'a needs either a command or a url'],
  [{ mcpServers: { a: { url: 'ftp://x' } } }, 'the url of a must be an address'],
  [{ mcpServers: { a: { command: 5 } } }, 'mcpServers.a.command'],
])('a configuration like %j is refused with what is wrong', async (config, words) => {
  const opening: Promise<Mcp> = openMcp(config, { startProgram, environment: ENVIRONMENT, log: silentLog })
  await expect(opening).rejects.toMatchObject({ code: 'bad_config', message: expect.stringContaining(words) })
})

test('a server that is disabled is left alone', async () => {
  const { mcp } = await opened({ off: { command: '/no/such/program', disabled: true } })
  expect(mcp.servers).toEqual([])
})
