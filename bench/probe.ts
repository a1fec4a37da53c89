import { Type } from 'typebox'
import { checker } from '../src/kit/schema.ts'
import type { Part } from './processes.ts'

/** What a server has used since its start. */
export interface Usage {
  cpuMs: number
  heapBytes: number
  externalBytes: number
  rssBytes: number
}

const Usage = Type.Object({
  cpuMs: Type.Number(),
  heapBytes: Type.Number(),
  externalBytes: Type.Number(),
  rssBytes: Type.Number(),
})
const checkUsage = checker(Usage)
const ANSWER_MS = 30_000

// Runs in the servers and answers what they use. A data URL, so that plain node can load it and nothing of the product
// has to know of the bench.
const PROBE = `data:text/javascript,${encodeURIComponent(`
  import { isMainThread } from 'node:worker_threads'
  if (isMainThread) process.on('message', ({ collect }) => {
    if (collect) { gc(); gc() }
    const { user, system } = process.cpuUsage()
    const { heapUsed, external, rss } = process.memoryUsage()
    process.send({ cpuMs: (user + system) / 1000, heapBytes: heapUsed, externalBytes: external, rssBytes: rss })
  })`)}`
/** Arguments for the node of a server, so that it can be asked. */
export const PROBED = ['--expose-gc', '--import', PROBE]

/** Asks a server that was started with `PROBED`; `collect` has it collect garbage first. */
export async function usageOf(part: Part, { collect } = { collect: false }): Promise<Usage> {
  return checkUsage(await part.ask({ collect }, ANSWER_MS))
}
