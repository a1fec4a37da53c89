import { type AgentClient, AgentClientError } from '../client/agent-client.ts'
import { planWord } from '../client/plan-word.ts'
import type { Log } from '../kit/log.ts'
import { backoff, sleep } from '../kit/retry.ts'
import { followRun, type RunEnd } from './follow-run.ts'
import type { Outgoing } from './outgoing.ts'
import { splitAnswer } from './split-answer.ts'
import type { BridgeRecord, BridgeState, Conversation, Turn } from './state.ts'
import { endingText, goalText, TEXTS } from './texts.ts'
import type { TypingSigns } from './typing.ts'

/** What turns are worked on with. */
export interface TurnTools {
  state: BridgeState
  /** Changes the state at once; resolves when that is durable. */
  append: (record: BridgeRecord) => Promise<void>
  agent: AgentClient
  outgoing: Outgoing
  typing: TypingSigns
  log: Log
  now: () => number
  /** What every new session is told about its place. */
  systemPrompt: string
  planMode: boolean
  /** Each conversation works in a folder of its own. */
  ownFolders: boolean
  /** Tell the user in a short line which tools are used. */
  showTools: boolean
  /** After so long without the agent the user is told that it is away. */
  tellAwayMs: number
}

/** What a turn came to. */
type Outcome = 'over' | 'again' | 'parked'

const MOST_ATTEMPTS = 4
const FIRST_RETRY_MS = 250
const MOST_RETRY_MS = 15_000
/** The hub knows the ids of what it sent for ten minutes. */
const HUB_REMEMBERS_MS = 9 * 60_000

/**
 * Works on a conversation: takes what waits as a turn, or goes on with the turn there is, until its answer is with the
 * user or a plan waits for the user's word. Whatever it did is in the journal, so it can be cut off anywhere and called
 * again. Rejects when `signal` aborts.
 */
export async function takeTurn(tools: TurnTools, conversation: Conversation, signal: AbortSignal): Promise<void> {
  const { append, typing } = tools
  const { user } = conversation
  if (conversation.turn === null) await append({ t: 'turn', user, count: conversation.waiting.length })
  const { turn } = conversation
  if (turn === null || turn.messages.length === 0) return
  const work = workOn(tools, conversation, turn, signal)
  typing.show(user, work.contextToken)
  try {
    let outcome = turn.plan === null ? 'again' : await work.answerPlan(turn.plan)
    while (outcome === 'again') outcome = await work.attempt()
    if (outcome === 'over') void append({ t: 'done', user })
  } finally {
    typing.hide(user)
  }
}

function workOn(tools: TurnTools, conversation: Conversation, turn: Turn, signal: AbortSignal) {
  const { append, agent, outgoing, typing, log, now, state } = tools
  const { user } = conversation
  const contextToken = turn.messages.at(-1)?.contextToken ?? conversation.contextToken
  let toldAway = false

  return { contextToken, attempt, answerPlan }

  /** Asks the agent, or goes on listening to it, up to the end of the run or to a plan. */
  async function attempt(): Promise<Outcome> {
    try {
      const sessionId = conversation.session ?? (await makeSession())
      if (turn.run === null) await postRun(sessionId)
      const end = await patiently(() =>
        followRun({ agent, sessionId, turn, signal, tell, show, showTools: tools.showTools }),
      )
      return await conclude(end)
    } catch (error) {
      signal.throwIfAborted()
      return await afterFailure(error)
    }
  }

  async function makeSession(): Promise<string> {
    const generation = conversation.generation
    const folder = tools.ownFolders ? { workspace: `users/${folderName(user)}` } : {}
    const body = {
      title: user,
      system_prompt: tools.systemPrompt,
      ...(tools.planMode ? { plan_mode: true } : {}),
      ...folder,
    }
    const idempotencyKey = `${state.id}-${user}-${generation}`.slice(0, 256)
    const made = await patiently(() => agent.createSession(body, { idempotencyKey, signal }))
    await append({ t: 'session', user, session: made.session_id, generation })
    return made.session_id
  }

  /** Under a key, so that a run is begun once even where its receipt was lost. */
  async function postRun(sessionId: string): Promise<void> {
    const { model } = conversation
    const receipt = await patiently(() =>
      agent.run(sessionId, goalText(turn.messages, turn.attempt), {
        on_busy: 'enqueue',
        idempotencyKey: keyOf(),
        signal,
        ...(model === null ? {} : { model }),
      }),
    )
    const after = Number(/[?&]after=(\d+)/.exec(receipt.events_url)?.[1] ?? 0)
    await append({ t: 'run', user, run: receipt.run_id, after })
  }

  async function conclude(end: RunEnd): Promise<Outcome> {
    if (end.type === 'plan') {
      await append({ t: 'plan', user, plan: end.planId, after: end.after })
      return 'parked'
    }
    if (end.reason === 'Interrupted') return begunAgain(TEXTS.again)
    const text = endText(end, turn.spoke)
    if (text !== null) await tell(`end`, text)
    return 'over'
  }

  /** The user's next words decide a plan. Only what the agent has heard is taken off the list. */
  async function answerPlan(planId: string): Promise<Outcome> {
    const [word] = conversation.waiting
    const sessionId = conversation.session
    if (word === undefined || sessionId === null) return 'parked'
    try {
      await patiently(() => agent.decidePlan(sessionId, { plan_id: planId, ...planWord(word.text) }, { signal }))
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof AgentClientError) || error.status !== 409) return afterFailure(error)
      await tell(`plan-${word.n}`, TEXTS.decidedAlready)
    }
    void append({ t: 'dealt', user, ns: [word.n] })
    await append({ t: 'plan', user, plan: null, after: turn.after })
    return 'again'
  }

  async function afterFailure(error: unknown): Promise<Outcome> {
    if (error instanceof AgentClientError && isGone(error)) {
      log.warn('the agent no longer knows a session; a new one is begun', { code: error.code })
      await append({ t: 'session', user, session: null, generation: conversation.generation + 1 })
      return begunAgain(TEXTS.forgotten)
    }
    if (error instanceof AgentClientError && ['unknown_model', 'model_not_configured'].includes(error.code))
      await append({ t: 'model', user, model: null })
    log.error('a turn failed', { attempt: turn.attempt, error })
    await tell('failed', error instanceof AgentClientError ? TEXTS.failed(error.message) : TEXTS.bridgeFailed)
    return 'over'
  }

  async function begunAgain(says: string): Promise<Outcome> {
    if (turn.attempt >= MOST_ATTEMPTS) {
      await tell('end', TEXTS.interrupted)
      return 'over'
    }
    await tell('again', says)
    await append({ t: 'again', user, attempt: turn.attempt + 1 })
    return 'again'
  }

  /** Says something to the user; under the same name it is said once. */
  async function tell(name: string, text: string, after?: number): Promise<void> {
    const key = `${keyOf()}-${name}`
    const before = turn.sending?.key === key ? turn.sending : null
    for (const [part, piece] of splitAnswer(text).entries()) {
      if (before !== null && part < before.part) continue
      await append({ t: 'sending', user, key, part, at: now() })
      const stale = before !== null && part === before.part && now() - before.at > HUB_REMEMBERS_MS
      const sent = stale ? `${TEXTS.perhapsTwice}\n${piece}` : piece
      await outgoing.send({ user, contextToken, text: sent, clientId: `${key}.${part}` }, signal)
      typing.ended(user)
    }
    if (after !== undefined) void append({ t: 'told', user, after })
  }

  function show(): void {
    typing.show(user, contextToken)
  }

  /** Tries until it works, as long as waiting can help. */
  async function patiently<T>(call: () => Promise<T>): Promise<T> {
    const pause = backoff({ firstMs: FIRST_RETRY_MS, mostMs: MOST_RETRY_MS })
    const since = now()
    for (;;) {
      try {
        return await call()
      } catch (error) {
        signal.throwIfAborted()
        if (!mayPass(error)) throw error
        if (!toldAway && now() - since >= tools.tellAwayMs) {
          toldAway = true
          await tell('away', TEXTS.away)
        }
        const askedMs = error instanceof AgentClientError ? (error.retryAfterMs ?? 0) : 0
        const untilTold = toldAway ? Number.POSITIVE_INFINITY : Math.max(0, since + tools.tellAwayMs - now())
        await sleep(Math.min(Math.max(askedMs, pause.next()), untilTold), signal)
        signal.throwIfAborted()
      }
    }
  }

  function keyOf(): string {
    const first = turn.messages[0]
    return `${state.id}-${first?.id}.${first?.n}-${turn.attempt}`
  }
}

function endText({ reason, error }: Extract<RunEnd, { type: 'done' }>, spoke: boolean): string | null {
  if (reason === 'Cancelled') return TEXTS.stopped
  // What the user can do about it here is not what a caller of the agent can do.
  if (error !== null && reason !== 'ContextOverflow') return TEXTS.failed(error)
  return endingText(reason) ?? (spoke ? null : TEXTS.silent)
}

function isGone({ status, code }: AgentClientError): boolean {
  return status === 404 || code === 'cursor_expired'
}

/** Full, busy, restarting, not there: it passes by itself. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof AgentClientError) || error.code === 'not_an_agent') return false
  return error.status === null || [408, 429, 500, 502, 503, 504].includes(error.status)
}

/** A user's id as the name of a folder, never two users' the same. */
function folderName(user: string): string {
  return encodeURIComponent(user).replaceAll('.', '%2E')
}
