import type { RunInput } from './loop.ts'
import type { Run, Session } from './model.ts'

/** Gives a run what it works with: the model, the tools on the session's workspace, the prompt. */
export interface RunSetup {
  prepare(
    session: Session,
    run: Run,
    signal: AbortSignal,
  ): Promise<Pick<RunInput, 'provider' | 'system' | 'tools' | 'fit' | 'maxTokens' | 'maxCost'>>
  /** From now on the session's tools may write. */
  approvePlan(sessionId: string): void
  /** Ends background commands and forgets what the tools remembered. */
  forget(sessionId: string): Promise<void>
  close(): Promise<void>
}
