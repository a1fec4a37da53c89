import { expect, test } from 'vitest'
import { leaseContract } from './lease.contract.ts'
import { memoryLease } from './lease.ts'

const LIFE_MS = 100

leaseContract('memory', async () => {
  let time = 0
  const lease = memoryLease({ now: () => time, lifeMs: LIFE_MS })
  return {
    one: lease,
    other: lease,
    async runOut() {
      time += LIFE_MS
    },
  }
})

test('a grant fences whoever held it', async () => {
  const lease = memoryLease({ now: () => 0, lifeMs: LIFE_MS })
  const first = lease.grant('a')
  const second = lease.grant('a')
  expect([lease.holds(first), lease.holds(second)]).toEqual([false, true])
  lease.drop(first)
  expect(lease.holds(second)).toBe(true)
  lease.drop(second)
  expect(await lease.claim('a')).not.toBeNull()
})
