import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openBacklog } from './backlog.ts'
import type { Delivery, QueuePosition } from './model.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function setUp() {
  const told: { last: [number, number][]; seqs: [number, number[]][] }[] = []
  const backlog = openBacklog({
    holdMs: 50,
    tell: (positions, fresh) =>
      told.push({
        last: positions.map(({ clientId, lastSeq }) => [clientId, lastSeq]),
        seqs: [...fresh].map(([clientId, deliveries]) => [clientId, deliveries.map(({ seq }) => seq)]),
      }),
  })
  const store = (clientId: number, seq: number, isFull: boolean, bytes = 10) => {
    const delivery: Delivery = {
      seq,
      messageId: seq,
      contextToken: `ctx_${seq}`,
      failures: 0,
      queuedAt: 0,
      bytes,
      wireId: String(seq),
      spec: '{}',
      raw: '{}',
    }
    backlog.stored([position(clientId, seq)], new Map([[clientId, [delivery]]]), isFull)
  }
  return { backlog, told, store }
}

function position(clientId: number, lastSeq: number): QueuePosition {
  return { clientId, lastSeq, sentSeq: 0, settledSeq: 0, pendingBytes: 0 }
}

test('a few messages are told at once', () => {
  const { told, store } = setUp()
  store(1, 1, false)
  expect(told).toEqual([{ last: [[1, 1]], seqs: [[1, [1]]] }])
  expect(vi.getTimerCount()).toBe(0)
})

test('of a backlog several batches are told together, in order, and not later than the hold', () => {
  const { told, store } = setUp()
  store(1, 1, true)
  vi.advanceTimersByTime(30)
  store(2, 1, true)
  store(1, 2, true)
  expect(told).toEqual([])
  vi.advanceTimersByTime(20)
  expect(told).toEqual([
    {
      last: [
        [1, 2],
        [2, 1],
      ],
      seqs: [
        [1, [1, 2]],
        [2, [1]],
      ],
    },
  ])
})

test('its end is told with all that was held back', () => {
  const { told, store } = setUp()
  store(1, 1, true)
  store(1, 2, false)
  expect(told).toEqual([{ last: [[1, 2]], seqs: [[1, [1, 2]]] }])
  vi.advanceTimersByTime(100)
  expect(told).toHaveLength(1)
})

test('large messages are not held in memory', () => {
  const { told, store } = setUp()
  store(1, 1, true, 5_000_000)
  expect(told).toHaveLength(1)
})

test('what is held back can be asked for, once', () => {
  const { backlog, told, store } = setUp()
  store(1, 1, true)
  backlog.release()
  backlog.release()
  expect(told).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('many clients are told in several turns, in order', () => {
  const { backlog, told, store } = setUp()
  for (let client = 1; client <= 40; client += 1) store(client, 1, true)
  backlog.release()
  expect(told.map(({ last }) => last.length)).toEqual([16])
  store(1, 2, false)
  vi.runAllTimers()
  expect(told.map(({ last }) => last.length)).toEqual([16, 16, 9])
  expect(told.flatMap(({ last }) => last).filter(([clientId]) => clientId === 1)).toEqual([
    [1, 1],
    [1, 2],
  ])
})
