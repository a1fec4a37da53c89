import { expect, test } from 'vitest'
import { AppError } from '../errors.ts'
import { commitGroup, type Operations } from './commit-group.ts'
import { connect, type Db } from './database.ts'
import { migrate } from './migrate.ts'

const TABLES = ['CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;']

interface Note {
  name: 'note'
  input: string
}

/** A database whose statement `failing` fails for as long as it is set. */
async function setUp() {
  const inner = await connect(':memory:')
  migrate(inner, ':memory:', TABLES)
  const fault: { failing?: string } = {}
  const db: Db = {
    ...inner,
    run(sql, ...values) {
      if (sql === fault.failing) throw new Error('disk I/O error')
      return inner.run(sql, ...values)
    },
  }
  let forgotten = 0
  const operations: Operations<Note> = {
    perform(on, { input }) {
      on.run('INSERT INTO notes (text) VALUES (?)', input)
      if (input === 'refused')
        throw new AppError('name_taken', 'It is "refused".', { details: { field: 'text' }, retryAfterMs: 5 })
      return input.length
    },
    forget() {
      forgotten += 1
    },
  }
  const commit = (...texts: string[]) =>
    commitGroup(
      db,
      texts.map((input): Note => ({ name: 'note', input })),
      operations,
    )
  const texts = () => db.all<{ text: string }>('SELECT text FROM notes ORDER BY id').map(({ text }) => text)
  return { db, fault, commit, texts, forgotten: () => forgotten }
}

for (const statement of ['BEGIN IMMEDIATE', 'COMMIT', 'RELEASE operation']) {
  test(`when ${statement} fails nothing of the group is kept, and the next group is`, async () => {
    const { db, fault, commit, texts, forgotten } = await setUp()
    commit('a', 'b')

    fault.failing = statement
    expect(() => commit('c', 'refused')).toThrow(
      expect.objectContaining({ name: 'AppError', code: 'store_failed', message: expect.stringContaining('disk') }),
    )
    expect(forgotten()).toBeGreaterThan(0)
    delete fault.failing
    expect(commit('d', 'e')).toEqual([
      { ok: true, output: 1 },
      { ok: true, output: 1 },
    ])
    expect(texts()).toEqual(['a', 'b', 'd', 'e'])
    db.close()
  })
}

test('one that fails leaves no trace and does not touch the others; its code, text and details are kept', async () => {
  const { db, commit, texts, forgotten } = await setUp()
  const outcomes = commit('a', 'refused', 'a', 'b')

  expect(outcomes).toMatchObject([
    { ok: true },
    {
      ok: false,
      error: { code: 'name_taken', message: 'It is "refused".', details: { field: 'text' }, retryAfterMs: 5 },
    },
    { ok: false, error: { code: 'store_failed', message: expect.stringContaining('UNIQUE') } },
    { ok: true },
  ])
  expect(texts()).toEqual(['a', 'b'])
  expect(forgotten()).toBe(3)
  db.close()
})

test('what operations only noted is written before the commit, and of one that fails nothing', async () => {
  const db = await connect(':memory:')
  db.exec('CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)')
  let noted: string[] = []
  const operations = {
    perform(_db: Db, { input }: { name: string; input: string }) {
      noted.push(input)
      if (input === 'refused') throw new AppError('name_taken', 'It is "refused".')
    },
    finish() {
      for (const text of noted) db.run('INSERT INTO notes (text) VALUES (?)', text)
      noted = []
    },
    forget() {
      noted = []
    },
  }
  const commit = (...texts: string[]) =>
    commitGroup(
      db,
      texts.map((input) => ({ name: 'note', input })),
      operations,
    ).map(({ ok }) => ok)

  expect(commit('a', 'b')).toEqual([true, true])
  expect(commit('c', 'refused', 'd')).toEqual([true, false, true])
  expect(db.all<{ text: string }>('SELECT text FROM notes ORDER BY id').map(({ text }) => text)).toEqual([
    'a',
    'b',
    'c',
    'd',
  ])
  db.close()
})
