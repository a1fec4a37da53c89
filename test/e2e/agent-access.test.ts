import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { rawRequest } from '../support/raw-http.ts'
import { startTestAgent, type TestAgent } from '../support/test-agent.ts'
import { verifies } from '../support/verifies.ts'

const PATHS = ['/tools', '/sessions', '/openapi.json', '/metrics', '/nothing']

/** A GET with headers that fetch would not send. */
function get({ agent }: TestAgent, path: string, headers: Record<string, string>) {
  const lines = Object.entries({ host: 'localhost', connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return rawRequest(agent.port, `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
}

verifies(
  ['agent:auth:header', 'agent:auth:refused', 'agent:auth:bearer', 'agent:health:open'],
  'with keys every path but health and ready needs one',
  async () => {
    const agent = await startTestAgent({ authKeys: ['first-key', 'second-key'] })
    for (const path of PATHS) {
      const wrong: Record<string, string>[] = [
        {},
        { 'x-api-key': 'wrong' },
        { 'x-api-key': 'first-key,second-key' },
        { authorization: 'Bearer wrong' },
        { authorization: 'Basic first-key' },
        { 'x-api-key': '' },
      ]
      for (const headers of wrong) {
        const answer = await agent.call('GET', path, { headers })
        expect([answer.status, answer.body.error.code], `${path} ${JSON.stringify(headers)}`).toEqual([
          401,
          'unauthorized',
        ])
        expect(answer.headers.get('www-authenticate')).toContain('X-API-Key')
        expect(answer.body.error.message).toContain('X-API-Key')
        expect(answer.text).not.toContain('first-key')
      }
    }
    const right: Record<string, string>[] = [
      { 'x-api-key': 'first-key' },
      { 'x-api-key': 'second-key' },
      { authorization: 'Bearer first-key' },
      { authorization: 'bearer second-key' },
    ]
    for (const headers of right) expect((await agent.call('GET', '/sessions', { headers })).status).toBe(200)
    for (const path of ['/health', '/ready']) expect((await agent.call('GET', path)).status).toBe(200)
    const made = await agent.call('POST', '/sessions', { body: {} })
    expect(made.status).toBe(401)
    expect((await agent.call('GET', '/sessions', { headers: { 'x-api-key': 'first-key' } })).body).toEqual([])
  },
)

test('with keys the host and the origin do not matter', async () => {
  const agent = await startTestAgent({ authKeys: ['first-key'] })
  const headers = { host: 'agent.example', origin: 'https://page.example', 'x-api-key': 'first-key' }
  expect((await get(agent, '/sessions', headers)).status).toBe(200)
})

verifies(
  ['agent:auth:local', 'agent:auth:host'],
  'an open server takes callers on this machine only: no forwarding header, no foreign host, no foreign page',
  async () => {
    const agent = await startTestAgent({ allowedHosts: ['agent.internal'] })
    const { port } = agent.agent
    for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'agent.internal:80'])
      expect((await get(agent, '/sessions', { host })).status, host).toBe(200)
    const refused: Record<string, string>[] = [
      { host: 'evil.example' },
      { host: 'localhost.evil.example' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'x-forwarded-for': '10.0.0.1' },
      { 'x-forwarded-for': '' },
      { forwarded: 'for=10.0.0.1' },
      { via: '1.1 proxy' },
    ]
    for (const headers of refused) {
      const { status, body } = await get(agent, '/sessions', headers)
      expect([status, JSON.parse(body).error.code], JSON.stringify(headers)).toEqual([403, 'forbidden'])
      expect((await get(agent, '/health', headers)).status).toBe(200)
    }
    const own = `localhost:${port}`
    expect((await get(agent, '/sessions', { host: own, origin: `http://${own}` })).status).toBe(200)
  },
)

verifies(
  'agent:auth:elsewhere',
  'a caller from elsewhere is told to set keys; with --insecure it is let in',
  async () => {
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((one) => one?.family === 'IPv4' && !one.internal)?.address
    if (outside === undefined) return
    const open = await startTestAgent({ host: '0.0.0.0' })
    const refused = await fetch(`http://${outside}:${open.agent.port}/sessions`)
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('--auth-keys')])
    const insecure = await startTestAgent({ host: '0.0.0.0', insecure: true })
    expect((await fetch(`http://${outside}:${insecure.agent.port}/sessions`)).status).toBe(200)
  },
)

verifies('agent:auth:no-cors', 'no answer allows other sites to read it', async () => {
  const agent = await startTestAgent()
  const { headers } = await agent.call('GET', '/sessions')
  expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
})
