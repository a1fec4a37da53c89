import { sleep } from '../../src/kit/retry.ts'
import type { FaultBody } from '../../src/wire/sim.ts'
import { createDice, type Dice } from '../support/dice.ts'
import { type LifeSigns, overgrown } from './life-signs.ts'
import { type MessageLedger, newMessageLedger, runMessages, unansweredWords, unsentReplies } from './messages.ts'
import { newRunLedger, type RunLedger, runRuns } from './runs.ts'
import { PROGRAMS, type ProgramName, type Stage, startStage } from './stage.ts'

export interface SoakOptions {
  seconds: number
  seed: number
  /** Gets a line now and then. */
  say: (line: string) => void
}

/** How a soak went. */
export interface SoakReport {
  /** What broke a promise; empty when all is well. */
  problems: string[]
  seconds: number
  seed: number
  messages: { said: number; got: number; twice: number; replied: number; words: number; cuts: number }
  runs: { begun: number; ended: number; reasons: Record<string, number>; cuts: number; sessions: number }
  faults: Record<string, number>
  crashes: Record<ProgramName, number>
  afterWarmUp: Record<ProgramName, LifeSigns>
  atTheEnd: Record<ProgramName, LifeSigns>
}

const FAULTS: readonly [FaultBody, ...FaultBody[]] = [
  { kind: 'down', for_ms: 700 },
  { kind: 'throttle', for_ms: 700 },
  { kind: 'slow', delay_ms: 200, for_ms: 1_500 },
  { kind: 'http_error', status: 502, only: 'getupdates', count: 3 },
  { kind: 'http_error', status: 503, only: 'sendmessage', count: 2 },
  { kind: 'bad_json', count: 2 },
  { kind: 'duplicate', count: 5 },
]
const FAULT_EVERY_MS = 4_000
/** Crashes fill the first half; in the second the processes stay, so that what they gather can be seen. */
const CRASH_HALF = 0.5
const CRASH_EVERY_MS = 5_000
/** For everything together that is still under way when nothing new begins. */
const SETTLE_MS = 120_000
/** Longer than a server keeps a connection that nobody uses. */
const IDLE_MS = 90_000

/** Loads hub, bridge and agent with everything at once while things break, and says what it found. */
export async function soak({ seconds, seed, say }: SoakOptions): Promise<SoakReport> {
  const dice = createDice(seed)
  const stage = await startStage()
  try {
    const load = startLoad(stage, dice)
    const faults = new Map<string, number>()
    const crashes: Record<ProgramName, number> = { hub: 0, agent: 0, bridge: 0 }
    const stopFaults = new AbortController()
    const breaking = breakThings(stage, dice, { faults, signal: stopFaults.signal })
    await crashThings(stage, { untilMs: Date.now() + seconds * 1000 * CRASH_HALF, crashes, load, say })
    const afterWarmUp = await stage.signs()
    const endsAt = Date.now() + seconds * 1000 * (1 - CRASH_HALF)
    while (Date.now() < endsAt && load.failed() === null) {
      await sleep(Math.min(30_000, endsAt - Date.now()))
      say(progress(load))
    }
    stopFaults.abort()
    await breaking
    stage.sim.control.faults.clear()
    const problems = await load.finish(say)
    let atTheEnd = await stage.signs()
    const allowance = { kept: kept(load) }
    say('all is quiet: life signs')
    const grown = () => PROGRAMS.flatMap((name) => overgrown(name, afterWarmUp[name], atTheEnd[name], allowance))
    // A connection that nobody uses is kept for a while; what has only grown stays.
    for (const endsAt = Date.now() + IDLE_MS; grown().length > 0 && Date.now() < endsAt; await sleep(1_000))
      atTheEnd = await stage.signs()
    problems.push(...grown())
    return {
      problems,
      seconds,
      seed,
      ...figures(load),
      faults: Object.fromEntries(faults),
      crashes,
      afterWarmUp,
      atTheEnd,
    }
  } finally {
    await stage.stop()
  }
}

interface Load {
  messages: MessageLedger
  runs: RunLedger
  /** What ended the load before its time. */
  failed(): string | null
  /** Stops it in order and gives everything that is missing or wrong; tells what it waits for. */
  finish(say: (line: string) => void): Promise<string[]>
}

function startLoad({ sim, hubUrl, agentUrl }: Stage, dice: Dice): Load {
  const [messages, runs] = [newMessageLedger(), newRunLedger()]
  const [beginning, polling] = [new AbortController(), new AbortController()]
  let failure: string | null = null
  const failed = (error: unknown) => {
    failure ??= error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
  const talking = runMessages({
    sim,
    hubUrl,
    dice,
    ledger: messages,
    saying: beginning.signal,
    polling: polling.signal,
  }).catch(failed)
  const running = runRuns({ agentUrl, dice, ledger: runs, beginning: beginning.signal }).catch(failed)
  return {
    messages,
    runs,
    failed: () => failure,
    async finish(say) {
      beginning.abort()
      say(`the last runs are to end: ${runs.ended} of ${runs.begun}`)
      await running
      say(`the last messages are to arrive: ${messages.got.size} of ${messages.said.size}`)
      const deadline = Date.now() + SETTLE_MS
      const unheard = await settled(deadline, () =>
        [...messages.said.keys()].filter((number) => !messages.got.has(number)),
      )
      say(`the last words are to be answered, of ${messages.words.size}`)
      const unanswered = await settled(deadline, () => unansweredWords(sim, messages))
      say('the last polls are to end')
      polling.abort()
      await talking
      say(`the last replies are to be sent, of ${messages.replied.size}`)
      const unsent = await settled(deadline, () => unsentReplies(sim, messages))
      return [
        ...(failure === null ? [] : [failure]),
        ...runs.wrong,
        ...lost('messages never reached their client', unheard),
        ...lost('words were never answered through the bridge', unanswered),
        ...lost('replies that the hub took never reached their user', unsent),
        ...(runs.ended === runs.begun ? [] : [`${runs.begun} runs were begun and ${runs.ended} ended`]),
      ]
    },
  }
}

/** What is left of a list that should become empty, once it is or the time is up. */
async function settled<T>(deadline: number, missing: () => T[] | Promise<T[]>): Promise<T[]> {
  for (;;) {
    const left = await missing()
    if (left.length === 0 || Date.now() > deadline) return left
    await sleep(100)
  }
}

function lost(what: string, missing: readonly unknown[]): string[] {
  return missing.length === 0 ? [] : [`${missing.length} ${what}: ${missing.slice(0, 20).join(', ')}`]
}

/** A fault of the messaging service every few seconds. */
async function breakThings(
  { sim }: Stage,
  dice: Dice,
  { faults, signal }: { faults: Map<string, number>; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const fault = dice.pick(FAULTS)
    // What is left of the last one goes, or they would pile up faster than a hub that waits between tries meets them.
    sim.control.faults.clear()
    sim.control.faults.add(fault)
    faults.set(fault.kind, (faults.get(fault.kind) ?? 0) + 1)
    await sleep(FAULT_EVERY_MS, signal)
  }
}

/** Kills one program after the other, in turn, and starts it again. */
async function crashThings(
  stage: Stage,
  plan: { untilMs: number; crashes: Record<ProgramName, number>; load: Load; say: (line: string) => void },
): Promise<void> {
  const { untilMs, crashes, load, say } = plan
  for (let turn = 0; Date.now() < untilMs && load.failed() === null; turn += 1) {
    await sleep(Math.min(CRASH_EVERY_MS, Math.max(0, untilMs - Date.now())))
    const name = PROGRAMS[turn % PROGRAMS.length] ?? 'hub'
    await stage.crash(name)
    crashes[name] += 1
    say(`${name} was killed and started again; ${progress(load)}`)
  }
}

/** What is kept on disk by now. */
function kept({ messages, runs }: Load): number {
  return messages.said.size + 2 * messages.words.size + runs.begun
}

function progress({ messages, runs }: Load): string {
  return `${messages.got.size} of ${messages.said.size} messages, ${messages.words.size} words, ${runs.ended} of ${runs.begun} runs`
}

function figures({ messages, runs }: Load): Pick<SoakReport, 'messages' | 'runs'> {
  const twice = [...messages.got.values()].filter((count) => count > 1).length
  const { said, got, replied, words, cuts } = messages
  const { begun, ended, reasons, sessions } = runs
  return {
    messages: { said: said.size, got: got.size, twice, replied: replied.size, words: words.size, cuts },
    runs: { begun, ended, reasons: Object.fromEntries(reasons), cuts: runs.cuts, sessions },
  }
}
