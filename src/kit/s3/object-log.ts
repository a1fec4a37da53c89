import { AppError } from '../errors.ts'
import type { Bucket } from './bucket.ts'

/** What was done, by whom. */
export interface LogRecord<Call> {
  /** Who wrote it: another one for every start of a server. */
  writer: string
  /** The first record of its writer. Who wrote before cannot write any more: its next number is taken. */
  starts: boolean
  calls: Call[]
}

/** A log of numbered objects. Whoever writes a number first has it, so that there is one order and one writer at a time. */
export interface ObjectLog<Call> {
  /** Writes a record. Null when that was done; else the record that was there before. */
  append(seq: number, record: LogRecord<Call>): Promise<LogRecord<Call> | null>
  /** Null when there is none. */
  read(seq: number): Promise<LogRecord<Call> | null>
  /** The records from `seq` on, up to the first that is not there. */
  readFrom(seq: number): AsyncGenerator<{ seq: number; record: LogRecord<Call>; bytes: number }, void>
  /** Removes records up to `seq`, but those that are to be kept. */
  removeUpTo(seq: number, keep: ReadonlySet<number>): Promise<void>
}

const FOLDER = 'log/'
const DIGITS = 12
const READ_AT_ONCE = 16

export function objectLog<Call>(bucket: Bucket): ObjectLog<Call> {
  const own: ObjectLog<Call> = {
    async append(seq, record) {
      if (await bucket.create(nameOf(seq), Buffer.from(JSON.stringify(record)))) return null
      const other = await own.read(seq)
      if (other === null) throw new AppError('store_failed', 'The log is being changed by another server; try again.')
      return other
    },
    async read(seq) {
      const body = await bucket.get(nameOf(seq))
      return body === null ? null : parse<Call>(body)
    },
    async *readFrom(first) {
      const ahead: Promise<Buffer | null>[] = []
      try {
        for (let seq = first; ; seq += 1) {
          while (ahead.length < READ_AT_ONCE) ahead.push(bucket.get(nameOf(seq + ahead.length)))
          const body = await ahead[0]
          if (!body) return
          void ahead.shift()
          yield { seq, record: parse<Call>(body), bytes: body.length }
        }
      } finally {
        await Promise.allSettled(ahead)
      }
    },
    async removeUpTo(seq, keep) {
      const numbers = (await bucket.list(FOLDER)).map(numberIn)
      await bucket.remove(numbers.filter((one) => one <= seq && !keep.has(one)).map(nameOf))
    },
  }
  return own
}

/** A number so that names stand in its order. */
export function padded(seq: number): string {
  return String(seq).padStart(DIGITS, '0')
}

/** The number in `folder/000000000012` or `folder/000000000012/more`. */
export function numberIn(name: string): number {
  return Number(name.split('/')[1])
}

function nameOf(seq: number): string {
  return `${FOLDER}${padded(seq)}`
}

/** Our own text: believed, as the rows of a table are. */
function parse<Call>(body: Buffer): LogRecord<Call> {
  return JSON.parse(String(body))
}
