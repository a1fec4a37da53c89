import { expect, onTestFinished, test, vi } from 'vitest'
import { fakeConnection, pollOnce, type TestDesk, testDesk } from '../../test/support/test-desk.ts'
import { verifies } from '../../test/support/verifies.ts'
import type { PollAnswer } from './delivery.ts'
import { openMemoryStore } from './store/memory.ts'

const cursorOf = (answer: PollAnswer) => (answer.type === 'messages' || answer.type === 'empty' ? answer.cursor : '')

async function stateOf({ store }: TestDesk, index = 0): Promise<string | undefined> {
  await store.deliveries.flush()
  const messages = await store.messages.list({ limit: 100 })
  return messages.reverse()[index]?.deliveries[0]?.state
}

verifies(['delivery:state:path', 'delivery:implicit:acks', 'delivery:implicit:assumed'], async () => {
  const desk = await testDesk()
  await desk.put('one')
  expect(await stateOf(desk)).toBe('queued')
  expect(desk.texts(await desk.poll())).toEqual(['one'])
  expect(await stateOf(desk)).toBe('sent')
  expect((await desk.poll()).type).toBe('empty')
  expect(await stateOf(desk)).toBe('acked_assumed')
})

verifies(['delivery:implicit:unfinished', 'delivery:implicit:first'], async () => {
  const desk = await testDesk()
  await desk.put('one', 'two')
  const lost = await desk.poll(undefined, { unwritten: true })
  if (lost.type === 'messages') lost.batch.lost()
  await desk.put('three')
  expect(desk.texts(await desk.poll())).toEqual(['one', 'two', 'three'])
})

verifies(
  'delivery:implicit:reset',
  'a connection that is reset after the answer was written puts it back',
  async () => {
    const desk = await testDesk()
    await desk.put('one')
    const answer = await desk.poll()
    if (answer.type === 'messages') answer.batch.lost()
    expect(desk.texts(await desk.poll())).toEqual(['one'])
    expect((await desk.poll()).type).toBe('empty')
  },
)

test('an acknowledgement that the store refused is stored before more goes out, however often it takes', async () => {
  const store = await openMemoryStore({})
  onTestFinished(() => store.close())
  const flush = vi.fn(store.deliveries.flush).mockRejectedValueOnce(new Error('full'))
  const desk = await testDesk({ store: { ...store, deliveries: { ...store.deliveries, flush } } })
  await desk.put('one')
  await desk.poll()
  await desk.put('two')
  await expect(desk.poll()).rejects.toThrow('full')
  expect(desk.texts(await desk.poll())).toEqual(['two'])
  expect(flush).toHaveBeenCalledTimes(2)
})

test('a reset that comes after the next poll changes nothing', async () => {
  const desk = await testDesk()
  await desk.put('one')
  const answer = await desk.poll()
  await desk.poll()
  if (answer.type === 'messages') answer.batch.lost()
  expect((await desk.poll()).type).toBe('empty')
})

test('a poll that comes while the older answer is being written waits for its end and repeats nothing', async () => {
  const desk = await testDesk()
  await desk.put('one')
  const writing = await desk.poll(undefined, { unwritten: true })
  const next = desk.poll()
  if (writing.type === 'messages') writing.batch.written()
  expect((await next).type).toBe('empty')
})

test('an answer that never finishes is cut off and comes again', async () => {
  const desk = await testDesk()
  await desk.put('one')
  const frozen = fakeConnection()
  await desk.poll(undefined, { connection: frozen, unwritten: true })
  expect(desk.texts(await desk.poll())).toEqual(['one'])
  expect(frozen.aborted).toBe(true)
})

verifies(['delivery:state:restart', 'delivery:implicit:restart'], async () => {
  const desk = await testDesk()
  await desk.put('one')
  await desk.poll(undefined, { unwritten: true })
  const restarted = await desk.reopen()
  expect(restarted.texts(await restarted.poll())).toEqual(['one'])
})

test('what was known as sent before a restart counts as received at the next poll', async () => {
  const desk = await testDesk()
  await desk.put('one')
  await desk.poll()
  const restarted = await desk.reopen()
  await restarted.put('two')
  expect(restarted.texts(await restarted.poll())).toEqual(['two'])
})

verifies(['delivery:cursor:acks', 'delivery:cursor:same-again'], async () => {
  const desk = await testDesk()
  await desk.put('one')
  const first = await desk.poll('')
  const second = desk.poll(cursorOf(first))
  await desk.put('two')
  expect(desk.texts(await second)).toEqual(['two'])
  expect(await stateOf(desk, 0)).toBe('acked')
  await desk.put('three')
  desk.clock.nowMs += 1_000
  expect(desk.texts(await desk.poll(cursorOf(first)))).toEqual(['two', 'three'])
})

verifies('delivery:cursor:hasty', async () => {
  const desk = await testDesk()
  await desk.put('one')
  const start = cursorOf(await desk.poll(''))
  await desk.put('two', 'three')
  expect(desk.texts(await desk.poll(start))).toEqual(['two', 'three'])
  desk.clock.nowMs += 499
  expect(desk.texts(await desk.poll(start))).toEqual(['two'])
  desk.clock.nowMs += 501
  expect(desk.texts(await desk.poll(start))).toEqual(['two', 'three'])
})

verifies('delivery:cursor:older', async () => {
  const desk = await testDesk()
  await desk.put('one')
  const first = cursorOf(await desk.poll(''))
  await desk.put('two')
  const second = cursorOf(await desk.poll(first))
  await desk.put('three')
  await desk.poll(second)
  desk.clock.nowMs += 1_000
  expect(desk.texts(await desk.poll(first))).toEqual(['two', 'three'])
  desk.clock.nowMs += 24 * 60 * 60_000
  await desk.put('four')
  expect(desk.texts(await desk.poll(first))).toEqual(['four'])
})

test('a cursor is ours also when its answer had read a commit that nobody had told of yet', async () => {
  const desk = await testDesk()
  await desk.put('one')
  await desk.commit('two')
  const first = await desk.poll('')
  expect(desk.texts(first)).toEqual(['one', 'two'])
  expect((await desk.poll(cursorOf(first))).type).toBe('empty')
})

test('a poll without a cursor has the batch before it acknowledged in the store before the next one goes out', async () => {
  const desk = await testDesk({ lazyMs: 60_000 })
  await desk.put('one')
  await desk.poll()
  await desk.commit('two')
  desk.desk.advance([{ ...desk.desk.position(desk.client.id), lastSeq: 2 }])
  await desk.poll()
  const [position] = await desk.store.deliveries.positions()
  expect(position?.settledSeq).toBe(1)
})

test('a parked poll gets what was just committed without reading it again; one that comes later reads', async () => {
  const desk = await testDesk()
  const read = vi.spyOn(desk.store.deliveries, 'read')
  const parked = desk.poll()
  await vi.waitFor(() => expect(desk.desk.parked).toBe(1))
  await desk.putFresh('one', 'two')
  expect(desk.texts(await parked)).toEqual(['one', 'two'])
  expect(read).not.toHaveBeenCalled()
  await desk.putFresh('three')
  expect(desk.texts(await desk.poll())).toEqual(['three'])
  expect(read).toHaveBeenCalledOnce()
})

test('a parked poll that is further behind than what was just committed gets all from the store, in order', async () => {
  const desk = await testDesk()
  const parked = desk.poll()
  await vi.waitFor(() => expect(desk.desk.parked).toBe(1))
  await desk.commit('one')
  await desk.putFresh('two')
  expect(desk.texts(await parked)).toEqual(['one', 'two'])
})

verifies('delivery:cursor:foreign', async () => {
  const desk = await testDesk()
  await desk.put('one')
  for (const cursor of [
    'garbage',
    'v1.00000000.1.1',
    `v1.${desk.store.hubId}.99.1`,
    `v1.${desk.store.hubId}.1.500`,
    '💥'.repeat(100),
  ]) {
    desk.clock.nowMs += 1_000
    expect(desk.texts(await desk.poll(cursor))).toEqual(['one'])
    expect(await stateOf(desk)).toBe('sent')
  }
})

verifies('delivery:cursor:lost', async () => {
  const desk = await testDesk()
  await desk.put('one')
  await desk.poll(cursorOf(await desk.poll('')))
  await desk.put('two')
  const kept = cursorOf(await desk.poll(''))
  desk.clock.nowMs += 1_000
  expect(desk.texts(await desk.poll(''))).toEqual(['two'])
  expect(await stateOf(desk, 1)).toBe('sent')
  const restarted = await desk.reopen()
  restarted.client.echoesCursor = (await desk.store.clients.load()).clients[0]?.echoesCursor ?? false
  restarted.clock.nowMs += 1_000
  expect(restarted.texts(await restarted.poll(''))).toEqual(['two'])
  await restarted.poll(kept)
  expect(await stateOf(restarted, 1)).toBe('acked')
})

verifies('delivery:cursor:never-echoed', async () => {
  const desk = await testDesk()
  await desk.put('one')
  expect(desk.texts(await desk.poll(''))).toEqual(['one'])
  expect((await desk.poll('')).type).toBe('empty')
  expect(await stateOf(desk)).toBe('acked_assumed')
})

verifies(['delivery:cursor:fifth-alone', 'delivery:cursor:eighth-dead'], async () => {
  const desk = await testDesk()
  await desk.put('zero')
  const start = cursorOf(await desk.poll(''))
  await desk.put('poison', 'fine')
  const seen: string[][] = []
  for (let round = 1; round <= 8; round++) {
    seen.push(desk.texts(await desk.poll(start)))
    desk.clock.nowMs += 1_000
  }
  expect(seen.slice(0, 4)).toEqual(Array(4).fill(['poison', 'fine']))
  expect(seen.slice(4, 7)).toEqual(Array(3).fill(['poison']))
  expect(seen[7]).toEqual(['fine'])
  expect(desk.buried).toEqual([{ count: 1, reason: 'undeliverable' }])
  const [letter] = await desk.store.deadLetters.list({ limit: 10 })
  expect(letter).toMatchObject({ reason: 'undeliverable', clientName: 'bot' })
})

verifies('delivery:use:acks-batch', async () => {
  const desk = await testDesk()
  await desk.put('one', 'two')
  const answer = await desk.poll(undefined, { unwritten: true })
  if (answer.type !== 'messages') throw new Error(answer.type)
  const [, second] = answer.batch.messages
  const owner = await desk.store.deliveries.resolveContext(second?.contextToken ?? '')
  if (owner) desk.desk.used(owner)
  answer.batch.lost()
  expect((await desk.poll()).type).toBe('empty')
  expect(await stateOf(desk, 0)).toBe('acked')
  expect(await stateOf(desk, 1)).toBe('acked')
})

verifies('delivery:use:keeps-cursor', async () => {
  const desk = await testDesk()
  await desk.put('zero')
  const start = cursorOf(await desk.poll(''))
  await desk.put('one', 'two')
  const answer = await desk.poll(start)
  if (answer.type !== 'messages') throw new Error(answer.type)
  const owner = await desk.store.deliveries.resolveContext(answer.batch.messages[0]?.contextToken ?? '')
  if (owner) desk.desk.used(owner)
  expect(desk.desk.position(desk.client.id).settledSeq).toBe(3)
  desk.clock.nowMs += 1_000
  expect(desk.texts(await desk.poll(start))).toEqual(['one', 'two'])
})

verifies('delivery:timer:none', async () => {
  const desk = await testDesk()
  await desk.put('one')
  await desk.poll()
  desk.clock.nowMs += 15 * 60_000
  await desk.desk.expire()
  expect((await desk.poll()).type).toBe('empty')
})

verifies(['delivery:poll:newest-wins', 'delivery:poll:none-to-older'], async () => {
  const desk = await testDesk({ holdMs: 5_000 })
  const older = desk.poll()
  const newer = desk.poll()
  expect(await older).toEqual({ type: 'displaced', delayMs: 0 })
  await desk.put('one')
  expect(desk.texts(await newer)).toEqual(['one'])
})

test('displacing again within ten seconds is answered slowly, so that two pollers cannot chase each other', async () => {
  const desk = await testDesk({ holdMs: 5_000 })
  const polls = [desk.poll(), desk.poll(), desk.poll()]
  expect(await polls[0]).toEqual({ type: 'displaced', delayMs: 0 })
  expect(await polls[1]).toEqual({ type: 'displaced', delayMs: 3_000 })
  desk.clock.nowMs += 10_001
  const fourth = desk.poll()
  expect(await polls[2]).toEqual({ type: 'displaced', delayMs: 0 })
  desk.desk.drain()
  expect((await fourth).type).toBe('empty')
})

verifies('delivery:poll:closed-socket', async () => {
  const desk = await testDesk({ holdMs: 5_000 })
  const connection = fakeConnection()
  const older = desk.poll(undefined, { connection })
  await Promise.resolve()
  connection.close()
  const newer = desk.poll()
  expect((await older).type).toBe('gone')
  await desk.put('one')
  expect(desk.texts(await newer)).toEqual(['one'])
})

verifies('delivery:batch:messages', async () => {
  const desk = await testDesk()
  await desk.put(...Array.from({ length: 250 }, (_, index) => `m${index}`))
  const sizes = [await desk.poll(), await desk.poll(), await desk.poll()].map((answer) => desk.texts(answer).length)
  expect(sizes).toEqual([100, 100, 50])
})

verifies('delivery:batch:bytes', async () => {
  const desk = await testDesk()
  const half = 'x'.repeat(600 * 1024)
  await desk.put(half, half, 'y'.repeat(2 * 1024 * 1024), 'z')
  const sizes: number[] = []
  for (let round = 0; round < 4; round++) sizes.push(desk.texts(await desk.poll()).length)
  expect(sizes).toEqual([1, 1, 1, 1])
})

verifies('delivery:batch:order', async () => {
  const desk = await testDesk()
  for (let round = 0; round < 5; round++) await desk.put(`a${round}`, `b${round}`)
  expect(desk.texts(await desk.poll())).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'a4', 'b4'])
})

verifies('delivery:batch:no-gathering', async () => {
  const desk = await testDesk({ holdMs: 5_000 })
  const poll = desk.poll()
  await desk.put('one', 'two')
  const first = await poll
  await desk.put('three')
  expect(desk.texts(first)).toEqual(['one', 'two'])
})

verifies(['delivery:bounds:age', 'delivery:bounds:reason'], async () => {
  const desk = await testDesk()
  await desk.put(...Array.from({ length: 150 }, (_, index) => `old${index}`))
  desk.clock.nowMs += 24 * 60 * 60_000 + 1
  await desk.put('young')
  await desk.desk.expire()
  expect(desk.buried).toEqual([{ count: 150, reason: 'expired' }])
  expect(desk.texts(await desk.poll())).toEqual(['young'])
  expect(await desk.store.deadLetters.list({ reason: 'expired', limit: 1000 })).toHaveLength(150)
})

test('a revoked token ends its poll at once, another token of the client does not', async () => {
  const desk = await testDesk({ holdMs: 5_000 })
  const poll = desk.poll(undefined, { tokenHash: 'old' })
  desk.desk.revoke(desk.client.id, 'other')
  desk.desk.revoke(desk.client.id, 'old')
  expect((await poll).type).toBe('revoked')
})

test('more polls than allowed are refused with a time to come back', async () => {
  const desk = await testDesk({ holdMs: 5_000, maxParked: 1 })
  const second = await desk.store.clients.create({ name: 'two', label: '', fallback: false, tokenHash: 'h2', now: 0 })
  const parked = desk.poll()
  const refused = pollOnce(desk.desk, {
    client: second,
    tokenHash: 'h2',
    cursor: undefined,
    connection: fakeConnection(),
  })
  await expect(refused).rejects.toMatchObject({ code: 'too_many_polls', retryAfterMs: 5_000 })
  desk.desk.drain()
  await parked
})
