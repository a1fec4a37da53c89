import type { Workspace } from '../workspace/port.ts'

/** Something the model can do. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the input. The registry checks it before `run`. */
  readonly parameters: Record<string, unknown>
  /** Changes nothing, so it may run beside others and before a plan is approved. */
  readonly readOnly: boolean
  /** `builtin`, or the name of an MCP server. */
  readonly source: string
  /** Why it cannot be used on this server; then models are not told of it. */
  readonly off?: string | undefined
  /** Does it. What goes wrong and can be said to the model is a result with `success: false`; throwing is a bug (shown to the model as a short text). */
  run(input: unknown, context: ToolContext): Promise<ToolOutput>
}

/** What came of a call. */
export interface ToolOutput {
  success: boolean
  /** For the model. The registry cuts it to its limits and keeps the rest in a file. */
  text: string
}

/** What a tool may use. Its state is the session's own. */
export interface ToolContext {
  workspace: Workspace
  signal: AbortSignal
  /** Kept for the session as long as the server runs: files read (for stale checks), background commands, todos. */
  state: ToolState
  onProgress?: (text: string) => void
}

/** A session's memory of its tools, by tool name. A value with a `close` is closed by `closeTools` when the session ends. */
export type ToolState = Map<string, unknown>
