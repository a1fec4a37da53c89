import { compaction } from './compaction.ts'
import { type LoopTools, type Rest, runAgent, type ToolAnswer, type ToolCall } from './loop.ts'
import { addUsage, lesser, type Message, NO_USAGE, type Run, type Session } from './model.ts'
import { PLAN_TOOL, TASK_TOOL } from './own-tools.ts'
import { type Provider, ProviderError } from './provider/port.ts'
import type { PreparedRun, RunSetup } from './setup.ts'
import type { ToolState } from './tools/port.ts'
import type { ToolRegistry } from './tools/registry.ts'
import type { Workspace } from './workspace/port.ts'

export interface RunSetupOptions {
  registry: ToolRegistry
  /** By name; null is the server's own choice. */
  openModel: (name: string | null) => Promise<Provider>
  openWorkspace: (root: string) => Promise<Workspace>
  /** Ends what a session's tools have running. */
  closeTools: (state: ToolState) => Promise<void>
  maxTokens: number | null
  maxCost: number | null
  now: () => number
}

const TASK_STEPS = 25
const BASE_PROMPT = [
  'You are an agent that works in a folder of files with the tools you are given.',
  'Do what the person asks, with as few steps as it takes. Look before you change something, and check what you did.',
  'Answer in plain words: what you found or did, and what is left. Say so when something did not work.',
].join(' ')

/** What sessions and stateless runs are set up with. */
export function runSetup(options: RunSetupOptions): RunSetup {
  const { registry, openModel, openWorkspace, now } = options
  const states = new Map<string, ToolState>()

  return {
    async prepare(session, run, transcript, signal) {
      const state = states.get(session.id) ?? new Map()
      states.set(session.id, state)
      const kind = session.planMode ? (isApproved(transcript, run) ? 'approved' : 'planning') : 'free'
      return assemble({ session, run, state, kind, signal, asks: true })
    },
    async prepareAlone(session, run, signal) {
      const state: ToolState = new Map()
      const prepared = await assemble({ session, run, state, kind: 'free', signal, asks: false })
      return { ...prepared, close: () => options.closeTools(state) }
    },
    async forget(sessionId) {
      const state = states.get(sessionId)
      states.delete(sessionId)
      if (state) await options.closeTools(state)
    },
    async close() {
      await Promise.all([...states.values()].map(options.closeTools))
      states.clear()
    },
  }

  async function assemble({ session, run, state, kind, signal, asks }: Assembly): Promise<PreparedRun> {
    const provider = await openModel(run.model ?? session.model)
    const workspace = await openWorkspace(session.workspace)
    const system = [BASE_PROMPT, session.systemPrompt, kind === 'planning' ? PLANNING : null]
      .filter((part) => part)
      .join('\n\n')
    const { limits } = run
    const budget = {
      maxTokens: lesser(options.maxTokens, limits?.maxTokens),
      maxCost: lesser(options.maxCost, limits?.maxCost),
    }
    const own = asks ? [PLAN_TOOL, TASK_TOOL] : [TASK_TOOL]
    const readOnly = new Set(
      registry
        .describe()
        .filter((tool) => tool.readOnly)
        .map(({ name }) => name),
    )

    const tools: LoopTools = {
      describe: () =>
        [...registry.describe(), ...own].map(({ name, description, parameters, readOnly }) => ({
          name,
          description,
          parameters: { ...parameters },
          readOnly,
        })),
      async run(call, stop, onProgress, rest) {
        if (call.invalid !== undefined) return refused(BAD_ARGUMENTS)
        if (call.name === PLAN_TOOL.name)
          return refused(asks ? 'A plan needs a text; give it in `plan`.' : 'Nobody can be asked here; go on without.')
        if (kind === 'planning' && !readOnly.has(call.name))
          return refused('Nothing may be changed before a plan is approved: use propose_plan first.')
        if (call.name === TASK_TOOL.name) return subTask(call, { provider, workspace, state, signal: stop, rest })
        return registry.run(call.name, call.input, { workspace, signal: stop, state, onProgress })
      },
    }
    const described = tools.describe()
    return {
      provider,
      system,
      tools,
      fit: compaction({ provider, system, tools: described, signal }),
      ...budget,
    }
  }

  /** A loop of its own, with everything but plans and further sub-tasks; what it uses is the run's. */
  async function subTask(
    call: ToolCall,
    { provider, workspace, state, signal, rest }: TaskSurroundings,
  ): Promise<ToolAnswer> {
    const goal =
      typeof call.input === 'object' && call.input !== null && 'goal' in call.input ? String(call.input.goal) : ''
    if (goal.trim() === '') return refused('goal is missing; say what the helper is to do.')
    if (rest.steps < 1 || (rest.tokens ?? 1) <= 0 || (rest.cost ?? 1) <= 0) return refused(NOTHING_LEFT)
    const tools: LoopTools = {
      describe: () =>
        registry
          .describe()
          .map(({ name, description, parameters, readOnly }) => ({ name, description, parameters, readOnly })),
      run: async (inner, stop) =>
        inner.invalid === undefined
          ? registry.run(inner.name, inner.input, { workspace, signal: stop, state })
          : refused(BAD_ARGUMENTS),
    }
    const transcript: Message[] = [
      { role: 'user', content: [{ type: 'text', text: goal }], runId: call.id, step: 0, createdAt: now() },
    ]
    const fit = compaction({ provider, system: BASE_PROMPT, tools: tools.describe(), signal })
    const loop = runAgent({
      runId: call.id,
      provider,
      system: BASE_PROMPT,
      transcript,
      tools,
      stepsBefore: 0,
      maxSteps: Math.min(TASK_STEPS, rest.steps),
      maxTokens: rest.tokens,
      maxCost: rest.cost,
      fit,
      signal,
      now,
    })
    let usage = NO_USAGE
    let answer = ''
    try {
      for (;;) {
        const { done, value } = await loop.next()
        if (done) return { success: answer !== '', text: answer || 'The helper gave no answer.', usage }
        usage = addUsage(usage, value.usage)
        for (const event of value.events) if (event.type === 'message') answer = textOf(event.content)
      }
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      return { ...refused(`The helper could not go on: ${error.message}`), usage }
    }
  }
}

interface TaskSurroundings {
  provider: Provider
  workspace: Workspace
  state: ToolState
  signal: AbortSignal
  rest: Rest
}

interface Assembly {
  session: Pick<Session, 'model' | 'systemPrompt' | 'workspace'>
  run: Pick<Run, 'model' | 'limits'>
  state: ToolState
  kind: 'free' | 'planning' | 'approved'
  signal: AbortSignal
  /** Whether a person can be asked. */
  asks: boolean
}

const NOTHING_LEFT = 'Too little is left of what this run may use for a helper; finish the work yourself.'
const BAD_ARGUMENTS = 'The arguments of this call were not valid JSON. Call it again with valid ones.'
const PLANNING =
  'Look around as much as you need, then propose a plan with propose_plan. Nothing can be changed before it is approved.'

/** A person approved a plan in this run. */
function isApproved(transcript: Message[], run: Pick<Run, 'id'>): boolean {
  const mine = transcript.filter(({ runId }) => runId === run.id).flatMap(({ content }) => content)
  const proposals = new Set(
    mine.flatMap((block) => (block.type === 'tool_use' && block.name === PLAN_TOOL.name ? [block.id] : [])),
  )
  return mine.some((block) => block.type === 'tool_result' && proposals.has(block.toolUseId) && !block.isError)
}

function textOf(content: Message['content']): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

function refused(text: string): ToolAnswer {
  return { success: false, text }
}
