import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { FinishReason, Message, Run, StoredEvent } from '../../src/agent/model.ts'
import { validMessages } from '../../src/agent/request.ts'
import type { AgentStore } from '../../src/agent/store/port.ts'
import type { AgentProcess, RawEvent } from './agent-process.ts'

const SESSIONS = 4
const LOOK = { tool_calls: [{ name: 'list_dir', input: { path: '.' } }] }
const WRITE = { tool_calls: [{ name: 'write_file', input: { path: 'a.txt', content: 'x' } }, ...LOOK.tool_calls] }

/** A run of several steps, none of them instant. */
export const ROUND_SCRIPT = [
  { match: 'goal', steps: [{ text: ['I ', 'look.'] }, { stall: 5 }, LOOK] },
  { match: 'goal', steps: [{ stall: 5 }, WRITE] },
  { match: 'goal', steps: [{ text: ['All ', 'is ', 'well.'] }, { stall: 5 }] },
]

/** What callers were told while a server was killed again and again. */
export interface Told {
  sessions: string[]
  /** Runs by the key they were accepted under. */
  accepted: Map<string, string>
  /** What the readers of each session saw. */
  seen: RawEvent[][]
}

/** Kills a server at random moments while runs come in, and starts it again; stopped in order when all runs are over. */
export async function killInRounds(
  agent: AgentProcess,
  { rounds, withinMs }: { rounds: number; withinMs: number },
): Promise<Told> {
  let server = await agent.start()
  const told = await newSessions(agent)
  const { accepted } = told
  const deadline = Date.now() + withinMs
  for (let round = 0; round < rounds && (round < 2 || Date.now() < deadline); round += 1) {
    const end = keepBusy(agent, told, String(round))
    // Every other time not before some runs were accepted, however slow the machine is.
    const enough = round % 2 === 0 ? accepted.size + SESSIONS + 1 : 0
    await expect.poll(() => accepted.size, { timeout: 30_000, interval: 10 }).toBeGreaterThanOrEqual(enough)
    await sleep(20 + Math.random() * 300)
    await server.kill('SIGKILL')
    await end()
    server = await agent.start()
  }
  await Promise.all(told.sessions.map((id) => untilIdle(agent, id)))
  expect(server.child.kill('SIGTERM')).toBe(true)
  await server.ended
  return told
}

/** Sessions of which nothing has been told yet. */
export async function newSessions(agent: AgentProcess): Promise<Told> {
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => newSession(agent)))
  return { sessions, accepted: new Map(), seen: sessions.map(() => []) }
}

/** Asks for runs in all sessions, and reads them, until the returned function is called. */
export function keepBusy(agent: AgentProcess, { sessions, accepted, seen }: Told, name: string): () => Promise<void> {
  const over = new AbortController()
  const busy = sessions.flatMap((id, index) => [
    submit(agent, id, `${name}-${index}`, accepted, over.signal),
    watch(agent, id, seen[index] ?? [], over.signal),
  ])
  return async () => {
    over.abort()
    await Promise.all(busy)
  }
}

/** Holds what the store has against what callers were told; returns how runs have ended. */
export async function expectNothingLost(
  store: AgentStore,
  { sessions, accepted, seen }: Told,
): Promise<Set<FinishReason | null>> {
  const runs: Run[] = []
  for (const [index, id] of sessions.entries()) {
    const events = await store.log.read(id, 0, 1_000_000)
    runs.push(...(await store.runs.list(id)))
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place + 1))
    expect(seen[index]?.filter(({ id: seq, data }) => events[seq - 1]?.data !== data)).toEqual([])
    expectOneDoneEach(events, await store.runs.list(id))
    expectValid(await store.log.transcript(id))
  }
  expect(accepted.size).toBeGreaterThan(SESSIONS)
  expect([...accepted.values()].filter((id) => !runs.some((run) => run.id === id))).toEqual([])
  // A repetition after a crash found the run of the first call.
  expect(new Set(runs.map(({ goal }) => goal)).size).toBe(runs.length)
  return new Set(runs.map(({ finishReason }) => finishReason))
}

/** A new session's id. */
export async function newSession(agent: AgentProcess): Promise<string> {
  const { body } = await agent.call('POST', '/sessions')
  return body.session_id
}

/** Asks for one run after another until the server is gone; what was accepted is noted by its key. */
async function submit(
  agent: AgentProcess,
  id: string,
  name: string,
  accepted: Map<string, string>,
  over: AbortSignal,
): Promise<void> {
  for (let count = 0; !over.aborted; count++) {
    const key = `${name}-${count}`
    const body = { goal: `goal ${key}`, on_busy: 'enqueue' }
    const answer = await agent
      .call('POST', `/sessions/${id}/run`, body, { 'idempotency-key': key })
      .catch(() => undefined)
    if (answer?.status === 202) accepted.set(key, answer.body.run_id)
    await sleep(answer?.status === 202 ? 15 : 40)
  }
}

/** Reads a session's events from where it was left, until the server is gone. */
async function watch(agent: AgentProcess, id: string, seen: RawEvent[], over: AbortSignal): Promise<void> {
  const path = `/sessions/${id}/events?extended=1&after=${seen.at(-1)?.id ?? 0}`
  for await (const event of agent.events(path, over)) seen.push(event)
}

/** Waits until every run of a session is over. */
export async function untilIdle(agent: AgentProcess, id: string): Promise<void> {
  const isOver = async () =>
    (await agent.call('GET', `/sessions/${id}/runs`)).body.runs.every(
      ({ status }: { status: string }) => status === 'finished',
    )
  await expect.poll(isOver, { timeout: 60_000, interval: 50 }).toBe(true)
}

function expectOneDoneEach(events: StoredEvent[], runs: Run[]): void {
  const done = events.filter(({ type }) => type === 'done').map(({ runId }) => runId)
  expect(done.sort()).toEqual(runs.map(({ id }) => id).sort())
  for (const { id, status } of runs) {
    expect(status).toBe('finished')
    expect(events.findLast(({ runId }) => runId === id)?.type).toBe('done')
  }
}

/** As a provider checks it: every call has one result, directly behind it. */
function expectValid(transcript: Message[]): void {
  const valid = validMessages(transcript)
  for (const [index, { role, content }] of valid.entries()) {
    expect(content.length).toBeGreaterThan(0)
    const calls = content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    const answered = valid[index + 1]?.content.flatMap((block) =>
      block.type === 'tool_result' ? [block.toolUseId] : [],
    )
    if (calls.length > 0) expect([role, answered]).toEqual(['assistant', calls])
    if (role === 'tool') expect(valid[index - 1]?.role).toBe('assistant')
  }
}
