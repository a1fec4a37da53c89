import { expect, test } from 'vitest'
import type { Outcome } from './commit-group.ts'
import { nearbyWriter } from './nearby-writer.ts'

interface Note {
  name: 'note'
  input: number
}

/** Two that write down who was asked what; a commit on this thread takes `tookMs`. */
function setUp() {
  const at = { nowMs: 0, tookMs: 0.5, failing: false }
  const told: string[] = []
  const committer = (name: string) => ({
    commit(calls: Note[]): Outcome[] {
      told.push(name)
      if (name === 'here') at.nowMs += at.tookMs
      if (name === 'here' && at.failing) throw new Error('database is locked')
      return calls.map(({ input }) => ({ ok: true, output: input }))
    },
    forget: () => void told.push(`${name} forgets`),
  })
  const commit = nearbyWriter<Note>({
    thread: { ...committer('thread'), tidy: () => void told.push('tidies') },
    here: committer('here'),
    isSmall: ({ input }) => input < 10,
    clock: () => at.nowMs,
  })
  const note = (input: number) => commit([{ name: 'note', input }])
  return {
    at,
    note,
    /** Who was asked meanwhile. */
    async notes(count: number, input = 1): Promise<string[]> {
      told.length = 0
      for (let made = 0; made < count; made += 1) await note(input)
      return [...told]
    },
  }
}

test('small groups are committed here once there is time, others on the thread', async () => {
  const { notes, note } = setUp()
  expect(new Set(await notes(16))).toEqual(new Set(['thread']))
  expect(await notes(2)).toEqual(['here forgets', 'here', 'here'])
  expect(await notes(1, 50)).toEqual(['thread forgets', 'thread'])
  expect(new Set(await notes(16))).toEqual(new Set(['thread']))
  expect(await notes(1)).toEqual(['here forgets', 'here'])
  expect(await note(7)).toEqual([{ ok: true, output: 7 }])
})

test('now and then the thread is asked to write the log back, and nearly nothing waits for it', async () => {
  const { notes } = setUp()
  await notes(16)
  const told = await notes(1_400)
  expect(told.filter((one) => one === 'tidies')).toHaveLength(5)
  expect(new Set(told)).toEqual(new Set(['here forgets', 'here', 'tidies']))
  // Who writes without a pause has to leave it the database for once.
  const later = await notes(200)
  expect(later.filter((one) => one === 'thread')).toHaveLength(1)
})

test('a slow commit now and then changes nothing; a slow disk leaves it to the thread for a while', async () => {
  const { at, notes } = setUp()
  await notes(30)
  for (let round = 0; round < 50; round += 1) {
    at.tookMs = 12
    expect(await notes(1)).toEqual(['here'])
    at.tookMs = 0.5
    at.nowMs += 600
    expect(await notes(1)).toEqual(['here'])
  }

  at.tookMs = 12
  const told = await notes(20)
  expect(told.filter((one) => one === 'here')).toHaveLength(10)
  expect(told.at(-1)).toBe('thread')
  at.nowMs += 5_000
  // What was held up is nearly forgiven, and soon enough of it again.
  const later = await notes(20)
  expect(later.filter((one) => one === 'here').length).toBeLessThanOrEqual(10)
  expect(later.at(-1)).toBe('thread')
  at.nowMs += 5_000
  at.tookMs = 0.5
  expect(new Set(await notes(50))).toEqual(new Set(['here forgets', 'here']))
})

test('a disk that stood still is left to the thread at once', async () => {
  const { at, notes } = setUp()
  await notes(30)
  at.tookMs = 3_000
  expect(await notes(2)).toEqual(['here', 'thread forgets', 'thread'])
  at.nowMs += 5_000
  expect(await notes(2)).toEqual(['here forgets', 'here', 'thread forgets', 'thread'])
  at.nowMs += 5_000
  at.tookMs = 0.5
  expect(await notes(3)).toEqual(['here forgets', 'here', 'here', 'here'])
})

test('what cannot be committed here is committed on the thread', async () => {
  const { at, notes, note } = setUp()
  await notes(17)
  at.failing = true
  expect(await note(3)).toEqual([{ ok: true, output: 3 }])
  expect(await notes(1)).toEqual(['here forgets', 'here', 'thread forgets', 'thread'])
})
