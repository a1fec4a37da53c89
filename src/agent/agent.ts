import type { EventStreams } from './http/events.ts'
import type { Session } from './model.ts'
import type { SessionRunner } from './session-runner.ts'
import type { StatelessRuns } from './stateless.ts'
import type { AgentStore } from './store/port.ts'
import type { ToolRegistry } from './tools/registry.ts'

/** The agent server, without its HTTP. */
export interface AgentServer {
  readonly store: AgentStore
  readonly runner: SessionRunner
  readonly streams: EventStreams
  readonly alone: StatelessRuns
  readonly registry: ToolRegistry
  readonly now: () => number
  /** The folder of a new session, made if it is not there; `workspace_outside` when it lies elsewhere. */
  workspaceFor(asked: string | null): Promise<string>
  /** `unknown_model` or `model_not_configured` for a name that cannot be used here. */
  checkModel(name: string): Promise<void>
  /** The name of the model that answers in a session. */
  modelOf(session: Pick<Session, 'model'>): string
  /** Wakes the readers of a session. */
  ring(sessionId: string): void
}
