import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { type Doorbell, memoryDoorbell } from './doorbell.ts'
import { nextBatch, tail } from './tail.ts'

interface Entry {
  seq: number
}

/** A log in memory that counts its reads and rings at every append, unless told not to. */
function testLog() {
  const doorbell = memoryDoorbell()
  const entries: Entry[] = []
  let reads = 0
  return {
    doorbell,
    append(ring = true) {
      entries.push({ seq: entries.length + 1 })
      if (ring) doorbell.ring('ann')
    },
    read(afterSeq: number, limit = 100): Entry[] {
      reads += 1
      return entries.filter(({ seq }) => seq > afterSeq).slice(0, limit)
    },
    reads: () => reads,
  }
}

describe('nextBatch', () => {
  test('gives what is there already', async () => {
    const log = testLog()
    log.append()
    const wait = nextBatch(log.doorbell, 'ann', () => log.read(0))
    expect(await wait.batch).toEqual([{ seq: 1 }])
  })

  test('waits for a ring when there is nothing, and reads no more often than it rings', async () => {
    const log = testLog()
    const wait = nextBatch(log.doorbell, 'ann', () => log.read(0))
    await Promise.resolve()
    log.doorbell.ring('bob')
    log.append()
    expect(await wait.batch).toEqual([{ seq: 1 }])
    expect(log.reads()).toBe(2)
  })

  test('goes on waiting after a ring with nothing behind it', async () => {
    const log = testLog()
    const wait = nextBatch(log.doorbell, 'ann', () => log.read(0))
    await Promise.resolve()
    log.doorbell.ring('ann')
    await Promise.resolve()
    log.append()
    expect(await wait.batch).toEqual([{ seq: 1 }])
  })

  test('listens before it reads for the first time', () => {
    const doorbell = memoryDoorbell()
    const order: string[] = []
    const listening: Doorbell = {
      ...doorbell,
      add(key, listener) {
        order.push('listen')
        doorbell.add(key, listener)
      },
    }
    nextBatch(listening, 'ann', () => {
      order.push('read')
      return []
    }).stop()
    expect(order).toEqual(['listen', 'read'])
  })

  test('does not miss what is appended while it reads', async () => {
    const log = testLog()
    const reading = gate()
    const wait = nextBatch(log.doorbell, 'ann', async () => {
      const seen = log.read(0)
      await reading.pass()
      return seen
    })
    await reading.reached
    log.append()
    reading.open()
    expect(await wait.batch).toEqual([{ seq: 1 }])
    expect(log.reads()).toBe(2)
  })

  test('reads once more, not many times, for many rings during a read', async () => {
    const log = testLog()
    const reading = gate()
    const wait = nextBatch(log.doorbell, 'ann', async () => {
      const seen = log.read(0)
      await reading.pass()
      return seen
    })
    await reading.reached
    for (let ring = 0; ring < 50; ring++) log.doorbell.ring('ann')
    log.append()
    reading.open()
    await wait.batch
    expect(log.reads()).toBe(2)
  })

  test('reads once more, and then waits, for a ring during a read with nothing behind it', async () => {
    const log = testLog()
    const reading = gate()
    const wait = nextBatch(log.doorbell, 'ann', async () => {
      const seen = log.read(0)
      if (log.reads() > 10) throw new Error('it reads without end')
      await reading.pass()
      return seen
    })
    await reading.reached
    log.doorbell.ring('ann')
    reading.open()
    await new Promise(setImmediate)
    expect(log.reads()).toBe(2)
    log.append()
    expect(await wait.batch).toEqual([{ seq: 1 }])
  })

  test.each([
    ['it has its batch', (): Entry[] => [{ seq: 1 }]],
    ['its read fails', (): Promise<Entry[]> => Promise.reject(new Error('disk'))],
    ['it is stopped', (): Entry[] => []],
  ])('listens no longer once %s', async (_when, read) => {
    let listeners = 0
    let listened = 0
    const doorbell: Doorbell = {
      ...memoryDoorbell(),
      add() {
        listeners += 1
        listened += 1
      },
      remove() {
        listeners -= 1
      },
    }
    const wait = nextBatch(doorbell, 'ann', read)
    const ended = wait.batch.catch(() => {})
    await new Promise(setImmediate)
    wait.stop()
    await ended
    expect([listened, listeners]).toEqual([1, 0])
  })

  test('stopped, it gives nothing and reads nothing more', async () => {
    const log = testLog()
    const wait = nextBatch(log.doorbell, 'ann', () => log.read(0))
    wait.stop()
    log.append()
    expect(await wait.batch).toBeUndefined()
    expect(log.reads()).toBe(1)
  })

  test('stopped during a read, it does not give what the read brings', async () => {
    const log = testLog()
    log.append()
    const reading = gate()
    const wait = nextBatch(log.doorbell, 'ann', async () => {
      await reading.pass()
      return log.read(0)
    })
    await reading.reached
    wait.stop()
    reading.open()
    expect(await wait.batch).toBeUndefined()
  })

  test('stopping late or twice changes nothing', async () => {
    const log = testLog()
    log.append()
    const wait = nextBatch(log.doorbell, 'ann', () => log.read(0))
    const batch = await wait.batch
    wait.stop()
    wait.stop()
    expect(await wait.batch).toBe(batch)
  })

  test.each([
    ['thrown', () => Promise.reject(new Error('disk'))],
    [
      'thrown at once',
      (): Entry[] => {
        throw new Error('disk')
      },
    ],
  ])('passes on an error that is %s by the read, and stops listening', async (_how, read) => {
    const doorbell = memoryDoorbell()
    let reads = 0
    const wait = nextBatch(doorbell, 'ann', () => {
      reads += 1
      return read()
    })
    await expect(wait.batch).rejects.toThrow('disk')
    doorbell.ring('ann')
    expect(reads).toBe(1)
  })
})

describe('tail', () => {
  test('gives every batch after where it starts', async () => {
    const log = testLog()
    for (let count = 0; count < 5; count++) log.append()
    const stop = new AbortController()
    const seen: number[] = []
    const read = (after: number) => log.read(after, 2)
    for await (const batch of tail(log.doorbell, 'ann', read, { afterSeq: 1, signal: stop.signal })) {
      seen.push(...batch.map(({ seq }) => seq))
      if (seen.length === 4) stop.abort()
    }
    expect(seen).toEqual([2, 3, 4, 5])
  })

  test('reads nothing when its signal has aborted before', async () => {
    const log = testLog()
    log.append()
    const batches = tail(log.doorbell, 'ann', (after) => log.read(after), { afterSeq: 0, signal: AbortSignal.abort() })
    expect(await batches.next()).toEqual({ done: true, value: undefined })
    expect(log.reads()).toBe(0)
  })

  test('ends while it waits when its signal aborts', async () => {
    const log = testLog()
    const stop = new AbortController()
    const batches = tail(log.doorbell, 'ann', (after) => log.read(after), { afterSeq: 0, signal: stop.signal })
    const next = batches.next()
    await Promise.resolve()
    stop.abort()
    expect(await next).toEqual({ done: true, value: undefined })
  })

  test('ends when the signal aborts inside of a read', async () => {
    const stop = new AbortController()
    const read = (): Entry[] => {
      stop.abort()
      return []
    }
    const batches = tail(memoryDoorbell(), 'ann', read, { afterSeq: 0, signal: stop.signal })
    expect(await batches.next()).toEqual({ done: true, value: undefined })
  })

  test('stops listening when its reader leaves', async () => {
    const log = testLog()
    log.append()
    const { signal } = new AbortController()
    for await (const batch of tail(log.doorbell, 'ann', (after) => log.read(after), { afterSeq: 0, signal })) {
      expect(batch).toHaveLength(1)
      break
    }
    log.append()
    expect(log.reads()).toBe(1)
  })

  test('sees every record exactly once and in order, however appends, rings, reads and readers interleave', async () => {
    const step = fc.constantFrom('append', 'append unrung', 'ring', 'pass')
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(step, { maxLength: 40 }),
        fc.nat(3),
        async (scheduler, steps, limit) => {
          const log = testLog()
          const stop = new AbortController()
          const seen: number[] = []
          const read = async (after: number) => {
            const found = log.read(after, limit + 1)
            await scheduler.schedule(Promise.resolve(), 'read')
            return found
          }
          const reader = (async () => {
            for await (const batch of tail(log.doorbell, 'ann', read, { afterSeq: 0, signal: stop.signal })) {
              await scheduler.schedule(Promise.resolve(), 'consume')
              seen.push(...batch.map(({ seq }) => seq))
            }
          })()
          for (const what of steps) {
            if (what === 'ring') log.doorbell.ring('ann')
            else if (what !== 'pass') log.append(what === 'append')
            else if (scheduler.count() > 0) await scheduler.waitOne()
          }
          log.append()
          const all = log.read(0, 1_000).map(({ seq }) => seq)
          await scheduler.waitIdle()
          stop.abort()
          await reader
          expect(seen).toEqual(all)
        },
      ),
    )
  })
})
