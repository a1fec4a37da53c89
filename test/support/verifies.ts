import { test } from 'vitest'
import { type RequirementId, requirements } from '../requirements.ts'

type Run = () => void | Promise<void>
type Ids = RequirementId | readonly RequirementId[]

/** A test that shows one or more rules of `requirements.ts`; named after them, or after its own title. */
export function verifies(ids: Ids, run: Run, timeoutMs?: number): void
export function verifies(ids: Ids, title: string, run: Run, timeoutMs?: number): void
export function verifies(ids: Ids, titleOrRun: string | Run, runOrMs?: Run | number, titledMs?: number): void {
  const all = [ids].flat()
  const sentence = typeof titleOrRun === 'string' ? titleOrRun : all.map((id) => requirements[id].behaviour).join(' ')
  const run = [titleOrRun, runOrMs].find((given) => typeof given === 'function')
  const timeoutMs = typeof runOrMs === 'number' ? runOrMs : titledMs
  test(`${all.join(', ')}: ${sentence}`, run, timeoutMs)
}
