import { execFileSync } from 'node:child_process'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { connect } from '../../src/kit/sqlite/database.ts'
import { agentProcess, runOnFullDisk, START_MS } from '../support/agent-process.ts'
import { runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { startTestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const PLANS = [
  { match: 'plan', steps: [{ tool_calls: [{ name: 'propose_plan', input: { plan: '1. go' } }] }] },
  { match: 'plan', steps: [{ text: 'Understood.' }, { stall: 'forever' as const }] },
]
const DAY_MS = 24 * 60 * 60_000

verifies('agentstore:memory:default', async () => {
  const first = await startTestAgent()
  const id = await first.session()
  await first.finish(id, 'list files')
  await first.stop()
  expect(readdirSync(first.workspace)).toEqual([])
  const second = await startTestAgent({ workspace: first.workspace })
  expect((await second.call('GET', '/sessions')).body).toEqual([])
})

verifies(
  ['agentstore:files:private', 'agentstore:receipts:same'],
  'what is kept is private, and outlives the process',
  async () => {
    const dataDir = join(temporaryFolder(), 'deep', 'data')
    const first = await startTestAgent({ dataDir })
    const create = (agent: typeof first) =>
      agent.call('POST', '/sessions', { body: { title: 'kept' }, headers: { 'idempotency-key': 'a' } })
    const id = (await create(first)).body.session_id
    const events = await first.finish(id, 'list files')
    const details = (await first.call('GET', `/sessions/${id}`)).body
    const files = readdirSync(dataDir)
    expect(files).toEqual(expect.arrayContaining(['agent.db', 'agent.db-wal', 'lock.db']))
    expect(mode(dataDir)).toBe('700')
    for (const file of files) expect([file, mode(join(dataDir, file))]).toEqual([file, '600'])
    await first.stop()

    const second = await startTestAgent({ dataDir, maxSessions: 1 })
    expect((await second.call('GET', `/sessions/${id}`)).body).toEqual(details)
    const reader = await second.events(`/sessions/${id}/events?after=0`)
    expect(await reader.until('done')).toEqual(events)
    expect((await create(second)).body.session_id).toBe(id)
    const other = await second.call('POST', '/sessions')
    expect([other.status, other.body.error.code]).toEqual([429, 'too_many_sessions'])
    const more = await second.finish(id, 'list files')
    expect(more[0]?.id).toBeGreaterThan(events.at(-1)?.id ?? 0)
  },
)

verifies('agentstore:receipts:same', 'a queued run’s receipt stays the same after it has begun', async () => {
  const agent = await startTestAgent({ script: [{ match: 'stall', steps: [{ stall: 'forever' }] }] })
  const id = await agent.session()
  await agent.run(id, 'stall')
  const call = { body: { goal: 'later', on_busy: 'enqueue' }, headers: { 'idempotency-key': 'k' } }
  const first = await agent.call('POST', `/sessions/${id}/run`, call)
  await agent.call('POST', `/sessions/${id}/cancel`)
  const reader = await agent.events(first.body.events_url)
  await reader.until('done')
  const again = await agent.call('POST', `/sessions/${id}/run`, call)
  const { run_id: runId, events_url: url } = first.body
  expect(again.body).toMatchObject({ run_id: runId, events_url: url })
})

verifies('agentstore:files:hidden', async () => {
  const workspace = temporaryFolder()
  const dataDir = join(workspace, 'own', 'data')
  const script = [
    [{ tool_calls: ['own', 'own/data'].map((path) => ({ name: 'list_dir', input: { path } })) }],
    [{ tool_calls: [{ name: 'read_file', input: { path: 'own/data/agent.db' } }] }],
    [{ tool_calls: [{ name: 'write_file', input: { path: 'own/data/lock.db', content: 'x' } }] }],
    [{ tool_calls: [{ name: 'shell', input: { command: 'ls -la own/data; cat own/data/agent.db | wc -c' } }] }],
  ]
  const agent = await startTestAgent({ workspace, dataDir, script })
  const events = await agent.finish(await agent.session(), 'go')
  const results = events.filter(({ event }) => event === 'tool_result').map(({ data }) => data)
  expect(results).toHaveLength(5)
  for (const { name, success } of results.slice(1, 4)) expect([name, success]).toEqual([name, false])
  for (const { output } of results) expect(output).not.toMatch(/SQLite|agent\.db-wal|lock\.pid/)
  for (const asked of ['own/data', 'own/data/deeper']) {
    const refused = await agent.call('POST', '/sessions', { body: { workspace: asked } })
    expect([refused.status, refused.body.error.code]).toEqual([422, 'workspace_outside'])
  }
  expect(readdirSync(dataDir)).not.toContain('deeper')
  await expect(startTestAgent({ workspace: dataDir, dataDir: join(workspace, 'own') })).rejects.toMatchObject({
    code: 'workspace_outside',
  })
})

verifies(
  'agentstore:lock:exclusive',
  async () => {
    const agent = await agentProcess([])
    const first = await agent.start()
    const second = runCli(agent.args.map((arg) => (arg.startsWith('127.0.0.1:') ? '127.0.0.1:0' : arg)))
    expect(await second.ended).not.toBe(0)
    expect(second.output()).toContain(`in use by another agent server (process ${first.child.pid})`)
    expect(second.output()).toContain('--data-dir')
    expect(second.output()).not.toContain('    at ')
    expect((await agent.call('GET', '/sessions')).status).toBe(200)
    await first.kill('SIGKILL')
    await agent.start()
  },
  120_000,
)

verifies(
  'agentstore:lock:unusable',
  async () => {
    const file = join(temporaryFolder(), 'file')
    writeFileSync(file, '')
    for (const dir of [join(file, 'data'), '/proc/none/data']) {
      const program = runCli(['agent', '--addr', '127.0.0.1:0', '--data-dir', dir])
      expect(await program.ended).not.toBe(0)
      expect(program.output()).toContain(`The data directory ${dir} cannot be used`)
      expect(program.output()).not.toContain('    at ')
    }
  },
  120_000,
)

verifies('agentstore:schema:versioned', async () => {
  const dataDir = temporaryFolder()
  await (await startTestAgent({ dataDir })).stop()
  const db = await connect(join(dataDir, 'agent.db'))
  expect(db.get('PRAGMA user_version')).toEqual({ user_version: 1 })
  db.exec('PRAGMA user_version = 999')
  db.close()
  await expect(startTestAgent({ dataDir })).rejects.toMatchObject({ code: 'store_newer' })
  const after = await connect(join(dataDir, 'agent.db'))
  expect(after.get('PRAGMA user_version')).toEqual({ user_version: 999 })
  after.close()
})

verifies(
  'agentstore:disk:full',
  async () => {
    const agent = await agentProcess([])
    const full = runOnFullDisk(agent.args, 600)
    await untilAnswers(`${agent.url}/health`, undefined, START_MS)
    const kept: string[] = []
    let refused = await agent.call('GET', '/health')
    for (let count = 0; refused.status < 300 && count < 200; count++) {
      refused = await agent.call('POST', '/sessions', { system_prompt: 'x'.repeat(20_000) })
      if (refused.status === 201) kept.push(refused.body.session_id)
    }
    expect([refused.status, refused.body.error.code]).toEqual([503, 'store_failed'])
    expect(refused.body.error.message).toContain('disk')
    expect((await agent.call('GET', '/sessions')).body).toHaveLength(kept.length)
    await full.kill()
    await agent.start()
    const after: { session_id: string }[] = (await agent.call('GET', '/sessions')).body
    expect(after.map(({ session_id: id }) => id).reverse()).toEqual(kept)
    expect((await agent.call('POST', '/sessions', { system_prompt: 'x'.repeat(20_000) })).status).toBe(201)
  },
  120_000,
)

verifies(
  'agentstore:disk:ready',
  async () => {
    const agent = await agentProcess([])
    const program = await agent.start()
    const ready = async () => (await agent.call('GET', '/ready')).status
    const biggestFile = (bytes: number) =>
      execFileSync('prlimit', ['--pid', String(program.child.pid), `--fsize=${bytes}:`])
    const create = async () => (await agent.call('POST', '/sessions')).status
    expect([await create(), await ready()]).toEqual([201, 200])
    biggestFile(0)
    expect(await create()).toBe(503)
    const { status, body } = await agent.call('GET', '/ready')
    expect([status, body.ready]).toEqual([503, false])
    expect(body.reason).toContain('disk')
    expect((await agent.call('GET', '/health')).status).toBe(200)
    biggestFile(1024 ** 3)
    // Nobody writes: it finds out by itself.
    await expect.poll(ready, { timeout: START_MS }).toBe(200)
    expect(await create()).toBe(201)
  },
  120_000,
)

verifies(['agentstore:plans:expire'], async () => {
  const dataDir = temporaryFolder()
  let time = Date.now()
  const now = () => time
  const first = await startTestAgent({ dataDir, script: PLANS, now })
  const id = await first.session()
  await (await first.events((await first.run(id, 'plan')).events_url)).until('plan_proposed')
  await first.stop()
  time += DAY_MS - 1_000
  const second = await startTestAgent({ dataDir, script: PLANS, now })
  expect((await second.call('GET', `/sessions/${id}`)).body.status).toBe('awaiting_plan')
  await second.stop()
  time += 1_001
  const third = await startTestAgent({ dataDir, script: PLANS, now })
  const { status, transcript } = (await third.call('GET', `/sessions/${id}`)).body
  expect(status).toBe('running')
  expect(JSON.stringify(transcript)).toContain('Nobody answered in time')
})

verifies('agentstore:plans:compare-and-set', async () => {
  for (const dataDir of [null, temporaryFolder()]) {
    const agent = await startTestAgent({ dataDir, script: PLANS })
    const id = await agent.session()
    const decide = async (body: object) => (await agent.call('POST', `/sessions/${id}/plan`, { body })).status
    expect(await decide({ decision: 'approve' })).toBe(409)
    const reader = await agent.events((await agent.run(id, 'plan')).events_url)
    const planId = (await reader.until('plan_proposed')).at(-1)?.data.plan_id
    const [approve, reject] = ['approve', 'reject'].map((decision) => ({ decision, plan_id: planId }))
    if (!approve || !reject) throw new Error('no decisions')
    const both = await Promise.all([decide(approve), decide(reject)])
    expect(both.sort()).toEqual([200, 409])
    const again = await Promise.all([approve, reject, approve, reject].map(decide))
    expect(again.sort()).toEqual([200, 200, 409, 409])
    await agent.call('POST', `/sessions/${id}/cancel`)
    expect(await decide({ decision: 'approve' })).toBe(409)
  }
})

verifies(['agentstore:log:bounded', 'agentstore:list:cursor'], 'old events go and old cursors are told', async () => {
  for (const dataDir of [null, temporaryFolder()]) {
    const agent = await startTestAgent({ dataDir, maxLogEvents: 10, script: [] })
    const id = await agent.session()
    for (let count = 0; count < 8; count++) await agent.finish(id, `goal ${count}`)
    const expired = await agent.call('GET', `/sessions/${id}/events?after=1`)
    expect([expired.status, expired.body.error.code]).toEqual([410, 'cursor_expired'])
    const { oldest, newest } = expired.body.error.details
    expect(newest - oldest).toBe(9)
    const reader = await agent.events(`/sessions/${id}/events?extended=1&after=${oldest - 1}`)
    expect((await reader.next())?.id).toBe(oldest)
    expect((await agent.call('GET', `/sessions/${id}`)).body.transcript).toHaveLength(16)
    const unknown = await agent.call('GET', `/sessions?limit=1&cursor=${crypto.randomUUID()}`)
    expect([unknown.status, unknown.body.error.details]).toEqual([422, { field: 'cursor' }])
  }
})

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}
