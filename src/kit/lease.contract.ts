import { describe, expect, test } from 'vitest'
import type { Lease } from './lease.ts'

/** Two owners of one set of leases, and a way to let time pass for a claim that nobody renews. */
export interface LeaseBench {
  one: Lease
  other: Lease
  /** Resolves when a claim that was last renewed before has run out. */
  runOut(): Promise<void>
}

/** What every lease promises. */
export function leaseContract(name: string, open: () => Promise<LeaseBench>): void {
  describe(`lease (${name})`, () => {
    test('is given to one at a time, and to another once it is given back, with a greater generation', async () => {
      const { one, other } = await open()
      const first = await one.claim('a')
      expect(first).toMatchObject({ key: 'a' })
      expect(await other.claim('a')).toBeNull()
      expect(await one.claim('a')).toBeNull()
      if (first) await one.release(first)
      const second = await other.claim('a')
      expect(second?.generation).toBeGreaterThan(first?.generation ?? Number.POSITIVE_INFINITY)
    })

    test('of many that ask at once exactly one gets it', async () => {
      const { one, other } = await open()
      const asked = Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? one : other).claim('a'))
      expect((await Promise.all(asked)).filter((claim) => claim !== null)).toHaveLength(1)
    })

    test('of one thing says nothing of another', async () => {
      const { one, other } = await open()
      expect(await one.claim('a')).not.toBeNull()
      expect(await other.claim('b')).not.toBeNull()
    })

    test('that is not renewed runs out; its holder is told, and takes nothing from the next one', async () => {
      const { one, other, runOut } = await open()
      const first = await one.claim('a')
      if (first === null) throw new Error('not claimed')
      expect(await one.renew([first])).toEqual([])
      await runOut()
      const second = await other.claim('a')
      if (second === null) throw new Error('not claimed')
      expect(second.generation).toBeGreaterThan(first.generation)
      expect(await one.renew([first])).toEqual([first])
      await one.release(first)
      expect(await other.renew([second])).toEqual([])
      expect(await one.claim('a')).toBeNull()
    })

    test('that ran out is lost though nobody else has claimed it', async () => {
      const { one, runOut } = await open()
      const claim = await one.claim('a')
      if (claim === null) throw new Error('not claimed')
      await runOut()
      expect(await one.renew([claim])).toEqual([claim])
    })
  })
}
