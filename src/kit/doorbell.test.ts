import { expect, test } from 'vitest'
import { doorbellContract } from './doorbell.contract.ts'
import { memoryDoorbell } from './doorbell.ts'

doorbellContract('memory', async () => memoryDoorbell())

test('in memory a ring is heard before ring() returns', () => {
  const doorbell = memoryDoorbell()
  let rings = 0
  doorbell.listen('ann', () => {
    rings += 1
  })
  doorbell.ring('ann')
  expect(rings).toBe(1)
})
