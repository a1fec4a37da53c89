import { overgrown } from '../soak/life-signs.ts'
import { createDice, type Dice } from '../support/dice.ts'
import { type CrowdReport, crowd } from './crowds.ts'
import { exchange } from './exchange.ts'
import { anyRequest } from './requests.ts'
import { ADMIN_TOKEN, API_KEY, startTargets, type Target } from './servers.ts'
import { secretTiming, type TimingReport } from './timing.ts'

export interface FuzzOptions {
  seconds: number
  seed: number
  /** Connections of a crowd; fewer where the system allows no more. */
  connections: number
  say: (line: string) => void
}

/** What a fuzz run did and found. */
export interface FuzzReport {
  seed: number
  seconds: number
  /** What broke a promise; empty when all is well. */
  problems: string[]
  requests: Record<Target['name'], number>
  /** Answers, by status. */
  statuses: Record<Target['name'], Record<string, number>>
  crowds: Record<Target['name'], CrowdReport>
  timing: Record<Target['name'], TimingReport>
}

const AT_ONCE = 8
const LOOK_EVERY = 500
const MOST_PROBLEMS = 20
const TIMING_ROUNDS_A_SECOND = 4
const MOST_TIMING_ROUNDS = 2_000
const WARM_UP_SHARE = 0.2

/** Sends hub and agent everything they should refuse, for so long, and says what came of it. */
export async function fuzz({ seconds, seed, connections, say }: FuzzOptions): Promise<FuzzReport> {
  const targets = await startTargets()
  try {
    const attacks = [targets.hub, targets.agent].map((target, index) => newAttack(target, seed + index))
    const crowdMs = Math.min(20_000, (seconds * 1000) / 10)
    const until = async (share: number) => {
      const endsAt = Date.now() + seconds * 1000 * share
      await Promise.all(attacks.map((attack) => runAttack(attack, endsAt, say)))
      for (const { target } of attacks) await target.cleanUp()
      return Promise.all(attacks.map(({ target }) => target.signs()))
    }
    const before = await until(WARM_UP_SHARE)
    const after = await until(1 - WARM_UP_SHARE)
    const [hub, agent] = attacks
    if (hub === undefined || agent === undefined) throw new Error('nothing was attacked')
    for (const [index, { target, problems, requests }] of attacks.entries()) {
      const [was, is] = [before[index], after[index]]
      if (was && is) problems.push(...overgrown(target.name, was, is, { kept: requests }))
    }
    const crowds = {
      hub: await crowd(hub.target.url, connections, crowdMs),
      agent: await crowd(agent.target.url, connections, crowdMs),
    }
    const rounds = Math.min(MOST_TIMING_ROUNDS, Math.ceil(seconds * TIMING_ROUNDS_A_SECOND))
    const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
    const key = (secret: string) => ({ 'x-api-key': secret })
    const timing = {
      hub: await secretTiming(`${hub.target.url}/hub/clients`, bearer, ADMIN_TOKEN, rounds),
      agent: await secretTiming(`${agent.target.url}/tools`, key, API_KEY, rounds),
    }
    for (const { target, problems } of attacks) problems.push(...(await target.complaints()))
    return {
      seed,
      seconds,
      problems: attacks.flatMap(({ target, problems }) => problems.map((problem) => `${target.name}: ${problem}`)),
      requests: { hub: hub.requests, agent: agent.requests },
      statuses: { hub: Object.fromEntries(hub.statuses), agent: Object.fromEntries(agent.statuses) },
      crowds,
      timing,
    }
  } finally {
    await targets.stop()
  }
}

interface Attack {
  target: Target
  dice: Dice
  problems: string[]
  requests: number
  statuses: Map<string, number>
  /** Changes of which nobody heard: what is there may differ from what was told by as many. */
  lost: number
}

function newAttack(target: Target, seed: number): Attack {
  return { target, dice: createDice(seed), problems: [], requests: 0, statuses: new Map(), lost: 0 }
}

async function runAttack(attack: Attack, endsAt: number, say: (line: string) => void): Promise<void> {
  const { target, problems } = attack
  while (Date.now() < endsAt && problems.length < MOST_PROBLEMS) {
    const nextLook = attack.requests + LOOK_EVERY
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (attack.requests < nextLook && Date.now() < endsAt && problems.length < MOST_PROBLEMS)
          await attackOnce(attack)
      }),
    )
    problems.push(...(await target.complaints()))
    const differing = await target.discrepancies()
    if (differing.length > attack.lost) problems.push(...differing.slice(0, 5))
    say(`${target.name}: ${attack.requests} requests, ${problems.length} problems`)
  }
}

async function attackOnce(attack: Attack): Promise<void> {
  const { target, dice, problems, statuses } = attack
  attack.requests += 1
  const operation = target.operations[dice.below(target.operations.length)]
  if (operation === undefined) return
  const request = anyRequest(operation, target, dice)
  const answer = await exchange(target.port, request.delivery)
  statuses.set(String(answer.status), (statuses.get(String(answer.status)) ?? 0) + 1)
  const mayChange = request.method !== 'GET'
  if (answer.status >= 200 && answer.status < 300 && answer.end === 'answered' && !request.isLost)
    target.note(request.method, request.path, answer.status, answer.body)
  else if (mayChange && (request.isLost || answer.end !== 'answered')) attack.lost += 1
  const problem = target.judge(request, answer)
  if (problem !== null) problems.push(`${problem}\n${request.text}`)
}
