import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import openapiTS, { astToString } from 'openapi-typescript'
import { expect, onTestFinished } from 'vitest'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** What somebody would write who has nothing but the description. */
const PROGRAM = `
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

const [url = '', key = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl: url, headers: { 'X-API-Key': key } })

const made = await client.POST('/sessions', {
  body: { title: 'mine', plan_mode: false },
  params: { header: { 'Idempotency-Key': 'once' } },
})
assert.equal(made.response.status, 201)
assert.ok(made.data)
const path = { id: made.data.session_id }

// @ts-expect-error max_steps is a number
const wrong = await client.POST('/sessions', { body: { max_steps: 'many' } })
assert.equal(wrong.response.status, 422)
// @ts-expect-error there is no such path
await client.GET('/nothing')
// @ts-expect-error the id is missing
await client.GET('/sessions/{id}').catch(() => undefined)

const accepted = await client.POST('/sessions/{id}/run', {
  params: { path },
  body: { goal: 'list files' },
  headers: { accept: 'application/json' },
})
assert.equal(accepted.response.status, 202)
const stream = await client.GET('/sessions/{id}/events', {
  params: { path, query: { after: 0, until: 'done' } },
  parseAs: 'text',
})
const text: string = stream.data ?? ''
assert.match(text, /event: done/)
const last = text.trim().split('\\n\\n').at(-1)?.split('\\n').find((line) => line.startsWith('data: '))?.slice(6) ?? ''
const done: components['schemas']['event_done'] = JSON.parse(last)
assert.equal(done.finish_reason, 'NoMoreToolCalls')

const session = await client.GET('/sessions/{id}', { params: { path } })
assert.ok(session.data)
const title: string | null = session.data.title
const turns: number = session.data.turn_count
const first: 'text' | 'tool_use' | 'tool_result' | undefined = session.data.transcript[0]?.content[0]?.type
assert.deepEqual([title, turns, first], ['mine', 1, 'text'])
const runs = await client.GET('/sessions/{id}/runs', { params: { path } })
assert.equal(runs.data?.runs[0]?.status, 'finished')
const renamed = await client.PATCH('/sessions/{id}', { params: { path }, body: { title: 'yours' } })
assert.equal(renamed.data?.title, 'yours')
const list = await client.GET('/sessions', { params: { query: { limit: 10 } } })
assert.deepEqual(list.data?.map(({ session_id }) => session_id), [path.id])
const tools = await client.GET('/tools')
assert.ok(tools.data?.some(({ name, read_only }) => name === 'read_file' && read_only))
const alone = await client.POST('/run', { body: { goal: 'hello', max_steps: 2 } })
// A string only for who asks for the stream.
assert.ok(typeof alone.data === 'object')
assert.deepEqual([alone.data.status, alone.data.finish_reason], ['finished', 'NoMoreToolCalls'])
const cancelled = await client.POST('/sessions/{id}/cancel', { params: { path } })
assert.equal(cancelled.data?.cancelled, false)
const noPlan = await client.POST('/sessions/{id}/plan', { params: { path }, body: { decision: 'approve' } })
assert.equal(noPlan.response.status, 409)
const health = await client.GET('/health', { parseAs: 'text' })
assert.equal(health.data, 'ok')
const gone = await client.DELETE('/sessions/{id}', { params: { path } })
assert.equal(gone.response.status, 204)
const missing = await client.GET('/sessions/{id}', { params: { path } })
assert.ok(missing.error)
const code: string = missing.error.error.code
assert.equal(code, 'not_found')
console.log('all is well')
`

verifies(
  'agent:openapi:generated',
  async () => {
    const agent = await startTestAgent({ authKeys: ['key-of-the-sdk'] })
    const { body: description } = await agent.call('GET', '/openapi.json', {
      headers: { 'x-api-key': 'key-of-the-sdk' },
    })
    const folder = mkdtempSync(join(tmpdir(), 'switchboard-sdk-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'api.d.ts'), astToString(await openapiTS(description)))
    writeFileSync(join(folder, 'program.ts'), PROGRAM)
    const flags = ['--noEmit', '--strict', '--noUncheckedIndexedAccess', '--module', 'nodenext', '--target', 'es2023']
    const tsc = join(root, 'node_modules/typescript-7/bin/tsc')
    const checked = await run(process.execPath, [tsc, ...flags, '--types', 'node', 'program.ts'], {
      cwd: folder,
    }).catch((error: { stdout: string }) => error)
    expect(checked.stdout).toBe('')
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'program.ts', agent.url, 'key-of-the-sdk'], {
      cwd: folder,
    })
    expect(stdout).toBe('all is well\n')
  },
  120_000,
)
