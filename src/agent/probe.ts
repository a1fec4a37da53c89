import { errorText } from '../kit/errors.ts'
import { chooseModel, type Env, modelName, openProvider } from './provider/models.ts'
import { probeSandbox } from './workspace/bubblewrap.ts'

/** What an agent server would find where it is started. */
export interface AgentProbe {
  /** Who would answer; null with a problem. */
  model: string | null
  modelProblem: string | null
  /** Why commands cannot be shut in; null when they can. */
  sandboxProblem: string | null
}

/** Looks, without starting a server or asking a model anything. */
export async function probeAgent(model: string | null, env: Env): Promise<AgentProbe> {
  const sandbox = await probeSandbox()
  const sandboxProblem = sandbox.works ? null : sandbox.reason
  return { ...(await probeModel(model, env)), sandboxProblem }
}

/** Who would answer, or why nobody can: a name that nobody has, a key or an address that is missing or wrong. */
export async function probeModel(model: string | null, env: Env): Promise<Pick<AgentProbe, 'model' | 'modelProblem'>> {
  try {
    const spec = chooseModel(model, env)
    await openProvider(spec, env)
    return { model: modelName(spec), modelProblem: null }
  } catch (error) {
    return { model: null, modelProblem: errorText(error) }
  }
}
