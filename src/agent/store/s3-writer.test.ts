import { expect, test } from 'vitest'
import type { LogRecord, ObjectLog } from '../../kit/s3/object-log.ts'
import type { Call } from './operations.ts'
import { logWriter } from './s3-writer.ts'

const FAILED = { code: 'store_failed' }

interface Seen {
  applied: string[]
  late: string[]
  lost: number
  full: boolean
}

/** A log in memory, and a copy that can be full. */
function setUp() {
  const records = new Map<number, LogRecord<Call>>([[1, { writer: 'me', starts: true, calls: [] }]])
  const log: ObjectLog<Call> = {
    async append(seq, record) {
      const other = records.get(seq)
      if (other === undefined) records.set(seq, record)
      return other ?? null
    },
    read: async (seq) => records.get(seq) ?? null,
    async *readFrom() {},
    removeUpTo: async () => {},
  }
  const seen: Seen = { applied: [], late: [], lost: 0, full: false }
  const writer = logWriter({
    log,
    writer: 'me',
    startSeq: 1,
    async apply(seq, calls) {
      if (seen.full) throw new Error('database or disk is full')
      seen.applied.push(`${seq}:${idsOf(calls)}`)
      return calls.map(() => ({ ok: true, output: undefined }))
    },
    onApplied: () => {},
    onLate: (calls) => seen.late.push(idsOf(calls)),
    onLost: () => {
      seen.lost += 1
    },
  })
  return { records, writer, seen }
}

function remove(id: string): Call {
  return { name: 'removeSession', input: { id } }
}

function idsOf(calls: Call[]): string {
  return calls.map(({ input }) => (input !== null && 'id' in input ? input.id : '?')).join()
}

test('what is in the log and could not be done on the copy is done before anything else, and told as late', async () => {
  const { records, writer, seen } = setUp()
  seen.full = true
  await expect(writer.commit([remove('a')])).rejects.toThrow('full')
  await expect(writer.commit([remove('b')])).rejects.toThrow('full')
  seen.full = false
  await expect(writer.commit([remove('c')])).rejects.toMatchObject(FAILED)
  expect(await writer.commit([remove('d')])).toHaveLength(1)
  expect(seen).toMatchObject({ applied: ['2:a', '3:d'], late: ['a'], lost: 0 })
  expect([...records.keys()]).toEqual([1, 2, 3])
})

test('a number that is another’s ends it, for good, and is told once', async () => {
  const { records, writer, seen } = setUp()
  records.set(2, { writer: 'another', starts: true, calls: [] })
  await Promise.allSettled([writer.look(), writer.commit([remove('a')])])
  records.delete(2)
  await expect(writer.commit([remove('b')])).rejects.toMatchObject(FAILED)
  expect(writer.lost()).toContain('taken over')
  expect(seen).toMatchObject({ applied: [], lost: 1 })
  expect(records.size).toBe(1)
})
