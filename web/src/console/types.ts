/** What the agent server answers, as far as the console shows it. */

export interface SessionSummary {
  session_id: string
  created_at: string
  last_active: string
  title: string | null
  status: 'idle' | 'running' | 'awaiting_plan'
  turn_count: number
}

export interface Usage {
  total_steps: number
  total_tokens: number
  input_tokens: number
  output_tokens: number
  cost: number | null
}

export interface WireBlock {
  type: string
  text?: string
  id?: string
  name?: string
  input?: unknown
  tool_use_id?: string
  content?: string
  is_error?: boolean
}

export interface WireMessage {
  role: string
  content: WireBlock[]
  run_id: string
  step: number
}

export interface SessionDetails extends SessionSummary {
  usage: Usage
  model: string
  workspace: string
  system_prompt: string | null
  transcript: WireMessage[]
}

/** An event of a session's stream, read. */
export interface RunEvent {
  id: number
  name: string
  data: Record<string, unknown>
}

/** One thing on the timeline. */
export type Item =
  | { kind: 'goal'; key: string; text: string }
  | { kind: 'text'; key: string; text: string; live: boolean }
  | { kind: 'tool'; key: string; name: string; input: unknown; output: string | null; success: boolean | null }
  | { kind: 'plan'; key: string; plan: string; decision: 'approve' | 'reject' | 'over' | null }
  | { kind: 'error'; key: string; text: string }
  | { kind: 'done'; key: string; reason: string; steps: number; tokens: number }
