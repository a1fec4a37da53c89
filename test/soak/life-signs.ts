import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import type { Part } from '../../bench/processes.ts'
import { checker } from '../../src/kit/schema.ts'

/** What a process holds at a moment when nothing is under way. */
export interface LifeSigns {
  /** After two collections of garbage. */
  heapBytes: number
  rssBytes: number
  /** Timers, sockets and whatever else keeps an event loop busy. */
  handles: number
  descriptors: number
  threads: number
  /** Its files on disk, and apart from them SQLite's write-ahead log, which is written over from its start when it is full. */
  dataBytes: number
  logBytes: number
}

const ANSWER_MS = 60_000
const checkTold = checker(Type.Object({ heapBytes: Type.Number(), rssBytes: Type.Number(), handles: Type.Number() }))

// A data URL, so that plain node can load it and nothing of the product has to know of it.
const PROBE = `data:text/javascript,${encodeURIComponent(`
  import { isMainThread } from 'node:worker_threads'
  if (isMainThread) process.on('message', () => {
    gc(); gc()
    const { heapUsed, external, rss } = process.memoryUsage()
    process.send({ heapBytes: heapUsed + external, rssBytes: rss, handles: process.getActiveResourcesInfo().length })
  })`)}`

/** Arguments for the node of a process whose life signs are wanted. */
export const WATCHED = ['--expose-gc', '--import', PROBE]

/** Asks a process that was started with `WATCHED`. */
export async function lifeSigns(part: Part, dataDir: string): Promise<LifeSigns> {
  const told = checkTold(await part.ask({}, ANSWER_MS))
  const count = (folder: string) => readdirSync(`/proc/${part.pid}/${folder}`).length
  return { ...told, descriptors: count('fd'), threads: count('task'), ...bytesIn(dataDir) }
}

/** How much more a process may hold than it did after warm-up. */
export interface Allowance {
  /** Messages and runs so far: they are kept on disk (at first in the write-ahead log), and nowhere else. */
  kept: number
}

const MEGABYTE = 1024 * 1024
/** A message with its deliveries and its answer, or a run with its events and transcript, in pages of the database. */
const BYTES_KEPT_EACH = 16 * 1024
const DATA_SLACK_BYTES = 8 * MEGABYTE
const MOST_LOG_BYTES = 80 * MEGABYTE
const HEAP_SLACK_BYTES = 24 * MEGABYTE
const RSS_SLACK_BYTES = 128 * MEGABYTE
/** Connections that are kept open for the next call come and go. */
const HANDLE_SLACK = 40

/** In which ways a process holds more than it should; empty when all is well. */
export function overgrown(name: string, before: LifeSigns, after: LifeSigns, { kept }: Allowance): string[] {
  const most: LifeSigns = {
    heapBytes: before.heapBytes + HEAP_SLACK_BYTES,
    rssBytes: before.rssBytes + RSS_SLACK_BYTES,
    handles: before.handles + HANDLE_SLACK,
    descriptors: before.descriptors + HANDLE_SLACK,
    threads: before.threads + 4,
    dataBytes: before.dataBytes + DATA_SLACK_BYTES + kept * BYTES_KEPT_EACH,
    logBytes: MOST_LOG_BYTES,
  }
  return SIGNS.filter((sign) => after[sign] > most[sign]).map(
    (sign) => `${name}: ${sign} went from ${before[sign]} to ${after[sign]}, more than ${most[sign]}`,
  )
}

export const SIGNS = ['heapBytes', 'rssBytes', 'handles', 'descriptors', 'threads', 'dataBytes', 'logBytes'] as const

function bytesIn(folder: string): Pick<LifeSigns, 'dataBytes' | 'logBytes'> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const sum = (some: typeof files) =>
    some.reduce((bytes, { parentPath, name }) => bytes + sizeOf(join(parentPath, name)), 0)
  const isLog = ({ name }: { name: string }) => name.endsWith('-wal')
  return { dataBytes: sum(files.filter((file) => !isLog(file))), logBytes: sum(files.filter(isLog)) }
}

/** A file may go while it is being looked at. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
