import { type AgentClient, AgentClientError, type AgentEvent } from '../client/agent-client.ts'
import { modelProblem } from '../client/model-problem.ts'
import { type PlanWord, planWord } from '../client/plan-word.ts'
import { errorText } from '../kit/errors.ts'
import type { ChatInput } from './chat-input.ts'
import type { ChatScreen } from './chat-screen.ts'

export interface ChatOptions {
  agent: AgentClient
  input: ChatInput
  screen: ChatScreen
  sessionId: string
  newSession: () => Promise<string>
  model: string | null
  /** Opens a plan in an editor; null when there is none. */
  edit: ((plan: string) => string) | null
}

const HELP = '/new begins a new session, /model <name> chooses a model, /exit leaves. Ctrl-C stops a run.'
const ASK_PLAN = 'approve, approve: <the plan as you want it>, reject: <why>, or edit'

/** Talks until the input ends. False when a run failed. */
export async function chat(options: ChatOptions): Promise<boolean> {
  const { agent, input, screen } = options
  let { sessionId, model } = options
  let running = false
  let wantsOut = false
  let allWell = true
  input.onInterrupt(() => {
    if (running) {
      screen.note('stopping the run…')
      agent.cancel(sessionId).catch((error: unknown) => screen.note(errorText(error)))
    } else if (wantsOut || !input.interactive) {
      input.close()
    } else {
      wantsOut = true
      screen.note('Ctrl-C again, or /exit, leaves.')
    }
  })

  await catchUp()
  for (let line = await input.next('> '); line !== null; line = await input.next('> ')) {
    wantsOut = false
    const text = line.trim()
    if (text === '') continue
    const [command, argument = ''] = text.split(/\s+/, 2)
    if (command === '/exit' || command === '/quit') break
    if (command === '/help') screen.note(HELP)
    else if (command === '/new') {
      sessionId = await options.newSession()
      screen.note(`A new session: ${sessionId}`)
    } else if (command === '/model') {
      await chooseModel(argument === '' || argument === 'default' ? null : argument)
    } else {
      const order = model === null ? {} : { model }
      await follow(agent.runAndFollow(sessionId, text, order))
    }
  }
  return allWell

  /** One that the agent does not take is told at once, and not by every goal that follows. */
  async function chooseModel(wanted: string | null): Promise<void> {
    const problem = wanted === null ? null : await modelProblem(agent, wanted)
    if (problem !== null) return screen.note(`${problem} The model stays as it was.`)
    model = wanted
    screen.note(model === null ? "The agent's own model answers." : `${model} answers from now on.`)
  }

  /** A session that is at work, or waits for a plan, is gone on with first. */
  async function catchUp(): Promise<void> {
    const { status, active_run_id: runId, pending_plan: pending } = await agent.session(sessionId)
    if (status === 'idle') return
    const plan = isPlan(pending) ? pending : null
    screen.note(plan === null ? 'This session is at work.' : 'A plan of this session waits for your word.')
    await follow(eventsOf(String(runId), plan?.plan_id ?? null))
  }

  /** The events of a run; those before the plan that waits are over. */
  async function* eventsOf(runId: string, planId: string | null): AsyncGenerator<AgentEvent, void, undefined> {
    let over = planId !== null
    for await (const event of allEvents()) {
      if (event.data.run_id !== runId) continue
      if (event.event === 'plan_proposed' && event.data.plan_id === planId) over = false
      if (!over) yield event
      if (event.event === 'done') return
    }
  }

  /** From the beginning, or from where the log begins: a long one may have been cut. */
  async function* allEvents(): AsyncGenerator<AgentEvent, void, undefined> {
    try {
      yield* agent.events(sessionId, { after: 0 })
    } catch (error) {
      const oldest = error instanceof AgentClientError ? error.details?.oldest : undefined
      if (typeof oldest !== 'number') throw error
      yield* agent.events(sessionId, { after: oldest - 1 })
    }
  }

  async function follow(events: AsyncGenerator<AgentEvent, void, undefined>): Promise<void> {
    running = true
    try {
      for await (const event of events) {
        screen.show(event)
        if (event.event === 'error') allWell = false
        if (event.event === 'plan_proposed') await decide(event.data.plan, event.data.plan_id)
      }
    } catch (error) {
      allWell = false
      screen.note(errorText(error))
    } finally {
      running = false
    }
  }

  async function decide(plan: string, planId: string): Promise<void> {
    const word = await askWord(plan)
    await agent.decidePlan(sessionId, { plan_id: planId, ...word }).catch((error: unknown) => {
      screen.note(errorText(error))
    })
  }

  async function askWord(plan: string): Promise<PlanWord> {
    for (;;) {
      screen.note(ASK_PLAN)
      const line = await input.next('plan> ')
      if (line === null) return { decision: 'reject', feedback: 'Nobody is there to decide.' }
      if (line.trim().toLowerCase() !== 'edit') return planWord(line)
      const edited = options.edit?.(plan)
      if (edited?.trim()) return { decision: 'approve', plan: edited }
      if (edited !== undefined) screen.note('There was nothing left of the plan, so nothing is decided.')
      else screen.note('Set EDITOR to edit here, or type "approve: <the plan as you want it>".')
    }
  }
}

function isPlan(value: unknown): value is { plan_id: string } {
  return typeof value === 'object' && value !== null && 'plan_id' in value && typeof value.plan_id === 'string'
}
