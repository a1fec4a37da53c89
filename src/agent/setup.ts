import type { RunInput } from './loop.ts'
import type { Message, Run, Session } from './model.ts'

/** What a run works with. */
export type PreparedRun = Pick<RunInput, 'provider' | 'system' | 'tools' | 'fit' | 'maxTokens' | 'maxCost'>

/** Gives a run what it works with: the model, the tools on the session's workspace, the prompt. */
export interface RunSetup {
  prepare(session: Session, run: Run, transcript: Message[], signal: AbortSignal): Promise<PreparedRun>
  /** For a run without a session: nobody can be asked, nothing is remembered, and its end is told to `close`. */
  prepareAlone(
    session: Pick<Session, 'model' | 'systemPrompt' | 'workspace'>,
    run: Pick<Run, 'model' | 'limits'>,
    signal: AbortSignal,
  ): Promise<PreparedRun & { close(): Promise<void> }>
  /** Ends background commands and forgets what the tools remembered. */
  forget(sessionId: string): Promise<void>
  close(): Promise<void>
}
