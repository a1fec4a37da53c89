import { type AgentClient, AgentClientError, type OnceOptions } from './agent-client.ts'

const MAX_TITLE = 200

/**
 * Why the agent does not take a model; null when it does, or cannot be asked now: then the next run shows. A session is
 * the only thing that a model can be tried on without asking it anything; it goes again at once. With a key, so that a
 * caller that was killed in between finds it and takes it away.
 */
export async function modelProblem(
  agent: Pick<AgentClient, 'createSession' | 'remove'>,
  model: string,
  options: OnceOptions = {},
): Promise<string | null> {
  const { signal } = options
  try {
    const made = await agent.createSession({ model, title: `/model ${model}`.slice(0, MAX_TITLE) }, options)
    await agent.remove(made.session_id, { ...(signal && { signal }) })
    return null
  } catch (error) {
    signal?.throwIfAborted()
    return error instanceof AgentClientError && error.status === 422 ? error.message : null
  }
}
