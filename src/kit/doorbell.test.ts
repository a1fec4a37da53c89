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

test('in memory a ring is heard by those who listened when it rang, not by who began because of it', () => {
  const doorbell = memoryDoorbell()
  let late = 0
  const listenAgain = () => {
    late += 1
    if (late < 100) doorbell.listen('ann', listenAgain)
  }
  doorbell.listen('ann', () => {})
  doorbell.listen('ann', listenAgain)
  doorbell.ring('ann')
  expect(late).toBe(1)
})
