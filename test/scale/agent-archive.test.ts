import { afterAll, beforeAll, expect } from 'vitest'
import { parseAgentConfig } from '../../src/agent/config.ts'
import { silentLog } from '../../src/kit/log.ts'
import { connectRedis } from '../../src/kit/redis/connect-redis.ts'
import { startFlakyProxy } from '../support/flaky-proxy.ts'
import { freshBucket } from '../support/servers/fresh-bucket.ts'
import { startRedis } from '../support/servers/redis.ts'
import { soon } from '../support/soon.ts'
import { startTestAgent, type TestAgentOptions } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'
import { whileAway } from '../support/while-away.ts'

const LONG_MS = 120_000

let redis: Awaited<ReturnType<typeof startRedis>>
beforeAll(async () => {
  redis = await startRedis(['--appendfsync', 'everysec'])
}, LONG_MS)
afterAll(() => redis.remove())

/** Two nodes that archive at once, and a look at how much of a session is still in Redis. */
async function twoNodes(options: TestAgentOptions = {}) {
  const shared = { redisUrl: redis.url, archiveAfterMs: 0, ...options }
  const one = await startTestAgent(shared)
  const other = await startTestAgent({ ...shared, workspace: one.workspace })
  const resting = async (id: string) => {
    const link = await connectRedis({ url: redis.url, log: silentLog })
    const lengths = async () => [
      await link.send('XLEN', `switchboard:agent:{${id}}:events`),
      await link.send('LLEN', `switchboard:agent:{${id}}:transcript`),
    ]
    await soon(async () => expect(await lengths()).toEqual([0, 0]))
    await link.close()
  }
  return { one, other, resting }
}

verifies(
  'agentscale:archive:moved',
  async () => {
    const s3Url = { ...(await freshBucket()), prefix: 'agents/' }
    const { one, other, resting } = await twoNodes({ s3Url })
    const id = await one.session()
    const events = await one.finish(id, 'list files')
    const details = (await one.call('GET', `/sessions/${id}`)).body
    await resting(id)
    expect((await other.call('GET', `/sessions/${id}`)).body).toEqual(details)
    const reader = await other.events(`/sessions/${id}/events?after=0`)
    expect(await reader.until('done')).toEqual(events)
    const more = await other.finish(id, 'list files')
    expect(more[0]?.id).toBeGreaterThan(events.at(-1)?.id ?? 0)
    const all = await one.events(`/sessions/${id}/events?after=0`)
    expect([...(await all.until('done')), ...(await all.until('done'))]).toEqual([...events, ...more])
    await resting(id)
    const fork = (await one.call('POST', `/sessions/${id}/fork`)).body.session_id
    const { transcript } = (await other.call('GET', `/sessions/${id}`)).body
    expect(transcript.length).toBeGreaterThan(details.transcript.length)
    expect((await other.call('GET', `/sessions/${fork}`)).body.transcript).toEqual(transcript)
    expect((await one.call('DELETE', `/sessions/${id}`)).status).toBe(204)
    expect((await other.call('GET', `/sessions/${id}`)).status).toBe(404)
  },
  LONG_MS,
)

verifies(
  'agentscale:archive:away',
  async () => {
    const address = await freshBucket()
    const proxy = await startFlakyProxy(Number(new URL(address.endpoint).port))
    const { one, other, resting } = await twoNodes({ s3Url: { ...address, endpoint: proxy.url } })
    const id = await one.session()
    const events = await one.finish(id, 'list files')
    await resting(id)
    proxy.plan(() => ({ type: 'refuse' }))
    proxy.cutAll()
    // Not what this node still remembers of the objects: another one.
    await whileAway(async () => {
      for (const path of [`/sessions/${id}`, `/sessions/${id}/events?after=0`]) {
        const refused = await other.call('GET', path)
        expect([refused.status, refused.body.error.code]).toEqual([503, 'store_failed'])
        expect(refused.headers.get('retry-after')).toBe('2')
      }
      const limited = expect.stringMatching(/object store/)
      expect((await other.call('GET', '/ready')).body).toEqual({ ready: true, limited })
    })
    const fresh = await other.session()
    expect((await one.finish(fresh, 'list files')).at(-1)?.data.finish_reason).toBe('NoMoreToolCalls')
    proxy.plan([])
    const reader = await other.events(`/sessions/${id}/events?after=0`)
    expect(await reader.until('done')).toEqual(events)
    await soon(async () => expect((await other.call('GET', '/ready')).body).toEqual({ ready: true }))
    await resting(fresh)
    expect((await other.call('GET', `/sessions/${fresh}`)).body.transcript.length).toBeGreaterThan(0)
  },
  LONG_MS,
)

verifies('agentscale:archive:settings', async () => {
  const problems = (s3Url: string, redisUrl: string | undefined = redis.url) =>
    parseAgentConfig({ s3Url, redisUrl }, {}).problems
  expect(problems('http://host')).toEqual([expect.stringContaining('must be an address such as s3://bucket?endpoint=')])
  expect(problems('s3://key:secret@bucket')).toEqual([expect.stringContaining('AWS_ACCESS_KEY_ID')])
  expect(problems('s3://key:secret@bucket').join()).not.toContain('secret')
  expect(problems('s3://bucket?endpoint=nowhere')).toHaveLength(1)
  expect(problems('s3://bucket?secret=x')).toEqual([expect.stringContaining('knows only endpoint and region')])
  const alone = parseAgentConfig({ s3Url: 's3://bucket' }, {})
  expect(alone.problems).toEqual([])
  const both = parseAgentConfig({ s3Url: 's3://bucket', dataDir: 'data' }, {})
  expect(both.problems).toEqual([expect.stringContaining('--s3-url and --data-dir exclude each other')])
  expect(alone.settings.s3Url).toEqual({ bucket: 'bucket', prefix: '', endpoint: null, region: null })
  const full = parseAgentConfig({}, { AGENT_S3_URL: 's3://b/some/where/?endpoint=http://h:1&region=eu-1' })
  expect(full.settings.s3Url).toEqual({ bucket: 'b', prefix: 'some/where/', endpoint: 'http://h:1', region: 'eu-1' })
  const missing = startTestAgent({ redisUrl: redis.url, s3Url: { ...(await freshBucket()), bucket: 'never-made' } })
  await expect(missing).rejects.toMatchObject({ code: 's3_refused', message: expect.stringContaining('never-made') })
})
