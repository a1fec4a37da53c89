import { Type } from 'typebox'
import { checker } from '../src/kit/schema.ts'
import type { Part } from './processes.ts'

/** What a server has used since its start. */
export interface Usage {
  cpuMs: number
  /** Of the main thread alone; 0 where the system does not tell. */
  mainMs: number
  /** How late the event loop ran, at the 99th percentile, since the last question. */
  loopDelayMs: number
  heapBytes: number
  externalBytes: number
  rssBytes: number
}

const Usage = Type.Object({
  cpuMs: Type.Number(),
  mainMs: Type.Number(),
  loopDelayMs: Type.Number(),
  heapBytes: Type.Number(),
  externalBytes: Type.Number(),
  rssBytes: Type.Number(),
})
const checkUsage = checker(Usage)
const ANSWER_MS = 30_000

// Runs in the servers and answers what they use. A data URL, so that plain node can load it and nothing of the product
// has to know of the bench.
const PROBE = `data:text/javascript,${encodeURIComponent(`
  import { readFileSync } from 'node:fs'
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  import { isMainThread } from 'node:worker_threads'
  const ticksOf = (stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 13)
  const mainMs = () => {
    try {
      const [user, system] = ticksOf(readFileSync('/proc/self/task/' + process.pid + '/stat', 'utf8'))
      return (Number(user) + Number(system)) * 10
    } catch { return 0 }
  }
  const RESOLUTION_MS = 10
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  const loopDelayMs = () => {
    const late = Math.max(0, loop.percentile(99) / 1e6 - RESOLUTION_MS)
    loop.reset()
    return late
  }
  if (isMainThread) loop.enable()
  if (isMainThread) process.on('message', ({ collect }) => {
    if (collect) { gc(); gc() }
    const { user, system } = process.cpuUsage()
    const { heapUsed, external, rss } = process.memoryUsage()
    process.send({
      cpuMs: (user + system) / 1000, mainMs: mainMs(), loopDelayMs: loopDelayMs(),
      heapBytes: heapUsed, externalBytes: external, rssBytes: rss,
    })
  })`)}`
/** Arguments for the node of a server, so that it can be asked. */
export const PROBED = ['--expose-gc', '--import', PROBE]

/** Asks a server that was started with `PROBED`; `collect` has it collect garbage first. */
export async function usageOf(part: Part, { collect } = { collect: false }): Promise<Usage> {
  return checkUsage(await part.ask({ collect }, ANSWER_MS))
}
