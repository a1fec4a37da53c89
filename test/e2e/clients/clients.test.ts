import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import {
  imageOf,
  openStage,
  REAL_CLIENTS,
  type RealClientName,
  runClient,
  type Stage,
  WAIT_MS,
} from '../../support/client-stage.ts'
import { temporaryFolder } from '../../support/processes.ts'
import { until } from '../../support/test-hub.ts'
import { verifies } from '../../support/verifies.ts'

const TEST_MS = 120_000
const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(50_001)])

describe.each(REAL_CLIENTS)('%s', (name) => {
  verifies(
    ['wire:clients:text', 'wire:clients:typing', 'wire:clients:image', 'wire:clients:idle'],
    `${name}: a conversation with texts, typing, an image, and a wait of two holds`,
    async () => {
      const { stage, client } = await begin(name)
      await stage.say('ann', 'hello')
      await answered(stage, 'ann', ['echo: hello'])

      await stage.say('ann', 'type')
      await until(() => stage.isTyping('ann'), WAIT_MS)
      await stage.say('ann', 'stop typing')
      await until(async () => !(await stage.isTyping('ann')), WAIT_MS)

      await stage.simCall('POST', '/sim/say', { user: 'ann', image_base64: PNG.toString('base64') })
      await until(() => client.seen('image').length === 1, WAIT_MS)
      expect(client.seen('image')[0]).toMatchObject({ sha256: sha256(PNG), bytes: PNG.length })
      await until(async () => (await stage.answers('ann')).length === 2, WAIT_MS)
      expect((await imageOf(stage, 'ann')).equals(PNG)).toBe(true)

      const emptyBefore = await stage.figure('polls_total{answer="empty"}')
      await until(async () => (await stage.figure('polls_total{answer="empty"}')) >= emptyBefore + 2, WAIT_MS)
      await stage.say('ann', 'still there?')
      await answered(stage, 'ann', ['echo: hello', '', 'echo: still there?'])
      expect([...client.seen('error'), ...client.seen('failed')]).toEqual([])
    },
    TEST_MS,
  )

  verifies(
    'wire:clients:restart',
    `${name}: killed, and the hub killed under it, it misses nothing and repeats nothing that was settled`,
    async () => {
      const { stage, client, again } = await begin(name)
      await stage.say('ann', 'one')
      await answered(stage, 'ann', ['echo: one'])
      await stage.settled(name)
      await client.kill()
      await stage.say('ann', 'two')
      const second = again()
      await answered(stage, 'ann', ['echo: one', 'echo: two'])
      await stage.settled(name)

      await stage.killHub()
      await stage.say('ann', 'three')
      await stage.startHub()
      await answered(stage, 'ann', ['echo: one', 'echo: two', 'echo: three'])
      await stage.say('ann', 'four')
      await answered(stage, 'ann', ['echo: one', 'echo: two', 'echo: three', 'echo: four'])
      expect(second.isRunning()).toBe(true)
      expect(second.seen('message').map(({ text }) => text)).toEqual(['two', 'three', 'four'])
    },
    TEST_MS,
  )

  verifies(
    'wire:clients:wrong-token',
    `${name}: with a wrong token it lives on, backs off and keeps its credentials`,
    async () => {
      const stage = await openStage()
      const folder = temporaryFolder()
      const token = `vhub_${'0'.repeat(32)}`
      const client = runClient(name, { hubUrl: stage.hubUrl, cdnUrl: `${stage.simUrl}/c2c`, token, folder })
      await until(() => client.seen('error').length >= 2, WAIT_MS)
      const [first, second] = client.seen('error')
      expect(first?.text).toContain('401')
      expect(Number(second?.at) - Number(first?.at)).toBeGreaterThan(1_500)
      expect(client.isRunning()).toBe(true)
      expect([...client.seen('expired'), ...client.seen('stopped')]).toEqual([])
      expect(JSON.parse(readFileSync(join(folder, 'credentials.json'), 'utf8')).botToken).toBe(token)
      // Neither asked to log in anew.
      expect((await stage.simCall('GET', '/sim/qr')).codes).toEqual([])
      expect(readdirSync(folder)).toContain('credentials.json')
    },
    TEST_MS,
  )
})

verifies(
  'wire:clients:expired-login',
  'an upstream -14 in the middle: both clients poll on, /health names the action, a login by QR code brings it back, nothing is lost',
  async () => {
    const stage = await openStage()
    const clients = []
    for (const name of REAL_CLIENTS) {
      const token = await stage.register(name)
      clients.push(
        runClient(name, { hubUrl: stage.hubUrl, cdnUrl: `${stage.simUrl}/c2c`, token, folder: temporaryFolder() }),
      )
    }
    for (const name of REAL_CLIENTS) await stage.online(name)
    for (const name of REAL_CLIENTS) await stage.say('ann', `@${name} before`)
    await until(async () => (await stage.answers('ann')).length === 2, WAIT_MS)

    await stage.simCall('POST', '/sim/fault', { kind: 'expired' })
    await until(async () => (await stage.hubCall('GET', '/health')).upstream_detail.state === 'needs_login', WAIT_MS)
    const health = await stage.hubCall('GET', '/health')
    expect(health).toMatchObject({ status: 'degraded', upstream: 'reconnecting', clients: { online: 2, total: 2 } })
    expect(health.upstream_detail.action).toMatch(/log ?in/i)
    for (const name of REAL_CLIENTS) await stage.say('ann', `@${name} during`)
    const emptyBefore = await stage.figure('polls_total{answer="empty"}')
    await until(async () => (await stage.figure('polls_total{answer="empty"}')) >= emptyBefore + 4, WAIT_MS)

    const login = await stage.hubCall('POST', '/hub/upstream/login', {})
    await stage.simCall('POST', '/sim/qr/scan', { qrcode: new URL(login.qr_text).searchParams.get('qrcode') })
    const logged = async () => (await stage.hubCall('GET', `/hub/upstream/login/${login.login_id}`)).status
    await until(async () => (await logged()) === 'confirmed', WAIT_MS)
    await until(async () => (await stage.answers('ann')).length === 4, WAIT_MS)
    expect((await stage.answers('ann')).toSorted()).toEqual(
      REAL_CLIENTS.flatMap((name) => [`echo: @${name} before`, `echo: @${name} during`]),
    )
    expect(await stage.hubCall('GET', '/health')).toMatchObject({ status: 'ok', upstream: 'connected' })
    for (const client of clients) {
      expect(client.isRunning()).toBe(true)
      expect([...client.seen('error'), ...client.seen('failed'), ...client.seen('expired')]).toEqual([])
    }
  },
  TEST_MS,
)

/** A stage with one client of that name, and a way to run the client again. */
async function begin(name: RealClientName) {
  const stage = await openStage()
  const token = await stage.register(name)
  const folder = temporaryFolder()
  const again = () => runClient(name, { hubUrl: stage.hubUrl, cdnUrl: `${stage.simUrl}/c2c`, token, folder })
  const client = again()
  await stage.online(name)
  return { stage, client, again }
}

/** Waits for that many answers and holds them against these. */
async function answered(stage: Stage, user: string, texts: string[]): Promise<void> {
  await until(async () => (await stage.answers(user)).length >= texts.length, WAIT_MS)
  expect(await stage.answers(user)).toEqual(texts)
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
