/** The plain data of the agent server. Times are Unix milliseconds. */

/** A piece of a message. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'tool_use'; id: string; name: string; input: unknown }
  | { type: 'tool_result'; toolUseId: string; content: string; isError: boolean }

/** One entry of a transcript. Tool results are messages of the role `tool`; the system prompt is never among them. */
export interface Message {
  role: 'user' | 'assistant' | 'tool'
  content: ContentBlock[]
  runId: string
  /** The turn of the model it belongs to, from 1; 0 for what a person said. */
  step: number
  createdAt: number
  /** Only on a summary that was made for the model: how many messages, from the first on, it stands for. People never see it. */
  covers?: number
}

/** Why a run ended. */
export const FINISH_REASONS = [
  'NoMoreToolCalls',
  'BudgetExceeded',
  'Stuck',
  'Cancelled',
  'ProviderStop',
  'ContextOverflow',
  'WallClockExceeded',
  'Interrupted',
] as const
export type FinishReason = (typeof FINISH_REASONS)[number]

/** Tokens and turns; `cost` in US dollars where the price is known. */
export interface Usage {
  totalSteps: number
  inputTokens: number
  outputTokens: number
  totalTokens: number
  cost: number | null
}

/** What a run tells while it goes on. The first seven are the contract's; the others are told only to who asks for more. */
export type RunEvent =
  | { type: 'message'; role: 'assistant'; content: ContentBlock[]; step: number }
  | { type: 'partial_message'; text: string; step: number }
  | { type: 'tool_call'; id: string; name: string; arguments: unknown; step: number }
  | { type: 'tool_result'; id: string; name: string; success: boolean; output: string; step: number }
  | { type: 'plan_proposed'; planId: string; plan: string; expiresAt: number }
  | { type: 'error'; code: string; message: string }
  | { type: 'done'; finishReason: FinishReason; usage: Usage }
  | { type: 'run_started'; goal: string; model: string }
  | { type: 'plan_decided'; planId: string; decision: PlanDecision['decision'] }
  | { type: 'usage'; usage: Usage }
  | { type: 'compaction'; kind: 'pruned' | 'summarised'; covers: number }
  | { type: 'tool_progress'; id: string; name: string; output: string }

/** Events that every reader gets; the others only with `?extended=1`. */
export const PUBLIC_EVENTS: readonly RunEvent['type'][] = [
  'message',
  'partial_message',
  'tool_call',
  'tool_result',
  'plan_proposed',
  'error',
  'done',
]

/** An event in a session's log. */
export interface StoredEvent {
  /** From 1, never used twice in a session; the SSE id. */
  seq: number
  runId: string
  at: number
  type: RunEvent['type']
  /** The payload as it goes over the wire, JSON text, encoded once for all readers. */
  data: string
}

export interface PlanDecision {
  decision: 'approve' | 'reject'
  /** For the agent: why not, or what to mind. */
  feedback: string | null
  /** The plan as the person changed it; null when it stands. */
  plan: string | null
}

/** A plan that waits for a person. */
export interface PendingPlan {
  planId: string
  runId: string
  plan: string
  proposedAt: number
  expiresAt: number
  /** The tool call that proposed it, to be answered with the decision. */
  toolUseId: string
  step: number
}

/** The last plan that a person decided on, so that the same decision can be given again. */
export interface DecidedPlan {
  planId: string
  runId: string
  decision: PlanDecision
}

export type SessionStatus = 'idle' | 'running' | 'awaiting_plan'

/** A conversation with an agent. */
export interface Session {
  id: string
  createdAt: number
  lastActive: number
  title: string | null
  systemPrompt: string | null
  /** Absolute, inside the server's root. */
  workspace: string
  /** `provider:model`; null takes the server's. */
  model: string | null
  maxSteps: number | null
  /** Writing tools are refused until a plan is approved. */
  planMode: boolean
  /** Accepted runs. */
  turnCount: number
  usage: Usage
  status: SessionStatus
  activeRunId: string | null
  pendingPlan: PendingPlan | null
  /** The `done` up to which a bare stream has taken what there was. */
  takenSeq: number
  decidedPlan?: DecidedPlan
  /** The run that somebody wants to end; whoever works on it looks here when its doorbell rings. */
  cancelRunId?: string
}

/** What a run may use up; null sets no limit. */
export interface RunLimits {
  maxTokens: number | null
  maxCost: number | null
  wallClockMs: number | null
}

/** The smaller of two limits. */
export function lesser(a: number | null, b: number | null | undefined): number | null {
  if (a === null || b === null || b === undefined) return a ?? b ?? null
  return Math.min(a, b)
}

export type RunStatus = 'queued' | 'running' | 'awaiting_plan' | 'finished'

/** One goal given to a session. */
export interface Run {
  id: string
  sessionId: string
  goal: string
  model: string | null
  maxSteps: number
  /** What the caller allowed it beside the steps; absent where the server's limits are all. */
  limits?: RunLimits
  status: RunStatus
  finishReason: FinishReason | null
  /** The text of the error it ended with. */
  error: string | null
  usage: Usage
  createdAt: number
  startedAt: number | null
  finishedAt: number | null
  /** The log's newest number when it was accepted; a receipt says it, so it never changes. */
  acceptedSeq: number
  /** The log's newest number when it began (until then: when it was accepted): its events come after. */
  afterSeq: number
  /** Working time so far; waiting for a plan does not count. */
  activeMs: number
  /** It was put before all that waited. */
  ahead?: true
}

/** Nothing used yet. */
export const NO_USAGE: Usage = { totalSteps: 0, inputTokens: 0, outputTokens: 0, totalTokens: 0, cost: null }

/** What a turn used, with its price where that is known. */
export function usageOf(
  { inputTokens, outputTokens }: { inputTokens: number; outputTokens: number },
  { price }: { price: { input: number; output: number } | null },
): Usage {
  const cost = price === null ? null : (inputTokens * price.input + outputTokens * price.output) / 1_000_000
  return { totalSteps: 1, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, cost }
}

/** The sum of two usages; a known cost and an unknown one are a known one. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    totalSteps: a.totalSteps + b.totalSteps,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    cost: a.cost === null && b.cost === null ? null : (a.cost ?? 0) + (b.cost ?? 0),
  }
}
