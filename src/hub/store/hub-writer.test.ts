import { expect, test } from 'vitest'
import { AppError } from '../../kit/errors.ts'
import type { Outcome } from '../../kit/sqlite/commit-group.ts'
import { NOW, settlement } from './fixtures.contract.ts'
import { hubWriter } from './hub-writer.ts'
import type { Call } from './operations.ts'
import { packSettlements } from './packing.ts'

const ada = { id: 1 }
const discard = (id: number): Call<'discardLetter'> => ({ name: 'discardLetter', input: { id } })

/** A writer whose commits are answered by hand. */
function setUp(lazyMs = 60_000) {
  const groups: Call[][] = []
  const answers: { succeed(): void; fail(index: number): void; break(): void }[] = []
  const writer = hubWriter({
    lazyMs,
    commit(calls) {
      groups.push(calls)
      return new Promise((resolve, reject) => {
        const good = calls.map((): Outcome => ({ ok: true, output: true }))
        answers.push({
          succeed: () => resolve(good),
          fail: (index) => resolve(good.with(index, { ok: false, error: { code: 'bad', message: 'bad' } })),
          break: () => reject(new AppError('store_failed', 'The disk is full.')),
        })
      })
    },
  })
  return { writer, groups, answers }
}

test('lazy changes are merged per client and stand in front of the next group', async () => {
  const { writer, groups, answers } = setUp()
  const acks = (fromSeq: number, toSeq: number) => [{ fromSeq, toSeq, kind: 'cursor' as const, at: NOW + toSeq }]
  writer.settle(settlement(ada, { settledSeq: 1, acks: acks(1, 1) }))
  writer.settle(settlement(ada, { settledSeq: 3, acks: acks(2, 3) }))
  writer.settle(settlement({ id: 2 }, { settledSeq: 9 }))
  writer.touch([{ id: 1, lastSeen: 5, stopped: true }])
  writer.touch([{ id: 1, lastSeen: 4, stopped: false }])
  const run = writer.run(discard(7))

  expect(groups).toEqual([
    [
      {
        name: 'settleQueues',
        input: packSettlements([
          settlement(ada, { settledSeq: 3, acks: acks(1, 3) }),
          settlement({ id: 2 }, { settledSeq: 9 }),
        ]),
      },
      { name: 'touchClients', input: [{ id: 1, lastSeen: 5, stopped: false }] },
      discard(7),
    ],
  ])
  answers[0]?.succeed()
  await expect(run).resolves.toBe(true)
})

test('a flush waits for the lazy changes that are under way, and for those that came after', async () => {
  const { writer, groups, answers } = setUp()
  writer.settle(settlement(ada, { settledSeq: 1 }))
  const first = writer.flush()
  writer.settle(settlement(ada, { settledSeq: 2 }))
  const second = writer.flush()
  expect(groups).toHaveLength(1)

  answers[0]?.succeed()
  await first
  await expect.poll(() => groups.length).toBe(2)
  answers[1]?.succeed()
  await second
  await writer.flush()
  expect(groups).toHaveLength(2)
})

test('a flush for one client waits for its own settlements only, wherever they are', async () => {
  const { writer, groups, answers } = setUp()
  await writer.flush(1)
  writer.settle(settlement(ada, { settledSeq: 1 }))
  const run = writer.run(discard(1))
  writer.settle(settlement({ id: 2 }, { settledSeq: 1 }))
  await writer.flush(3)
  let isDone = false
  const underWay = writer.flush(1).then(() => {
    isDone = true
  })
  await Promise.resolve()
  expect(isDone).toBe(false)
  answers[0]?.succeed()
  await Promise.all([run, underWay])
  await writer.flush(1)
  expect(groups).toHaveLength(1)

  const waiting = writer.flush(2)
  expect(groups).toHaveLength(2)
  answers[1]?.break()
  await expect(waiting).rejects.toMatchObject({ code: 'store_failed' })
  const again = writer.flush(2)
  answers[2]?.succeed()
  await again
})

test('lazy changes of a commit that failed go with the next, under what came since', async () => {
  const { writer, groups, answers } = setUp()
  writer.settle(settlement(ada, { settledSeq: 1, sentSeq: 8, failed: [{ fromSeq: 2, toSeq: 2 }] }))
  const run = writer.run(discard(1))
  writer.settle(settlement(ada, { settledSeq: 5, sentSeq: 6 }))
  const flush = writer.flush()
  answers[0]?.break()

  await expect(run).rejects.toMatchObject({ code: 'store_failed' })
  await expect.poll(() => groups.length).toBe(2)
  expect(groups[1]).toEqual([
    {
      name: 'settleQueues',
      input: packSettlements([settlement(ada, { settledSeq: 5, sentSeq: 6, failed: [{ fromSeq: 2, toSeq: 2 }] })]),
    },
  ])
  answers[1]?.succeed()
  await flush
})

test('a flush tells when a lazy change was refused, and that change is not tried again', async () => {
  const { writer, groups, answers } = setUp()
  writer.settle(settlement(ada, { settledSeq: 1 }))
  const run = writer.run(discard(1))
  writer.settle(settlement(ada, { settledSeq: 2 }))
  answers[0]?.succeed()
  await run
  const flush = writer.flush()
  await expect.poll(() => groups.length).toBe(2)
  answers[1]?.fail(0)

  await expect(flush).rejects.toMatchObject({ name: 'AppError', code: 'bad' })
  await writer.flush()
  expect(groups).toHaveLength(2)
})

test('lazy changes go out by themselves, also when their time comes while a commit is under way', async () => {
  const { writer, groups, answers } = setUp(1)
  const run = writer.run(discard(1))
  writer.settle(settlement(ada, { settledSeq: 1 }))
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(groups).toHaveLength(1)
  answers[0]?.succeed()
  await run

  await expect.poll(() => groups.length).toBe(2)
  answers[1]?.succeed()
})

test('a writer that drains takes nothing more', async () => {
  const { writer, groups, answers } = setUp()
  const run = writer.run(discard(1))
  const drained = writer.drain()
  await expect(writer.run(discard(2))).rejects.toMatchObject({ code: 'store_failed' })
  writer.settle(settlement(ada, { settledSeq: 1 }))
  writer.touch([{ id: 1, lastSeen: 1, stopped: false }])
  answers[0]?.succeed()

  await run
  await drained
  expect(groups).toHaveLength(1)
})
