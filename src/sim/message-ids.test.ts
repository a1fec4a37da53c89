import { expect, test } from 'vitest'
import { messageIds } from './message-ids.ts'

test('ids grow, pass 2^53, and are never what a double holds', () => {
  const next = messageIds(Date.now)
  let last = 0n
  for (let count = 0; count < 1_000; count += 1) {
    const id = next()
    expect(BigInt(id)).toBeGreaterThan(last)
    expect(BigInt(Number(id))).not.toBe(BigInt(id))
    last = BigInt(id)
  }
  expect(last).toBeGreaterThan(7_000_000_000_000_000_000n)
  expect(last).toBeLessThan(2n ** 63n)
})

test('a process that starts a millisecond later gives only greater ids', () => {
  const before = messageIds(() => 1_787_000_000_000)
  const old = Array.from({ length: 1_000 }, before)
  const fresh = messageIds(() => 1_787_000_000_001)()
  for (const id of old) expect(BigInt(fresh)).toBeGreaterThan(BigInt(id))
})
