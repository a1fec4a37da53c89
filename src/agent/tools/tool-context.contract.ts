import { type TemporaryWorkspace, temporaryWorkspace } from '../workspace/temporary.contract.ts'
import type { ShellPolicy } from '../workspace/workspace.ts'
import type { ToolContext } from './port.ts'

/** A workspace and what a tool needs to work in it. */
export async function toolContext(
  policy: Partial<ShellPolicy> = {},
): Promise<TemporaryWorkspace & { context: ToolContext }> {
  const at = await temporaryWorkspace(policy)
  return { ...at, context: { workspace: at.workspace, signal: new AbortController().signal, state: new Map() } }
}
