import { appendFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/support/processes.ts'
import { silentLog } from '../kit/log.ts'
import { openJournal } from './journal.ts'

interface Put {
  key: string
  value: number
}

async function openMap(path: string, slackBytes?: number) {
  const map = new Map<string, number>()
  const journal = await openJournal<Put>({
    path,
    apply: ({ key, value }) => void map.set(key, value),
    snapshot: () => [...map].map(([key, value]) => ({ key, value })),
    log: silentLog,
    ...(slackBytes === undefined ? {} : { slackBytes }),
  })
  return { map, journal }
}

test('what was appended is there after a restart, the newest last', async () => {
  const path = join(temporaryFolder(), 'j')
  const first = await openMap(path)
  await Promise.all([first.journal.append({ key: 'a', value: 1 }), first.journal.append({ key: 'b', value: 2 })])
  void first.journal.append({ key: 'a', value: 3 })
  await first.journal.close()
  const second = await openMap(path)
  expect([...second.map]).toEqual([
    ['a', 3],
    ['b', 2],
  ])
  expect(statSync(path).mode & 0o777).toBe(0o600)
  await second.journal.close()
})

test('a record is in the state at once and on the disk when its promise resolves', async () => {
  const path = join(temporaryFolder(), 'j')
  const { map, journal } = await openMap(path)
  const kept = journal.append({ key: 'a', value: 1 })
  expect(map.get('a')).toBe(1)
  await kept
  expect(readFileSync(path, 'utf8')).toBe('{"key":"a","value":1}\n')
  await journal.close()
})

test('cut off at any byte, it holds every whole record before the cut', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'j')
  const { journal } = await openMap(path)
  for (let value = 0; value < 5; value++) await journal.append({ key: `k${value}`, value })
  await journal.close()
  const whole = readFileSync(path)
  for (let bytes = 0; bytes <= whole.length; bytes++) {
    writeFileSync(path, whole)
    truncateSync(path, bytes)
    const { map, journal: again } = await openMap(path)
    expect(map.size).toBe(whole.subarray(0, bytes).toString().split('\n').length - 1)
    await again.append({ key: 'new', value: 9 })
    await again.close()
    const last = await openMap(path)
    expect(last.map.get('new')).toBe(9)
    await last.journal.close()
  }
})

test('the file is written anew when it is much longer than what it stands for', async () => {
  const path = join(temporaryFolder(), 'j')
  const { map, journal } = await openMap(path, 500)
  for (let value = 0; value < 200; value++) await journal.append({ key: 'same', value })
  await journal.close()
  expect(readFileSync(path).length).toBeLessThan(1_000)
  expect(map.get('same')).toBe(199)
  const again = await openMap(path)
  expect(again.map.get('same')).toBe(199)
  await again.journal.close()
})

test('a damaged file is copied away and read up to the damage', async () => {
  const path = join(temporaryFolder(), 'j')
  const { journal } = await openMap(path)
  await journal.append({ key: 'a', value: 1 })
  await journal.close()
  appendFileSync(path, 'garbage\n{"key":"b","value":2}\n')
  const again = await openMap(path)
  expect([...again.map]).toEqual([['a', 1]])
  expect(existsSync(`${path}.damaged`)).toBe(true)
  await again.journal.close()
})
