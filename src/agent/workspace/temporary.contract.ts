import { randomInt } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../../test/support/processes.ts'
import { probeSandbox } from './bubblewrap.ts'
import type { Workspace } from './port.ts'
import { openWorkspace, type ShellPolicy } from './workspace.ts'

/** Asked once for all tests of a file. */
export const sandbox = await probeSandbox()

/** What must never be seen from inside. */
export const SECRET = 'the text of a file outside'

/** A workspace on the disk with a neighbour that must never be reached: `outside/secret.txt`. */
export interface TemporaryWorkspace {
  workspace: Workspace
  /** Real paths. */
  root: string
  outside: string
  hidden: string
}

/** Opens one for the time of a test. */
export async function temporaryWorkspace(policy: Partial<ShellPolicy> = {}): Promise<TemporaryWorkspace> {
  const base = realpathSync(temporaryFolder())
  const root = join(base, 'workspace')
  const outside = join(base, 'outside')
  const hidden = join(root, '.data')
  for (const folder of [root, outside, hidden]) mkdirSync(folder)
  writeFileSync(join(outside, 'secret.txt'), SECRET)
  writeFileSync(join(hidden, 'tokens.txt'), SECRET)
  const shell = { mode: 'sandbox' as const, allowNetwork: false, sandbox, ...policy }
  return { workspace: await openWorkspace({ root, hidden: [hidden], shell }), root, outside, hidden }
}

/** A number of seconds to sleep that no other process sleeps, so that the sleeper can be found. */
export function uniqueSeconds(): string {
  return `1000.${randomInt(1e9, 1e10 - 1)}`
}

/** The ids of the processes with this word in their command line. */
export function processesWith(word: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((id) => {
      try {
        return readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(word)
      } catch {
        return false
      }
    })
}
