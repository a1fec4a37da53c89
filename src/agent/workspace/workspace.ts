import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import type { Sandbox } from './bubblewrap.ts'
import { localFiles } from './files.ts'
import { DEFAULT_LIMITS, type ShellLimits } from './limits.ts'
import { isInside } from './paths.ts'
import type { Workspace, WorkspaceShell } from './port.ts'
import { sandboxedShell, unsafeShell } from './shell.ts'

/** Whether and how programs may be run. */
export interface ShellPolicy {
  /** `sandbox`: in bubblewrap or not at all; `unsafe`: with the server's own rights where bubblewrap does not work; `off`: not at all. */
  mode: 'sandbox' | 'unsafe' | 'off'
  allowNetwork: boolean
  /** What `probeSandbox` said; asked for once per server. */
  sandbox: Sandbox
  /** Of each command. */
  limits?: ShellLimits
}

/** What a workspace is opened with. */
export interface WorkspaceOptions {
  /** The real path of a folder that is there, as `resolveWorkspace` gives it. */
  root: string
  /** Folders (or files) that are not to be seen: the server's own data. */
  hidden: readonly string[]
  shell: ShellPolicy
}

/** A folder on this machine to work in. Nothing is held open: it needs no closing. */
export async function openWorkspace({ root, hidden, shell: policy }: WorkspaceOptions): Promise<Workspace> {
  const real = await realpath(root).catch(() => null)
  // A session may have swapped another's folder for a link since it was resolved.
  if (real === null || real !== resolve(root))
    throw new AppError('workspace_outside', 'The workspace folder is gone or is a link now; make it a folder again.')
  const covered = await Promise.all(hidden.map((path) => realpath(path).catch(() => resolve(path))))
  if (covered.some((path) => isInside(path, real)))
    throw new AppError('workspace_outside', "The workspace lies in the server's own data folder; choose another.")
  const shell = openShell(real, covered, policy)
  const off = typeof shell === 'string'
  return {
    root: real,
    files: localFiles({ root: real, hidden: covered }),
    shell: off ? null : shell,
    shellOff: off ? shell : null,
  }
}

/** The shell, or why there is none. */
function openShell(root: string, hidden: string[], policy: ShellPolicy): WorkspaceShell | string {
  const { mode, sandbox, allowNetwork, limits = DEFAULT_LIMITS } = policy
  if (mode === 'off') return 'The shell is switched off on this server.'
  if (!sandbox.works && mode === 'unsafe') return unsafeShell(root, limits)
  if (!sandbox.works)
    return `The shell is off because commands cannot be shut in here: ${sandbox.reason}. Install bubblewrap, or start the server with --unsafe-shell.`
  if (root === '/') return 'The shell is off because the workspace is the whole file system; choose a folder in it.'
  return sandboxedShell(sandbox, { root, hidden, allowNetwork }, limits)
}
