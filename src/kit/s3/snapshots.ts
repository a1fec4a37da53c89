import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { AppError } from '../errors.ts'
import type { Bucket } from './bucket.ts'
import { numberIn, padded } from './object-log.ts'

/** A file as it was after a record of the log. */
export interface Snapshot {
  seq: number
  parts: number
  /** The records that began a writer, oldest first: they stay in the log. */
  starts: number[]
}

/** Files in a bucket, in parts, each named by the record it is as new as. The newest one counts. */
export interface Snapshots {
  /** Null when there is none. */
  newest(): Promise<Snapshot | null>
  /** Writes it to a new file. */
  load(snapshot: Snapshot, path: string): Promise<void>
  /** It counts when all of it is there; older ones go then. */
  save(snapshot: Omit<Snapshot, 'parts'>, path: string): Promise<void>
}

const FOLDER = 'snapshot/'
const END = 'end'
const PART_BYTES = 4 * 1024 * 1024
const pack = promisify(gzip)
const unpack = promisify(gunzip)

export function snapshots(bucket: Bucket): Snapshots {
  return {
    async newest() {
      const last = (await bucket.list(FOLDER)).findLast((name) => name.endsWith(`/${END}`))
      const body = last === undefined ? null : await bucket.get(last)
      return body === null ? null : JSON.parse(String(body))
    },
    async load({ seq, parts }, path) {
      const file = createWriteStream(path, { mode: 0o600 })
      for (let part = 0; part < parts; part += 1) {
        const body = await bucket.get(nameOf(seq, padded(part)))
        if (body === null) {
          file.destroy()
          throw new AppError('store_failed', 'A snapshot was replaced while it was being read; start again.')
        }
        if (!file.write(await unpack(body))) await once(file, 'drain')
      }
      file.end()
      await once(file, 'finish')
    },
    async save({ seq, starts }, path) {
      let parts = 0
      for await (const part of createReadStream(path, { highWaterMark: PART_BYTES })) {
        await bucket.put(nameOf(seq, padded(parts)), await pack(part))
        parts += 1
      }
      const snapshot: Snapshot = { seq, parts, starts }
      await bucket.put(nameOf(seq, END), Buffer.from(JSON.stringify(snapshot)))
      const older = (await bucket.list(FOLDER)).filter((name) => numberIn(name) < seq)
      // Their ends first: what is half removed must not count.
      await bucket.remove(older.filter((name) => name.endsWith(END)))
      await bucket.remove(older)
    },
  }
}

function nameOf(seq: number, part: string): string {
  return `${FOLDER}${padded(seq)}/${part}`
}
