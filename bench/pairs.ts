import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { brief, type Pair, type Run } from './figures.ts'
import { machineCpuMs } from './machine.ts'
import { type Stage, stageCpuMs } from './scenarios.ts'
import { type Server, startBare, startHub } from './servers.ts'

export interface PairPlan {
  stage: Stage
  /** Where the hub's data go. */
  folder: string
  clients: number
  pairs: number
  /** Fresh processes for each pair. */
  restart?: boolean
  /** Further arguments for the hub's node. */
  nodeArgs: string[]
}

let made = 0

/** Measures hub, bare, hub, bare …; who is not being measured has nothing to do. */
export async function inPairs(
  { stage, folder, clients, pairs: wanted, restart = false, nodeArgs }: PairPlan,
  measure: (server: Server) => Promise<Run>,
): Promise<Pair[]> {
  made += 1
  const { sim } = stage
  const hubPlan = { sim, bot: `hub${made}`, clients, dataDir: mkdtempSync(join(folder, 'hub-')), nodeArgs }
  const barePlan = { sim, bot: `bare${made}`, clients }
  let [hub, bare] = await Promise.all([startHub(hubPlan), startBare(barePlan)])
  const pairs: Pair[] = []
  for (let index = 0; index < wanted; index += 1) {
    if (restart) {
      await Promise.all([hub.stop(), bare.stop()])
      hub = await startHub({ ...hubPlan, tokens: hub.tokens })
      bare = await startBare(barePlan)
    }
    const pair = { ours: await watched(stage, hub, measure), bare: await watched(stage, bare, measure) }
    pairs.push(pair)
    console.log(`${clients} clients, pair ${index + 1}\n  hub  ${brief(pair.ours)}\n  bare ${brief(pair.bare)}`)
  }
  await Promise.all([hub.stop(), bare.stop()])
  return pairs
}

/** Measures, and notes how much of the machine went to programs that are none of ours. */
async function watched(stage: Stage, server: Server, measure: (server: Server) => Promise<Run>): Promise<Run> {
  const ours = async () => (await server.usage()).cpuMs + (await stageCpuMs(stage))
  const [oursBefore, before] = [await ours(), machineCpuMs()]
  const found = await measure(server)
  const [oursAfter, after] = [await ours(), machineCpuMs()]
  const others = after.busy - before.busy - (oursAfter - oursBefore)
  return { ...found, othersPercent: Math.max(0, (100 * others) / (after.total - before.total)) }
}
