import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { AppError } from '../../kit/errors.ts'
import { sleep } from '../../kit/retry.ts'

/** What to look for. */
export interface GrepPattern {
  source: string
  flags: string
  /** Lines to show around each hit. */
  context: number
  maxLineChars: number
}

/** A line to show; those that are no hit are shown around one. */
export interface GrepLine {
  number: number
  text: string
  hit: boolean
}

/** A file to search. */
export interface GrepFile {
  path: string
  bytes: Uint8Array
}

/** What was found in a file. */
export interface FileHits {
  path: string
  lines: GrepLine[]
  hits: number
}

/** A thread that runs a regular expression, so that one that takes for ever stops nobody else. */
export interface GrepWorker {
  /** The files with hits, up to `maxHits` in all. Fails with `too_slow` when it takes too long. */
  search(files: GrepFile[], maxHits: number): Promise<FileHits[]>
  close(): Promise<void>
}

/** Text, not a file of its own: a worker of Node 20 cannot load TypeScript, and this is all there is to it. */
const SCRIPT = `
const { parentPort, workerData } = require('node:worker_threads')
const { source, flags, context, maxLineChars } = workerData
const pattern = new RegExp(source, flags)
const decoder = new TextDecoder()
const shorten = (line) => (line.length > maxLineChars ? line.slice(0, maxLineChars) + '…' : line)
function searchFile({ path, bytes }, room) {
  if (bytes.subarray(0, 8000).includes(0)) return null
  const lines = decoder.decode(bytes).split('\\n')
  if (lines.at(-1) === '') lines.pop()
  const shown = new Map()
  let hits = 0
  for (let at = 0; at < lines.length && hits < room; at += 1) {
    const line = lines[at].endsWith('\\r') ? lines[at].slice(0, -1) : lines[at]
    if (!pattern.test(line)) continue
    hits += 1
    for (let near = Math.max(0, at - context); near <= Math.min(lines.length - 1, at + context); near += 1)
      if (!shown.has(near)) shown.set(near, { number: near + 1, text: shorten(lines[near].replace(/\\r$/, '')), hit: false })
    shown.get(at).hit = true
  }
  return hits === 0 ? null : { path, lines: [...shown.values()], hits }
}
parentPort.on('message', ({ files, maxHits }) => {
  const found = []
  let room = maxHits
  for (const file of files) {
    if (room <= 0) break
    const hits = searchFile(file, room)
    if (hits === null) continue
    found.push(hits)
    room -= hits.hits
  }
  parentPort.postMessage(found)
})
`

/** Starts a thread for one search. */
export function startGrepWorker(pattern: GrepPattern, limitMs: number): GrepWorker {
  const worker = new Worker(SCRIPT, {
    eval: true,
    workerData: pattern,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  })
  worker.on('error', () => {}) // told to who waits for the answer
  return {
    async search(files, maxHits) {
      const limit = new AbortController()
      const answer = once(worker, 'message', { signal: limit.signal })
      worker.postMessage({ files, maxHits })
      try {
        const first: unknown[] | null = await Promise.race([answer, sleep(limitMs, limit.signal).then(() => null)])
        if (first !== null) return readHits(first[0])
      } finally {
        limit.abort()
        answer.catch(() => {})
      }
      await worker.terminate()
      throw new AppError(
        'too_slow',
        'The pattern takes too long on these files; avoid nested repetitions such as (a+)+ and try a simpler one.',
      )
    },
    async close() {
      await worker.terminate()
    },
  }
}

function readHits(message: unknown): FileHits[] {
  return Array.isArray(message) ? message : []
}
