import { AgentClientError } from '../client/agent-client.ts'
import { modelProblem } from '../client/model-problem.ts'
import { type ChatCommand, chatCommand } from './chat-words.ts'
import { openSlots } from './slots.ts'
import { splitAnswer } from './split-answer.ts'
import type { Conversation, Taken } from './state.ts'
import { TEXTS } from './texts.ts'
import { type TurnTools, takeTurn } from './turns.ts'

/** Works on all conversations at once, on each in order. */
export interface Conversations {
  /** Something may have changed in a conversation: does what there is to do. */
  attend(user: string): void
  /** Goes on with everything that a stop or a crash left. */
  resume(): void
  /** Leaves everything as it is, to be gone on with later. */
  stop(): Promise<void>
  /** Messages that were taken and are not answered. */
  pending(): number
}

export interface ConversationsOptions extends TurnTools {
  maxTurns: number
  /** How often plans that wait are looked after: they may be decided elsewhere, too. */
  planCheckMs?: number
}

interface Working {
  /** Ends this turn's work; what is done with the turn is somebody else's to say. */
  abort: AbortController
  ended: Promise<void>
}

const PLAN_CHECK_MS = 15_000

export function openConversations(options: ConversationsOptions): Conversations {
  const { state, append, agent, outgoing, log } = options
  const slots = openSlots(options.maxTurns)
  const stopping = new AbortController()
  const turning = new Map<string, Working>()
  const commanding = new Map<string, Promise<void>>()
  const checking = setInterval(() => void checkPlans(), options.planCheckMs ?? PLAN_CHECK_MS).unref()

  return {
    attend,
    resume() {
      for (const user of state.conversations.keys()) attend(user)
    },
    async stop() {
      clearInterval(checking)
      stopping.abort()
      await Promise.allSettled([...commanding.values(), ...[...turning.values()].map(({ ended }) => ended)])
    },
    pending() {
      let count = 0
      for (const { waiting, turn } of state.conversations.values())
        count += waiting.length + (turn?.messages.length ?? 0)
      return count
    },
  }

  function attend(user: string): void {
    const conversation = state.conversations.get(user)
    if (conversation === undefined || stopping.signal.aborted || commanding.has(user)) return
    if (conversation.waiting.some(isOurs)) {
      const ended = obey(conversation)
        .catch((error: unknown) => stopping.signal.aborted || log.error('a chat command failed', { error }))
        .then(() => {
          commanding.delete(user)
          attend(user)
        })
      commanding.set(user, ended)
    } else if (!turning.has(user) && hasWork(conversation)) {
      turning.set(user, startTurn(conversation))
    }
  }

  function startTurn(conversation: Conversation): Working {
    const { user } = conversation
    const abort = new AbortController()
    const signal = AbortSignal.any([stopping.signal, abort.signal])
    const ended = slots
      .run(() => takeTurn(options, conversation, signal), signal)
      .catch(async (error: unknown) => {
        if (signal.aborted) return
        // A mistake of ours: to begin again would only repeat it.
        log.error('a turn broke', { error })
        const message = conversation.turn?.messages[0] ?? conversation.waiting[0]
        if (message !== undefined) await reply(message, TEXTS.bridgeFailed).catch(() => undefined)
        await append({ t: 'done', user })
      })
      .then(() => {
        turning.delete(user)
        attend(user)
      })
    return { abort, ended }
  }

  /** What is for the bridge itself goes before everything else that waits, in its order. */
  async function obey(conversation: Conversation): Promise<void> {
    for (const message of conversation.waiting.filter(isOurs)) {
      const command = chatCommand(message.text)
      await reply(message, command === null ? TEXTS.empty : await carryOut(command, conversation, message))
      await append({ t: 'dealt', user: conversation.user, ns: [message.n] })
    }
  }

  async function carryOut(command: ChatCommand, conversation: Conversation, message: Taken): Promise<string> {
    const { user } = conversation
    if (command.name === 'model') {
      if (command.model === null) return currentModel(conversation.model)
      const model = command.model.toLowerCase() === 'default' ? null : command.model
      // One that is chosen already was tried: after a restart the same command gets the same answer.
      const problem = model === null || model === conversation.model ? null : await problemWith(model, message)
      if (problem !== null) return TEXTS.modelRefused(problem)
      await append({ t: 'model', user, model })
      return TEXTS.model(model)
    }
    const stopped = await stopTurn(conversation, message)
    if (command.name === 'stop') return stopped ? TEXTS.stopped : TEXTS.nothingToStop
    await append({ t: 'session', user, session: null, generation: conversation.generation + 1 })
    return TEXTS.newConversation
  }

  /** Ends the turn there is, and forgets what was said before the command. True when there was anything. */
  async function stopTurn(conversation: Conversation, { n }: Taken): Promise<boolean> {
    const { user, session } = conversation
    const working = turning.get(user)
    working?.abort.abort()
    await working?.ended
    const before = conversation.waiting.filter((one) => one.n < n && !isOurs(one)).map((one) => one.n)
    if (before.length > 0) await append({ t: 'dealt', user, ns: before })
    if (conversation.turn === null) return before.length > 0
    // Also where the run's receipt never came: it may have been accepted all the same.
    if (session !== null) await cancelRun(session)
    await append({ t: 'done', user })
    return true
  }

  async function cancelRun(sessionId: string): Promise<void> {
    try {
      await agent.cancel(sessionId, { signal: stopping.signal })
    } catch (error) {
      stopping.signal.throwIfAborted()
      const status = error instanceof AgentClientError ? error.status : null
      if (status !== 404) log.warn('a run could not be cancelled; the agent may still work on it', { status })
    }
  }

  async function reply({ user, contextToken, id, n }: Taken, text: string): Promise<void> {
    for (const [part, piece] of splitAnswer(text).entries()) {
      const clientId = `${state.id}-${id}.${n}-reply.${part}`
      await outgoing.send({ user, contextToken, text: piece, clientId }, stopping.signal)
    }
  }

  async function currentModel(chosen: string | null): Promise<string> {
    const own = await agent.health({ signal: stopping.signal }).then(
      ({ model }) => model,
      () => null,
    )
    stopping.signal.throwIfAborted()
    return `The model is ${chosen ?? own ?? "the agent's own"}. "/model <name>" chooses another, "/model default" goes back.`
  }

  /** Why the agent does not take a model; null when it does, or cannot be asked now. */
  function problemWith(model: string, { id, n }: Taken): Promise<string | null> {
    const idempotencyKey = `${state.id}-${id}.${n}-model`
    return modelProblem(agent, model, { idempotencyKey, signal: stopping.signal })
  }

  /** A plan may be decided in the console, or expire: then its run has gone on. */
  async function checkPlans(): Promise<void> {
    for (const conversation of [...state.conversations.values()]) {
      const { user, session, turn } = conversation
      const plan = turn?.plan ?? null
      if (turn === null || plan === null || session === null || turning.has(user) || commanding.has(user)) continue
      const waits = await agent.runs(session, { signal: stopping.signal }).then(
        (runs) => runs.some((run) => run.run_id === turn.run && run.status === 'awaiting_plan'),
        (error: unknown) => !(error instanceof AgentClientError && error.status === 404),
      )
      if (waits || stopping.signal.aborted || turning.has(user) || turn.plan !== plan) continue
      void append({ t: 'plan', user, plan: null, after: turn.after })
      attend(user)
    }
  }
}

/** A command, or nothing at all: the agent is not asked. */
function isOurs({ text, beside }: Taken): boolean {
  return chatCommand(text) !== null || (text.trim() === '' && beside === '')
}

/** A turn that waits for a plan has work only once the user has said something. */
function hasWork({ turn, waiting }: Conversation): boolean {
  return turn === null || turn.plan !== null ? waiting.length > 0 : true
}
