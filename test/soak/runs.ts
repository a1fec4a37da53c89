import { AgentClientError, agentClient } from '../../src/client/agent-client.ts'
import { sleep } from '../../src/kit/retry.ts'
import type { Dice } from '../support/dice.ts'

/** Runs that were begun, and what became of them. */
export interface RunLedger {
  begun: number
  ended: number
  /** By `finish_reason`. */
  reasons: Map<string, number>
  /** Whatever broke a promise: events out of order, none or two `done`, a run that is nowhere. */
  wrong: string[]
  /** Streams that were cut off on purpose and read on elsewhere. */
  cuts: number
  sessions: number
}

export interface RunLoad {
  agentUrl: string
  dice: Dice
  ledger: RunLedger
  /** No more runs are begun from here on. */
  beginning: AbortSignal
}

const CALLERS = 3
const RUNS_PER_SESSION = 20
const BETWEEN_RUNS_MS = 200
const PATIENCE_MS = 120_000
const CUT_SHARE = 0.3
const GOALS = ['list files', 'read README.md', 'write soak.txt: hi', 'hello there'] as const

export function newRunLedger(): RunLedger {
  return { begun: 0, ended: 0, reasons: new Map(), wrong: [], cuts: 0, sessions: 0 }
}

/** Callers, each with a session that it leaves for another after some runs, until they are told to stop. */
export async function runRuns(load: RunLoad): Promise<void> {
  await Promise.all(Array.from({ length: CALLERS }, (_, caller) => callForEver(load, caller)))
}

async function callForEver({ agentUrl, dice, ledger, beginning }: RunLoad, caller: number): Promise<void> {
  const client = agentClient({ url: agentUrl, patienceMs: PATIENCE_MS })
  for (let made = 0; !beginning.aborted; made += 1) {
    const title = `soak ${caller}.${made}`
    const { session_id: session } = await insisting(() =>
      client.createSession({ title }, { idempotencyKey: `session-${caller}-${made}` }),
    )
    ledger.sessions += 1
    let after = 0
    for (let run = 0; run < RUNS_PER_SESSION && !beginning.aborted; run += 1) {
      after = await oneRun(session, `${caller}-${made}-${run}`, after)
      await sleep(BETWEEN_RUNS_MS, beginning)
    }
    await checkRuns(session)
    await insisting(() => client.remove(session)).catch(ignoreGone)
  }

  /** Begins a run and reads its events to its `done`, cut off on the way or not; gives the number of the last one. */
  async function oneRun(session: string, key: string, from: number): Promise<number> {
    ledger.begun += 1
    const goal = dice.pick(GOALS)
    const { run_id: run } = await insisting(() => client.run(session, goal, { idempotencyKey: key }))
    let after = from
    for (;;) {
      const cut = dice.chance(CUT_SHARE) ? AbortSignal.timeout(dice.below(100)) : undefined
      const options = { after, extended: true, ...(cut ? { signal: cut } : {}) }
      for await (const { id, event, data } of client.events(session, options)) {
        if (id !== after + 1) ledger.wrong.push(`run ${run}: event ${id} came after ${after}`)
        after = id
        if (event !== 'done' || data.run_id !== run) continue
        ledger.ended += 1
        ledger.reasons.set(data.finish_reason, (ledger.reasons.get(data.finish_reason) ?? 0) + 1)
        return after
      }
      ledger.cuts += 1
    }
  }

  /** Every run of a session is over, and its log has one `done` for each. */
  async function checkRuns(session: string): Promise<void> {
    const runs = await insisting(() => client.runs(session))
    const done = new Map<string, number>()
    let ended = 0
    for await (const { event, data } of client.events(session, { after: 0 })) {
      if (event !== 'done') continue
      done.set(data.run_id, (done.get(data.run_id) ?? 0) + 1)
      ended += 1
      if (ended === runs.length) break
    }
    for (const { run_id: id, status } of runs) {
      if (status !== 'finished') ledger.wrong.push(`run ${id} is ${status}`)
      if (done.get(id) !== 1) ledger.wrong.push(`run ${id} has ${done.get(id) ?? 0} done`)
    }
  }
}

/** Calls again while the server is away. */
async function insisting<T>(call: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await call()
    } catch (error) {
      const mayPass = error instanceof AgentClientError && (error.status ?? 500) >= 500
      if (!mayPass || Date.now() > deadline) throw error
    }
    await sleep(100)
  }
}

/** The first try may have done it. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof AgentClientError) || error.status !== 404) throw error
}
