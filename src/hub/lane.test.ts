import { afterEach, expect, test, vi } from 'vitest'
import { type Gate, gate } from '../../test/support/gate.ts'
import { soon } from '../../test/support/soon.ts'
import { verifies } from '../../test/support/verifies.ts'
import { type Lane, type LaneJob, openLane } from './lane.ts'

afterEach(() => void vi.useRealTimers())

/** Jobs that note when they start and wait at a gate, if they have one. */
function recorder(lane: Lane) {
  const started: string[] = []
  const put = (name: string, { steps = 1, at }: { steps?: number; at?: Gate } = {}) => {
    const [sender = '', conversation = ''] = name.split('/')
    let left = steps
    const job: LaneJob = {
      sender,
      conversation,
      async step() {
        started.push(name)
        await at?.pass()
        left -= 1
        return left > 0
      },
    }
    return lane.enqueue(job)
  }
  return { started, put }
}

verifies('sends:lane:paced', async () => {
  vi.useFakeTimers()
  const lane = openLane({ pacingMs: 1_500, maxInFlight: 32, now: Date.now })
  const { started, put } = recorder(lane)
  const from = Date.now()
  const times: number[] = []
  for (const name of ['a/u1/1', 'b/u2/1', 'a/u3/1']) put(name, { steps: 2 })
  for (let seen = 0; seen < 6; ) {
    if (started.length > seen) times.push(Date.now() - from)
    if (started.length > seen) seen += 1
    else await vi.advanceTimersByTimeAsync(10)
  }
  // Whoever sends, and whatever to: never two calls within the pause.
  expect(started).toHaveLength(6)
  for (const [index, at] of times.entries()) expect(Math.abs(at - index * 1_500)).toBeLessThanOrEqual(10)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(started).toHaveLength(6)
})

test('with a pause a call that takes long is not overtaken', async () => {
  vi.useFakeTimers()
  const lane = openLane({ pacingMs: 100, maxInFlight: 32, now: Date.now })
  const { started, put } = recorder(lane)
  const slow = gate()
  put('a/u1/1', { at: slow })
  put('b/u2/1')
  await vi.advanceTimersByTimeAsync(5_000)
  expect(started).toEqual(['a/u1/1'])
  slow.open()
  await vi.advanceTimersByTimeAsync(0)
  expect(started).toEqual(['a/u1/1', 'b/u2/1'])
})

test('without a pause as many calls run at once as are allowed, one per conversation', async () => {
  const lane = openLane({ pacingMs: 0, maxInFlight: 3, now: Date.now })
  const { started, put } = recorder(lane)
  const held = gate()
  for (const name of ['a/u1/1', 'a/u1/2', 'a/u2/1', 'b/u1/1', 'b/u3/1', 'b/u4/1']) put(name, { at: held })
  await held.reached
  expect(new Set(started.map((name) => name.split('/')[1])).size).toBe(3)
  expect(started).toHaveLength(3)
  expect(lane.size).toBe(3)
  held.open()
  await soon(() => expect(started).toHaveLength(6))
  expect(started.indexOf('a/u1/1')).toBeLessThan(started.indexOf('a/u1/2'))
})

verifies('sends:lane:fair', async () => {
  const lane = openLane({ pacingMs: 0, maxInFlight: 1, now: Date.now })
  const { started, put } = recorder(lane)
  const first = gate()
  put('greedy/u0/0', { at: first })
  for (let n = 1; n <= 50; n += 1) put(`greedy/u${n % 5}/${n}`)
  put('modest/u9/1')
  put('modest/u0/2')
  put('other/u8/1')
  first.open()
  await soon(() => expect(started).toHaveLength(54))
  // Turns go round: each of the others waits for one of the greedy one's messages at most.
  expect(started.indexOf('modest/u9/1')).toBeLessThanOrEqual(3)
  expect(started.indexOf('other/u8/1')).toBeLessThanOrEqual(3)
  expect(started.indexOf('modest/u0/2')).toBeLessThanOrEqual(6)
})

verifies('sends:lane:fifo', async () => {
  const lane = openLane({ pacingMs: 0, maxInFlight: 4, now: Date.now })
  const { started, put } = recorder(lane)
  for (let n = 0; n < 60; n += 1) put(`${n % 2 ? 'a' : 'b'}/u${n % 3}/${n}`, { steps: 1 + (n % 3) })
  await soon(() => expect(started).toHaveLength(120))
  for (const sender of ['a', 'b']) {
    for (const conversation of ['u0', 'u1', 'u2']) {
      const numbers = started
        .filter((name) => name.startsWith(`${sender}/${conversation}/`))
        .map((name) => Number(name.split('/')[2]))
      expect(numbers).toEqual([...numbers].sort((x, y) => x - y))
    }
  }
})

verifies(
  'sends:lane:fifo',
  'a message in several parts is not cut into by another client in the same chat',
  async () => {
    const lane = openLane({ pacingMs: 0, maxInFlight: 4, now: Date.now })
    const { started, put } = recorder(lane)
    put('a/u/long', { steps: 3 })
    put('b/u/short')
    put('b/v/elsewhere')
    await soon(() => expect(started).toHaveLength(5))
    expect(started.filter((name) => name.includes('/u/'))).toEqual(['a/u/long', 'a/u/long', 'a/u/long', 'b/u/short'])
  },
)

test('a job that is taken out never runs, is not counted, and lets others pass at once', async () => {
  vi.useFakeTimers()
  const lane = openLane({ pacingMs: 1_000, maxInFlight: 1, now: Date.now })
  const { started, put } = recorder(lane)
  put('a/u/1')
  const leavers = Array.from({ length: 100 }, (_, n) => put(`a/u/${n + 2}`))
  put('a/u/last')
  expect(lane.waiting('a')).toBe(101)
  for (const leave of leavers) leave()
  for (const leave of leavers) leave()
  expect([lane.waiting('a'), lane.size]).toEqual([1, 1])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(started).toEqual(['a/u/1', 'a/u/last'])
})

test('taking out a job between two of its steps frees its conversation', async () => {
  vi.useFakeTimers()
  const lane = openLane({ pacingMs: 1_000, maxInFlight: 1, now: Date.now })
  const { started, put } = recorder(lane)
  const leave = put('a/u/long', { steps: 3 })
  put('b/u/short')
  await vi.advanceTimersByTimeAsync(0)
  leave()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(started).toEqual(['a/u/long', 'b/u/short'])
  expect(lane.size).toBe(0)
})

test('nothing starts while the service wants silence, and everything starts after it', async () => {
  vi.useFakeTimers()
  const lane = openLane({ pacingMs: 0, maxInFlight: 8, now: Date.now })
  const { started, put } = recorder(lane)
  lane.holdUntil(Date.now() + 1_000)
  put('a/u/1')
  put('b/v/1')
  lane.holdUntil(Date.now() + 500)
  await vi.advanceTimersByTimeAsync(999)
  expect(started).toEqual([])
  lane.holdUntil(Date.now() + 2_000)
  await vi.advanceTimersByTimeAsync(1_999)
  expect(started).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(started).toHaveLength(2)
})

test('a stopped lane lets its call end and starts nothing more', async () => {
  const lane = openLane({ pacingMs: 0, maxInFlight: 1, now: Date.now })
  const { started, put } = recorder(lane)
  const call = gate()
  put('a/u/1', { at: call, steps: 2 })
  put('a/u/2')
  let stopped = false
  const stopping = lane.stop().then(() => {
    stopped = true
  })
  await call.reached
  expect(stopped).toBe(false)
  call.open()
  await stopping
  put('b/v/1')
  expect(started).toEqual(['a/u/1'])
  await expect(lane.stop()).resolves.toBeUndefined()
})
