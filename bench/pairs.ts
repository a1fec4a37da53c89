import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { brief, type Pair, type Run } from './figures.ts'
import { machineCpuMs, stolenCpuMs, untilUndisturbed } from './machine.ts'
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
  /** A pair during which the host took more of the machine away is measured again, a few times at most. */
  mostStolenPercent?: number
  /** Further arguments for the hub's node. */
  nodeArgs: string[]
}

const MOST_REPEATS = 8
let made = 0

/** Measures hub, bare, hub, bare …; who is not being measured has nothing to do. */
export async function inPairs(
  { stage, folder, clients, pairs: wanted, restart = false, mostStolenPercent = 100, nodeArgs }: PairPlan,
  measure: (server: Server) => Promise<Run>,
): Promise<Pair[]> {
  made += 1
  const { sim } = stage
  const hubPlan = { sim, bot: `hub${made}`, clients, dataDir: mkdtempSync(join(folder, 'hub-')), nodeArgs }
  const barePlan = { sim, bot: `bare${made}`, clients }
  let [hub, bare] = await Promise.all([startHub(hubPlan), startBare(barePlan)])
  const pairs: Pair[] = []
  let repeats = 0
  while (pairs.length < wanted) {
    if (restart) {
      await Promise.all([hub.stop(), bare.stop()])
      hub = await startHub({ ...hubPlan, tokens: hub.tokens })
      bare = await startBare(barePlan)
    }
    await untilUndisturbed(mostStolenPercent)
    const pair = { ours: await watched(stage, hub, measure), bare: await watched(stage, bare, measure) }
    const stolen = Math.max(pair.ours.stolenPercent ?? 0, pair.bare.stolenPercent ?? 0)
    const isDisturbed = stolen > mostStolenPercent && repeats < MOST_REPEATS
    if (isDisturbed) repeats += 1
    else pairs.push(pair)
    const title = isDisturbed ? `disturbed by the host, once more` : `pair ${pairs.length}`
    console.log(`${clients} clients, ${title}\n  hub  ${brief(pair.ours)}\n  bare ${brief(pair.bare)}`)
  }
  await Promise.all([hub.stop(), bare.stop()])
  return pairs
}

/** Measures, and notes how much of the machine went to programs that are none of ours, and to others of its host. */
async function watched(stage: Stage, server: Server, measure: (server: Server) => Promise<Run>): Promise<Run> {
  const ours = async () => (await server.usage()).cpuMs + (await stageCpuMs(stage))
  const [oursBefore, before, stolenBefore] = [await ours(), machineCpuMs(), stolenCpuMs()]
  const found = await measure(server)
  const [oursAfter, after, stolenAfter] = [await ours(), machineCpuMs(), stolenCpuMs()]
  const others = after.busy - before.busy - (oursAfter - oursBefore)
  const percent = (ms: number) => Math.max(0, (100 * ms) / (after.total - before.total))
  return { ...found, othersPercent: percent(others), stolenPercent: percent(stolenAfter - stolenBefore) }
}
