import { expect } from 'vitest'
import { freePort, runCli, temporaryFolder, untilAnswers } from '../support/processes.ts'
import { verifies } from '../support/verifies.ts'

async function startHub(more: string[] = []) {
  const port = await freePort()
  const dataDir = temporaryFolder()
  const url = `http://127.0.0.1:${port}`
  const start = async () => {
    const hub = runCli(['hub', '--addr', `127.0.0.1:${port}`, '--data-dir', dataDir, ...more])
    await untilAnswers(`${url}/health`, hub)
    return hub
  }
  return { url, start, hub: await start() }
}

async function register(url: string): Promise<string> {
  const response = await fetch(`${url}/hub/register`, { method: 'POST', body: '{"name":"bot"}' })
  const { token }: { token: string } = JSON.parse(await response.text())
  return token
}

function poll(url: string, token: string): Promise<Response> {
  return fetch(`${url}/relay/bot/getupdates`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: '{}',
  })
}

async function untilParked(url: string): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!(await (await fetch(`${url}/metrics`)).text()).includes('parked_polls 1')) {
    if (Date.now() > deadline) throw new Error('the poll does not wait')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

verifies(
  ['delivery:hold:exact', 'relay:getupdates:empty-after-hold', 'config:flags:defaults'],
  'with nothing configured an empty poll is held for 30 seconds',
  async () => {
    const { url } = await startHub()
    const token = await register(url)
    const startedAt = performance.now()
    const response = await poll(url, token)
    const heldMs = performance.now() - startedAt
    expect(await response.json()).toMatchObject({ ret: 0, errcode: 0, messages: [], msgs: [] })
    expect(heldMs).toBeGreaterThanOrEqual(29_990)
    expect(heldMs).toBeLessThan(33_000)
  },
  60_000,
)

verifies(
  ['delivery:shutdown:polls', 'delivery:shutdown:quick', 'delivery:shutdown:writes'],
  'SIGTERM answers waiting polls, keeps all, and is quick',
  async () => {
    const { url, hub, start } = await startHub()
    const token = await register(url)
    const waiting = poll(url, token)
    await untilParked(url)
    const startedAt = performance.now()
    hub.child.kill('SIGTERM')
    const response = await waiting
    expect(response.status).toBe(200)
    expect(response.headers.get('connection')).toBe('close')
    expect(await response.json()).toMatchObject({ errcode: 0, messages: [], msgs: [] })
    expect(await hub.ended).toBe(0)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    // What was registered is there after the restart.
    await start()
    const clients: { total: number } = JSON.parse(await (await fetch(`${url}/hub/clients`)).text())
    expect(clients.total).toBe(1)
  },
)
