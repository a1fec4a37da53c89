import { createHash } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import type { Client } from './model.ts'
import { clientNamed, ONLINE_FOR_MS, openRegistry, type Registry } from './registry.ts'
import { openMemoryStore } from './store/memory.ts'
import type { HubStore } from './store/port.ts'

const PLAIN = { label: 'A label', fallback: false }

/** A registry on a store, with a clock that stands still until it is moved. */
async function testRegistry(given?: HubStore) {
  const store = given ?? (await openMemoryStore())
  if (given === undefined) onTestFinished(() => store.close())
  let now = 1_700_000_000_000
  const touched: { id: number; lastSeen: number; stopped: boolean }[] = []
  const clients = {
    ...store.clients,
    touch: (seen: { id: number; lastSeen: number; stopped: boolean }[]) => {
      touched.push(...seen)
      store.clients.touch(seen)
    },
  }
  const registry = await openRegistry(clients, () => now)
  return { registry, store, touched, now: () => now, advance: (ms: number) => (now += ms) }
}

/** Opens a poll, and returns what closes it. */
function openPoll(registry: Registry, client: Client): () => void {
  registry.pollOpened(client)
  return () => registry.pollClosed(client)
}

verifies('presence:online:open-poll', async () => {
  const { registry, advance } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  registry.seen(client)
  const close = openPoll(registry, client)
  advance(10 * ONLINE_FOR_MS)
  expect(registry.isOnline(client)).toBe(true)
  const closeOther = openPoll(registry, client)
  close()
  advance(10 * ONLINE_FOR_MS)
  expect(registry.isOnline(client)).toBe(true)
  closeOther()
  // The client was there until its poll ended.
  advance(ONLINE_FOR_MS - 1)
  expect(registry.isOnline(client)).toBe(true)
  advance(1)
  expect(registry.isOnline(client)).toBe(false)
})

verifies(['presence:online:recent-call', 'presence:offline:silent'], async () => {
  const { registry, advance } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  expect(registry.isOnline(client)).toBe(false)
  advance(1_000)
  registry.seen(client)
  expect(registry.isOnline(client)).toBe(true)
  advance(89_999)
  expect(registry.isOnline(client)).toBe(true)
  expect(registry.onlineCount()).toBe(1)
  advance(1)
  expect(registry.isOnline(client)).toBe(false)
  expect(registry.onlineCount()).toBe(0)
})

verifies('presence:offline:stop', async () => {
  const { registry } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  registry.seen(client)
  const close = openPoll(registry, client)
  registry.stopped(client)
  expect(registry.isOnline(client)).toBe(false)
  // The poll that was open at the goodbye ends, and that is no new call.
  close()
  expect(registry.isOnline(client)).toBe(false)
  registry.seen(client)
  expect(registry.isOnline(client)).toBe(true)
})

verifies('presence:offline:deleted', async () => {
  const { registry } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  registry.seen(client)
  const close = openPoll(registry, client)
  expect(registry.onlineCount()).toBe(1)
  await registry.remove(client.id)
  expect(registry.onlineCount()).toBe(0)
  expect(registry.isOnline(client)).toBe(false)
  close()
  expect(registry.isOnline(client)).toBe(false)
})

verifies('presence:offline:revoked', async () => {
  const { registry, touched } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  registry.seen(client)
  const { lastSeen } = client
  const close = openPoll(registry, client)
  await registry.rotate(client.id, 0)
  expect(registry.isOnline(client)).toBe(false)
  // The poll is cut by the hub: that is no sign of life.
  close()
  expect(registry.isOnline(client)).toBe(false)
  expect(client.lastSeen).toBe(lastSeen)
  expect(touched.at(-1)).toEqual({ id: client.id, lastSeen, stopped: true })
  registry.seen(client)
  expect(registry.isOnline(client)).toBe(true)
})

test('a rotation with an overlap revokes nothing, so the client stays online', async () => {
  const { registry } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  registry.seen(client)
  await registry.rotate(client.id, 60_000)
  expect(registry.isOnline(client)).toBe(true)
})

verifies('presence:last-seen:moves', async () => {
  const { registry, now, advance } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  expect(client.lastSeen).toBe(client.createdAt)
  for (const ms of [1_000, 1, 7_000]) {
    advance(ms)
    registry.seen(client)
    expect(client.lastSeen).toBe(now())
  }
})

verifies('presence:last-seen:persisted', async () => {
  const { registry, store, touched, advance } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  const startedAt = client.createdAt
  for (let call = 0; call < 200; call += 1) {
    advance(100)
    registry.seen(client)
  }
  expect(touched.length).toBeGreaterThan(1)
  expect(touched.length).toBeLessThanOrEqual(20 / 5 + 1)
  await store.deliveries.flush()
  const { registry: again } = await testRegistry(store)
  const lost = startedAt + 20_000 - (again.byName('bot')?.lastSeen ?? 0)
  expect(lost).toBeGreaterThanOrEqual(0)
  expect(lost).toBeLessThan(5_000)
})

test('a goodbye and a return are kept at once, whenever the last write was', async () => {
  const { registry, store } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  registry.seen(client)
  registry.stopped(client)
  await store.deliveries.flush()
  expect((await store.clients.load()).clients[0]?.stopped).toBe(true)
  registry.seen(client)
  await store.deliveries.flush()
  expect((await store.clients.load()).clients[0]?.stopped).toBe(false)
})

test('a client that was never seen is offline after a restart, one that was is as it was', async () => {
  const { registry, store } = await testRegistry()
  const { client } = await registry.register('seen', PLAIN)
  await registry.register('unseen', PLAIN)
  registry.seen(client)
  await store.deliveries.flush()
  const { registry: again } = await testRegistry(store)
  expect(again.all().map((one) => [one.name, again.isOnline(one)])).toEqual([
    ['seen', true],
    ['unseen', false],
  ])
})

verifies(['hub:register:token-format', 'hub:register:token-hashed'], async () => {
  const { registry, store } = await testRegistry()
  const issued = new Set<string>()
  for (let index = 0; index < 20; index += 1) {
    const { token } = await registry.register(`bot ${index}`, PLAIN)
    expect(token).toMatch(/^vhub_[0-9a-f]{32}$/)
    issued.add(token)
  }
  expect(issued.size).toBe(20)
  const { tokens } = await store.clients.load()
  const hashes = [...issued].map((token) => createHash('sha256').update(token).digest('hex'))
  expect(tokens.map(({ hash }) => hash).sort()).toEqual(hashes.sort())
})

test('a token is good for its own client and nothing near it is good', async () => {
  const { registry } = await testRegistry()
  const { token } = await registry.register('bot', PLAIN)
  expect(registry.authenticate(token)?.client.name).toBe('bot')
  for (const near of ['', ' ', token.toUpperCase(), `${token} `, `${token}0`, token.slice(0, -1), token.slice(5)])
    expect(registry.authenticate(near), JSON.stringify(near)).toBe(undefined)
})

test('of two registrations of a name at once one is refused', async () => {
  const { registry } = await testRegistry()
  const results = await Promise.allSettled(['bot', 'BOT', 'Bot'].map((name) => registry.register(name, PLAIN)))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
  expect(registry.all().map(({ name }) => name)).toEqual(['bot'])
  expect(registry.byName(' bOt ')?.name).toBe('bot')
})

verifies(
  ['hub:rotate:new-token', 'auth:virtual:revoked'],
  'without an overlap only the newest token is good',
  async () => {
    const { registry, store } = await testRegistry()
    const revoked: string[] = []
    registry.onRevoked((_clientId, hash) => revoked.push(hash))
    const { client, token: first } = await registry.register('bot', PLAIN)
    const { token: other } = await registry.register('other', PLAIN)
    const second = await registry.rotate(client.id, 60_000)
    const third = await registry.rotate(client.id, 0)
    const { registry: again } = await testRegistry(store)
    for (const one of [registry, again]) {
      expect([first, second, third, other].map((token) => one.authenticate(token)?.client.name)).toEqual([
        undefined,
        undefined,
        'bot',
        'other',
      ])
    }
    const hash = (token: string) => createHash('sha256').update(token).digest('hex')
    expect(revoked.sort()).toEqual([first, second].map(hash).sort())
  },
)

verifies('hub:rotate:overlap', async () => {
  const { registry, store, advance } = await testRegistry()
  const revoked: number[] = []
  registry.onRevoked((clientId) => revoked.push(clientId))
  const { client, token: first } = await registry.register('bot', PLAIN)
  const second = await registry.rotate(client.id, 60_000)
  advance(30_000)
  // A later, longer overlap does not lengthen the life of a token that was promised less.
  const third = await registry.rotate(client.id, 3_600_000)
  const good = () => [first, second, third].map((token) => registry.authenticate(token) !== undefined)
  expect(good()).toEqual([true, true, true])
  advance(29_999)
  expect(good()).toEqual([true, true, true])
  advance(1)
  expect(good()).toEqual([false, true, true])
  expect(revoked).toEqual([client.id])
  // What has ended is not carried along.
  await registry.rotate(client.id, 60_000)
  expect((await store.clients.load()).tokens).toHaveLength(3)
  // The end of the overlap is known after a restart too; that clock stands at the start.
  const { registry: again, advance: advanceAgain } = await testRegistry(store)
  advanceAgain(60_000)
  expect(again.authenticate(first)).toBe(undefined)
  expect(again.authenticate(second)?.client.name).toBe('bot')
})

test('a patch keeps what only memory knows', async () => {
  const { registry, advance } = await testRegistry()
  const { client } = await registry.register('bot', PLAIN)
  advance(5_000)
  registry.seen(client)
  client.echoesCursor = true
  const { lastSeen } = client
  const updated = await registry.update(client.id, { label: 'Other' })
  expect(updated).toMatchObject({ label: 'Other', lastSeen, echoesCursor: true, stopped: false })
  expect(registry.byName('bot')).toBe(updated)
})

test('the default is one client at most, in memory and in the store', async () => {
  const { registry, store } = await testRegistry()
  for (const name of ['a', 'b', 'c']) await registry.register(name, PLAIN)
  await Promise.all(registry.all().map(({ id }) => registry.update(id, { isDefault: true })))
  const defaults = (clients: readonly { name: string; isDefault: boolean }[]) =>
    clients.filter(({ isDefault }) => isDefault).map(({ name }) => name)
  expect(defaults(registry.all())).toEqual(['c'])
  expect(defaults((await store.clients.load()).clients)).toEqual(['c'])
})

test('changing a client that is gone fails and changes nothing', async () => {
  const { registry } = await testRegistry()
  const { client, token } = await registry.register('bot', PLAIN)
  await registry.remove(client.id)
  await expect(registry.update(client.id, { label: 'x' })).rejects.toMatchObject({ code: 'not_found' })
  await expect(registry.rotate(client.id, 0)).rejects.toMatchObject({ code: 'not_found' })
  expect(registry.all()).toEqual([])
  expect(registry.authenticate(token)).toBe(undefined)
  expect(() => clientNamed(registry, 'bot')).toThrow(/no client named "bot"/)
  // The name is free again, and what it had is gone.
  const { client: fresh } = await registry.register('bot', PLAIN)
  expect(fresh.id).not.toBe(client.id)
})
