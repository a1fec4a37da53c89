import type { Part } from '../processes.ts'
import type { AgentCall } from './calls.ts'

const CALL_MS = 600_000

/** Has the agents' load generator do something; rejects with what it says when it cannot. */
export async function ask(load: Part, call: AgentCall): Promise<unknown> {
  const answer = await load.ask(call, CALL_MS, call.do)
  if (typeof answer !== 'object' || answer === null || !('ok' in answer)) throw new Error('the load generator babbles')
  if (answer.ok !== true) throw new Error(`load: ${'problem' in answer ? answer.problem : '?'}`)
  return 'answer' in answer ? answer.answer : undefined
}
