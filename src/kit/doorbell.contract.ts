import { describe, expect, test } from 'vitest'
import type { Doorbell } from './doorbell.ts'

/** What every doorbell promises. A ring may be heard late, so each expectation is waited for. */
export function doorbellContract(name: string, open: () => Promise<Doorbell>): void {
  describe(`doorbell (${name})`, () => {
    test('a listener hears every ring of its key', async () => {
      const { heard, hear } = counter()
      const doorbell = await open()
      doorbell.listen('ann', hear)
      doorbell.ring('ann')
      await heard(1)
      doorbell.ring('ann')
      await heard(2)
    })

    test('all listeners of a key hear a ring', async () => {
      const first = counter()
      const second = counter()
      const third = counter()
      const doorbell = await open()
      for (const { hear } of [first, second, third]) doorbell.listen('ann', hear)
      doorbell.ring('ann')
      await Promise.all([first.heard(1), second.heard(1), third.heard(1)])
    })

    test('a ring of another key is not heard', async () => {
      const ann = counter()
      const bob = counter()
      const doorbell = await open()
      doorbell.listen('ann', ann.hear)
      doorbell.listen('bob', bob.hear)
      doorbell.ring('bob')
      await bob.heard(1)
      expect(ann.count()).toBe(0)
    })

    test('keys are told apart to the letter', async () => {
      const plain = counter()
      const doorbell = await open()
      const others = ['', 'Ann', 'ann ', 'ann:1', '__proto__', 'constructor'].map((key) => {
        const one = counter()
        doorbell.listen(key, one.hear)
        return { key, ...one }
      })
      doorbell.listen('ann', plain.hear)
      for (const { key } of others) doorbell.ring(key)
      await Promise.all(others.map(({ heard }) => heard(1)))
      expect(plain.count()).toBe(0)
    })

    test('who stopped listening hears nothing more, and the others do', async () => {
      const gone = counter()
      const stays = counter()
      const doorbell = await open()
      const unlisten = doorbell.listen('ann', gone.hear)
      doorbell.listen('ann', stays.hear)
      unlisten()
      unlisten()
      doorbell.ring('ann')
      await stays.heard(1)
      expect(gone.count()).toBe(0)
    })

    test('one function may listen twice, and each listening ends by itself', async () => {
      const { heard, hear, count } = counter()
      const last = counter()
      const doorbell = await open()
      const unlisten = doorbell.listen('ann', hear)
      doorbell.listen('ann', hear)
      doorbell.ring('ann')
      await heard(2)
      unlisten()
      doorbell.listen('ann', last.hear)
      doorbell.ring('ann')
      await last.heard(1)
      expect(count()).toBe(3)
    })

    test('who is added hears every ring until it is removed, beside those who listen', async () => {
      const added = counter()
      const other = counter()
      const doorbell = await open()
      const listener = { onRing: added.hear }
      doorbell.add('ann', listener)
      doorbell.ring('ann')
      await added.heard(1)
      const unlisten = doorbell.listen('ann', other.hear)
      doorbell.ring('ann')
      await Promise.all([added.heard(2), other.heard(1)])
      doorbell.remove('ann', listener)
      doorbell.remove('ann', listener)
      doorbell.ring('ann')
      await other.heard(2)
      expect(added.count()).toBe(2)
      unlisten()
      doorbell.add('ann', listener)
      doorbell.ring('ann')
      await added.heard(3)
    })

    test('listening can start and stop in the middle of a ring', async () => {
      const late = counter()
      const stopped = counter()
      const doorbell = await open()
      let unlistenStopped = () => {}
      const inTheMiddle = counter(() => {
        unlistenStopped()
        doorbell.listen('ann', late.hear)
      })
      doorbell.listen('ann', inTheMiddle.hear)
      unlistenStopped = doorbell.listen('ann', stopped.hear)
      doorbell.ring('ann')
      await inTheMiddle.heard(1)
      expect(stopped.count()).toBe(0)
      doorbell.ring('ann')
      await late.heard(1)
      expect(stopped.count()).toBe(0)
    })

    test('a ring that nobody hears does no harm', async () => {
      const { heard, hear } = counter()
      const doorbell = await open()
      doorbell.ring('ann')
      doorbell.listen('ann', hear)()
      doorbell.ring('ann')
      doorbell.listen('ann', hear)
      doorbell.ring('ann')
      await heard(1)
    })
  })
}

/** Counts rings; `heard(n)` resolves at the n-th. */
function counter(then: () => void = () => {}) {
  let rings = 0
  const waiting: { rings: number; resolve: () => void }[] = []
  return {
    count: () => rings,
    hear: () => {
      rings += 1
      then()
      for (const wait of waiting) if (rings >= wait.rings) wait.resolve()
    },
    heard: (count: number) =>
      new Promise<void>((resolve) => {
        if (rings >= count) resolve()
        else waiting.push({ rings: count, resolve })
      }),
  }
}
