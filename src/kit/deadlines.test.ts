import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sharedDeadlines } from './deadlines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Deadlines of one second that note who fell due, and when. */
function testDeadlines() {
  const startedAt = Date.now()
  const due: string[] = []
  const deadlines = sharedDeadlines(1_000, Date.now)
  return {
    deadlines,
    due,
    add(name: string) {
      const wait = { onDue: () => void due.push(`${name} at ${Date.now() - startedAt}`) }
      deadlines.add(wait)
      return () => deadlines.remove(wait)
    },
  }
}

test('each wait falls due after its own time, in the order they came', () => {
  const { due, add } = testDeadlines()
  add('a')
  vi.advanceTimersByTime(300)
  add('b')
  vi.advanceTimersByTime(300)
  add('c')
  vi.advanceTimersByTime(10_000)
  expect(due).toEqual(['a at 1000', 'b at 1300', 'c at 1600'])
})

test('thousands of waits share one timer', () => {
  const { deadlines, due, add } = testDeadlines()
  for (let count = 0; count < 5_000; count++) add(String(count))
  expect(deadlines.size).toBe(5_000)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1_000)
  expect(due).toHaveLength(5_000)
  expect(deadlines.size).toBe(0)
})

test('a cancelled wait does not fall due, and does not hold up the next one', () => {
  const { deadlines, due, add } = testDeadlines()
  const cancel = add('a')
  vi.advanceTimersByTime(400)
  add('b')
  cancel()
  cancel()
  expect(deadlines.size).toBe(1)
  vi.advanceTimersByTime(10_000)
  expect(due).toEqual(['b at 1400'])
})

test('no timer is left when nobody waits', () => {
  const { add } = testDeadlines()
  const cancels = [add('a'), add('b')]
  for (const cancel of cancels) cancel()
  expect(vi.getTimerCount()).toBe(0)
  add('c')
  vi.advanceTimersByTime(1_000)
  expect(vi.getTimerCount()).toBe(0)
})

test('a wait added by a wait that falls due has its full time, still with one timer', () => {
  const { deadlines, due, add } = testDeadlines()
  deadlines.add({ onDue: () => void add('again') })
  vi.advanceTimersByTime(500)
  add('b')
  vi.advanceTimersByTime(500)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(10_000)
  expect(due).toEqual(['b at 1500', 'again at 2000'])
  expect(vi.getTimerCount()).toBe(0)
})

test('a wait that cancels another in the same sweep keeps it from falling due', () => {
  const { deadlines, due, add } = testDeadlines()
  let cancel = () => {}
  deadlines.add({ onDue: () => cancel() })
  cancel = add('b')
  vi.advanceTimersByTime(10_000)
  expect(due).toEqual([])
})

test('a wait that throws does not take the others with it', () => {
  const { deadlines, due, add } = testDeadlines()
  deadlines.add({
    onDue() {
      throw new Error('broken')
    },
  })
  add('b')
  expect(() => vi.advanceTimersByTime(1_000)).toThrow('broken')
  vi.advanceTimersByTime(10_000)
  expect(due).toHaveLength(1)
})
