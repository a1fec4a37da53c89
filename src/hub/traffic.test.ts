import { expect, test } from 'vitest'
import { createTraffic } from './traffic.ts'

test('counts stand in their minute, move on with the time, and fall off after half an hour', () => {
  let nowMs = 60_000 * 1_000
  const traffic = createTraffic(() => nowMs)
  expect(traffic.read(1).received).toEqual(new Array(30).fill(0))
  traffic.count(1, 'received')
  traffic.count(1, 'received', 2)
  traffic.count(1, 'sent')
  expect(traffic.read(1).received.slice(-2)).toEqual([0, 3])
  nowMs += 60_000
  traffic.count(1, 'received')
  expect(traffic.read(1).received.slice(-3)).toEqual([0, 3, 1])
  expect(traffic.read(1).sent.slice(-2)).toEqual([1, 0])
  expect(traffic.read(2).sent.every((number) => number === 0)).toBe(true)
  nowMs += 29 * 60_000
  expect(traffic.read(1).received[0]).toBe(1)
  nowMs += 60_000
  expect(traffic.read(1)).toEqual({ received: new Array(30).fill(0), sent: new Array(30).fill(0) })
  traffic.count(1, 'sent')
  // A clock that was set back loses nothing.
  nowMs -= 5 * 60_000
  expect(traffic.read(1).sent.at(-1)).toBe(1)
  traffic.forget(1)
  expect(traffic.read(1).sent.at(-1)).toBe(0)
})
