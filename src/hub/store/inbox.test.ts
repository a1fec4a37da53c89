import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../test/support/processes.ts'
import { verifies } from '../../../test/support/verifies.ts'
import { inboxHolds, openInbox } from './inbox.ts'
import { INBOX_PLACES } from './port.ts'

/** Messages are JSON texts; strings will do for most. */
const entry = (after: string, cursor: string, ...texts: string[]) => ({
  source: 's',
  after,
  cursor,
  messages: texts.map((text) => JSON.stringify(text)),
})
const cursors = (entries: { cursor: string }[]) => entries.map(({ cursor }) => cursor)

function open(dir: string) {
  const inbox = openInbox(dir)
  onTestFinished(() => inbox.close())
  return inbox
}

verifies('delivery:inbox:recovered', 'what is due follows from where the store stands', async () => {
  const dir = temporaryFolder()
  const inbox = open(dir)
  const first = { ...entry('', 'c1'), messages: ['{ "n" : 9007199254740993 }', '"ü\\"\\n"', 'null', '[",]"]'] }
  await inbox.keep('a', first)
  await inbox.keep('a', entry('c1', 'c2', 'two'))
  await inbox.keep('b', entry('', 'x1', 'other'))
  const again = open(dir)
  expect(await again.due('a', 's', '')).toEqual([first, entry('c1', 'c2', 'two')])
  expect(cursors(await again.due('a', 's', 'c1'))).toEqual(['c2'])
  // All of it stored; stored and gone on since; another login; another account.
  expect(await again.due('a', 's', 'c2')).toEqual([])
  expect(await again.due('a', 's', 'c17')).toEqual([])
  expect(await again.due('a', 'another', '')).toEqual([])
  // Nor does another login touch what this one has left.
  for (let number = 0; number < 2 * INBOX_PLACES; number += 1)
    await again.keep('a', { ...entry(`d${number}`, `d${number + 1}`), source: 'another' })
  await again.clear('a', 'another')
  expect(await again.due('a', 'another', 'd9')).toEqual([])
  expect(await again.due('a', 's', '')).toHaveLength(2)
  expect(cursors(await again.due('b', 's', ''))).toEqual(['x1'])
})

test('each takes the place of the oldest, and a shorter one leaves nothing of it', async () => {
  const dir = temporaryFolder()
  const inbox = open(dir)
  for (let number = 0; number < INBOX_PLACES; number += 1)
    await inbox.keep('a', entry(`c${number}`, `c${number + 1}`, 'x'.repeat(1_000)))
  expect(await inbox.due('a', 's', 'c0')).toHaveLength(INBOX_PLACES)
  await inbox.keep('a', entry(`c${INBOX_PLACES}`, 'last', 'short'))
  expect(await inbox.due('a', 's', 'c0')).toEqual([])
  const due = await open(dir).due('a', 's', 'c1')
  expect(due).toHaveLength(INBOX_PLACES)
  expect(due.at(-1)).toEqual(entry(`c${INBOX_PLACES}`, 'last', 'short'))
  expect(readdirSync(join(dir, 'inbox'))).toHaveLength(INBOX_PLACES)
})

test('one that was not written to its end does not count, and the others do', async () => {
  const dir = temporaryFolder()
  const inbox = open(dir)
  await inbox.keep('a', entry('', 'c1', 'one'))
  await inbox.keep('a', entry('c1', 'c2', 'two'))
  const [, second = ''] = readdirSync(join(dir, 'inbox')).sort()
  const path = join(dir, 'inbox', second)
  const whole = readFileSync(path)
  for (const damaged of [
    whole.subarray(0, -1),
    whole.subarray(0, 10),
    Buffer.alloc(0),
    Buffer.concat([whole.subarray(0, -2), Buffer.from('x"')]),
    Buffer.alloc(whole.length),
  ]) {
    writeFileSync(path, damaged)
    expect(cursors(await open(dir).due('a', 's', ''))).toEqual(['c1'])
  }
})

test('cursors that lead in a circle end', async () => {
  const inbox = open(temporaryFolder())
  await inbox.keep('a', entry('c1', 'c2'))
  await inbox.keep('a', entry('c2', 'c1'))
  expect(cursors(await inbox.due('a', 's', 'c1'))).toEqual(['c2', 'c1'])
})

test('what is let go of is gone from the disk, and nobody else may read what is there', async () => {
  const dir = temporaryFolder()
  expect(await inboxHolds(dir)).toBe(false)
  const inbox = open(dir)
  await inbox.clear('a', 's')
  await inbox.keep('a', entry('', 'c1', 'secret words'))
  const paths = readdirSync(join(dir, 'inbox')).map((name) => join(dir, 'inbox', name))
  expect(paths.map((path) => statSync(path).mode & 0o777)).toEqual([0o600])
  expect(statSync(join(dir, 'inbox')).mode & 0o777).toBe(0o700)
  expect(await inboxHolds(dir)).toBe(true)
  await open(dir).clear('a', 's')
  expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual([''])
  expect(await inboxHolds(dir)).toBe(false)
  await inbox.keep('a', entry('', 'c1', 'again'))
  expect(cursors(await inbox.due('a', 's', ''))).toEqual(['c1'])
})

verifies('delivery:inbox:recovered', 'what is kept after the files were removed is found again', async () => {
  const dir = temporaryFolder()
  const inbox = open(dir)
  for (let number = 0; number < INBOX_PLACES; number += 1) await inbox.keep('a', entry(`c${number}`, `c${number + 1}`))
  rmSync(join(dir, 'inbox'), { recursive: true })
  await inbox.keep('a', entry('d0', 'd1', 'one'))
  await inbox.keep('a', entry('d1', 'd2', 'two'))
  expect(cursors(await open(dir).due('a', 's', 'd0'))).toEqual(['d1', 'd2'])
})

test('what stands there instead of files, or of the folder, is not waited for', async () => {
  const dir = temporaryFolder()
  const inbox = open(dir)
  await inbox.keep('a', entry('', 'c1', 'one'))
  await inbox.keep('a', entry('c1', 'c2', 'two'))
  const [first = '', second = ''] = readdirSync(join(dir, 'inbox')).sort()
  rmSync(join(dir, 'inbox', second))
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(dir, 'inbox', second)])
  expect(cursors(await open(dir).due('a', 's', ''))).toEqual(['c1'])
  rmSync(join(dir, 'inbox', first))
  mkdirSync(join(dir, 'inbox', first))
  expect(await open(dir).due('a', 's', '')).toEqual([])
  expect(await inboxHolds(dir)).toBe(false)
  rmSync(join(dir, 'inbox'), { recursive: true })
  writeFileSync(join(dir, 'inbox'), 'a file')
  expect(await open(dir).due('a', 's', '')).toEqual([])
  await expect(open(dir).keep('a', entry('', 'c1', 'one'))).rejects.toThrow()
})
