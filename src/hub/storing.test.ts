import { expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../test/support/gate.ts'
import { soon } from '../../test/support/soon.ts'
import { verifies } from '../../test/support/verifies.ts'
import { silentLog } from '../kit/log.ts'
import { INBOX_PLACES, type InboxEntry } from './store/port.ts'
import { type AccountInbox, BACKLOG_BATCH, openStoring } from './storing.ts'
import type { UpstreamBatch } from './upstream/port.ts'

/** A batch with more behind it, whose messages are numbered on from `first`. */
const full = (cursor: string, first = 0): UpstreamBatch => ({
  cursor,
  messages: Array.from({ length: BACKLOG_BATCH }, (_, index) => String(first + index)),
})

interface Options {
  store?: (messages: string[]) => Promise<void>
  inbox?: Partial<AccountInbox>
}

function startStoring({ store = async () => {}, inbox = {} }: Options = {}) {
  const stored: { cursor: string | null | undefined; count: number }[] = []
  const kept: Omit<InboxEntry, 'source'>[] = []
  let clears = 0
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const storing = openStoring(
    {
      intake: {
        read: (batch) => ({ ...batch, at: 0, inbounds: [] }),
        async take(batches) {
          const messages = batches.flatMap((batch) => batch.messages)
          await store(messages)
          if (batches.length > 0) stored.push({ cursor: batches.at(-1)?.cursor, count: messages.length })
        },
      },
      inbox: {
        keep: async (entry) => void kept.push(entry),
        due: async () => [],
        async clear() {
          clears += 1
        },
        ...inbox,
      },
      link: { pollCompleted: () => {}, failed: () => {} },
      now: Date.now,
      log: silentLog,
    },
    stop.signal,
  )
  return { storing, stored, kept, clears: () => clears, stop: () => stop.abort() }
}

verifies(
  'delivery:inbox:kept-first',
  'with more behind it the next may be asked for when an answer is kept',
  async () => {
    const commit = gate()
    const { storing, stored, kept } = startStoring({ store: commit.pass })
    await storing.take(full('c1'), '')
    expect([kept.map(({ after, cursor }) => [after, cursor]), stored]).toEqual([[['', 'c1']], []])
    commit.open()
    await storing.ended()
    expect(stored).toEqual([{ cursor: 'c1', count: BACKLOG_BATCH }])
  },
)

verifies('delivery:inbox:kept-first', 'what has gathered is stored together, in its order', async () => {
  const commit = gate()
  const order: string[] = []
  const { storing, stored } = startStoring({
    async store(messages) {
      await commit.pass()
      order.push(...messages)
    },
  })
  const most = INBOX_PLACES / 2
  const numbers = Array.from({ length: most + 2 }, (_, index) => index + 1)
  for (const number of numbers) await storing.take(full(`c${number}`, number * 1_000), `c${number - 1}`)
  commit.open()
  await storing.ended()
  expect(stored).toEqual([
    { cursor: `c${most}`, count: most * BACKLOG_BATCH },
    { cursor: `c${most + 2}`, count: 2 * BACKLOG_BATCH },
  ])
  expect(order).toEqual(numbers.flatMap((number) => full('', number * 1_000).messages))
})

test('others are waited for only as long as they follow at once, and not at the end', async () => {
  const { storing, stored } = startStoring()
  await storing.take(full('c1'), '')
  await storing.take(full('c2'), 'c1')
  await soon(() => expect(stored).toEqual([{ cursor: 'c2', count: 2 * BACKLOG_BATCH }]))

  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  await storing.take(full('c3'), 'c2')
  await storing.rest()
  await storing.take(full('c4'), 'c3')
  await storing.take({ cursor: 'c5', messages: ['small'] }, 'c4')
  expect(stored.slice(1).map(({ cursor }) => cursor)).toEqual(['c3', 'c4', 'c5'])
  expect(vi.getTimerCount()).toBe(0)
})

verifies('delivery:inbox:bounded', 'large ones are not gathered', async () => {
  const commit = gate()
  const { storing, kept } = startStoring({ store: commit.pass })
  const large = { messages: Array.from({ length: BACKLOG_BATCH }, () => 'x'.repeat(400_000)) }
  await storing.take({ ...large, cursor: 'c1' }, '')
  void storing.take({ ...large, cursor: 'c2' }, 'c1')
  const third = storing.take({ ...large, cursor: 'c3' }, 'c2')
  let isTaken = false
  void third.then(() => {
    isTaken = true
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect([kept.length, isTaken]).toEqual([3, false])
  commit.open()
  await third
  await storing.ended()
})

verifies('delivery:inbox:bounded', async () => {
  const commit = gate()
  const { storing, kept, stored } = startStoring({ store: commit.pass })
  let taken = 0
  const all = (async () => {
    for (; taken < 30; taken += 1) await storing.take(full(`c${taken + 1}`), `c${taken}`)
  })()
  await soon(() => expect(kept.length).toBeGreaterThan(1))
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(kept.length).toBeLessThanOrEqual(INBOX_PLACES)
  expect(taken).toBeLessThan(kept.length)
  commit.open()
  await all
  await storing.ended()
  expect(stored.reduce((sum, { count }) => sum + count, 0)).toBe(30 * BACKLOG_BATCH)
})

verifies(
  ['delivery:commit:before-poll', 'delivery:inbox:kept-first'],
  'an answer that is small, has no cursor of its own, or cannot be kept, is stored first, after all before it',
  async () => {
    const { storing, stored, kept, clears } = startStoring()
    await storing.take(full('c1'), '')
    await storing.take({ cursor: 'c2', messages: ['small'] }, 'c1')
    expect(stored.map(({ cursor }) => cursor)).toEqual(['c1', 'c2'])
    expect(clears()).toBe(1)
    await storing.take(full('c2'), 'c2')
    await storing.take({ ...full(''), cursor: null }, 'c2')
    expect(stored).toHaveLength(4)
    expect(kept).toHaveLength(1)

    const broken = startStoring({ inbox: { keep: () => Promise.reject(new Error('the disk is full')) } })
    await broken.storing.take(full('c1'), '')
    expect(broken.stored).toHaveLength(1)
  },
)

verifies('delivery:inbox:recovered', 'what was kept is stored before anything is asked for', async () => {
  const due = [full('c2'), full('c3')].map((batch) => ({
    ...batch,
    source: 's',
    after: '',
    cursor: batch.cursor ?? '',
  }))
  let tries = 0
  const asked: string[] = []
  const { storing, stored, clears } = startStoring({
    async store() {
      tries += 1
      if (tries < 3) throw new Error('the disk is full')
    },
    inbox: {
      async due(cursor) {
        asked.push(cursor)
        return cursor === 'c1' ? due : []
      },
    },
  })
  expect(await storing.recover('c1')).toBe('c3')
  expect(stored).toEqual([{ cursor: 'c3', count: 2 * BACKLOG_BATCH }])
  expect([tries, clears(), asked]).toEqual([3, 1, ['c1', 'c1', 'c1']])
  expect(await startStoring().storing.recover('c9')).toBe('c9')
})

verifies('delivery:inbox:recovered', 'after something was given up nothing that came later is stored', async () => {
  let works = false
  const { storing, stored, stop } = startStoring({
    async store() {
      if (!works) throw new Error('the disk is full')
    },
  })
  await storing.take(full('c1'), '')
  stop()
  const small = storing.take({ cursor: 'c2', messages: ['small'] }, 'c1')
  await expect(small).rejects.toThrow('what came before could not be stored')
  works = true
  await expect(storing.take(full('c2'), 'c1')).rejects.toThrow('what came before could not be stored')
  await expect(storing.take({ cursor: 'c2', messages: ['small'] }, 'c1')).rejects.toThrow()
  await storing.ended()
  expect(stored).toEqual([])
})

verifies('delivery:inbox:recovered', 'what could not be stored before the end stays kept', async () => {
  const { storing, stored, clears, stop } = startStoring({ store: () => Promise.reject(new Error('the disk is full')) })
  await storing.take(full('c1'), '')
  stop()
  await storing.ended()
  await storing.rest()
  expect([stored, clears()]).toEqual([[], 0])
})

test('at the end what is stored is let go of: no texts stay behind', async () => {
  const commit = gate()
  const { storing, stored, clears, stop } = startStoring({ store: commit.pass })
  await storing.take(full('c1'), '')
  stop()
  commit.open()
  await storing.ended()
  expect([stored.length, clears()]).toEqual([1, 1])
})
