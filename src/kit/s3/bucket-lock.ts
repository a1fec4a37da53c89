import { hostname } from 'node:os'
import { pid } from 'node:process'
import { sleep } from '../retry.ts'
import type { Bucket } from './bucket.ts'
import { numberIn, padded } from './object-log.ts'

/**
 * A sign of life beside the log, so that a second server is told instead of taking over. It decides nothing: who may write
 * is decided by the log. Every writer has a lock object of its own, named by its first record, which nobody else writes.
 */
interface Lock {
  host: string
  pid: number
  /** Without a new count for so long, its owner is taken for dead. */
  lifeMs: number
  count: number
  released: boolean
}

/** The lock of this process, renewed until it is released. */
export interface HeldLock {
  /** Ends the renewals, and says, if that is so, that its owner has gone in order. */
  release(isInOrder: boolean): Promise<void>
}

const FOLDER = 'lock/'
const RENEWALS_PER_LIFE = 3
const LOOKS_PER_LIFE = 10

/** The newest writer's lock; null when there is none. */
export async function newestLock(bucket: Bucket): Promise<number | null> {
  const last = (await bucket.list(FOLDER)).at(-1)
  return last === undefined ? null : numberIn(last)
}

/**
 * Who holds the lock of a writer, as text; null when it was released, or not renewed for its whole life. No clocks are
 * compared: it is looked at until it changes. One that is not there yet may be on its way, for `lifeMs`.
 */
export async function holderOf(bucket: Bucket, seq: number, lifeMs: number): Promise<string | null> {
  const first = await readLock(bucket, seq)
  if (first?.released) return null
  const ownLifeMs = first?.lifeMs ?? lifeMs
  const started = performance.now()
  for (;;) {
    const isOver = performance.now() - started >= ownLifeMs
    const now = await readLock(bucket, seq)
    if (now?.released) return null
    if (now !== null && now.count !== first?.count) return `process ${now.pid} on ${now.host}`
    if (isOver) return null
    await sleep(ownLifeMs / LOOKS_PER_LIFE)
  }
}

/** Takes the lock for the writer that began with `seq`, removes those of earlier ones, and renews it. */
export async function holdLock(
  bucket: Bucket,
  seq: number,
  { lifeMs, onRenewed }: { lifeMs: number; onRenewed: () => Promise<void> },
): Promise<HeldLock> {
  let count = 0
  let renewing: Promise<void> | null = null
  await write(false)
  const others = (await bucket.list(FOLDER)).filter((name) => numberIn(name) < seq)
  await bucket.remove(others)
  const timer = setInterval(() => {
    renewing ??= write(false)
      .then(onRenewed)
      // Not reached: the bucket knows, and it is tried again.
      .catch(() => undefined)
      .finally(() => {
        renewing = null
      })
  }, lifeMs / RENEWALS_PER_LIFE).unref()
  return {
    async release(isInOrder) {
      clearInterval(timer)
      await renewing
      if (isInOrder) await write(true)
    },
  }

  async function write(released: boolean): Promise<void> {
    count += 1
    const lock: Lock = { host: hostname(), pid, lifeMs, count, released }
    await bucket.put(nameOf(seq), Buffer.from(JSON.stringify(lock)))
  }
}

async function readLock(bucket: Bucket, seq: number): Promise<Lock | null> {
  const body = await bucket.get(nameOf(seq))
  return body === null ? null : JSON.parse(String(body))
}

function nameOf(seq: number): string {
  return `${FOLDER}${padded(seq)}`
}
