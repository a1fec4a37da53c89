import { lstat, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import type { Sandbox } from './bubblewrap.ts'
import { localFiles } from './files.ts'
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
}

export interface WorkspaceOptions {
  /** The folder; it must be there. */
  root: string
  /** Folders (or files) that are not to be seen: the server's own data. */
  hidden: readonly string[]
  shell: ShellPolicy
}

/** A folder on this machine to work in. Nothing is held open: it needs no closing. */
export async function openWorkspace({ root, hidden, shell: policy }: WorkspaceOptions): Promise<Workspace> {
  const real = await realpath(root)
  const covered = await Promise.all(hidden.map((path) => realpath(path).catch(() => resolve(path))))
  if (covered.some((path) => isInside(path, real)))
    throw new AppError('workspace_outside', "The workspace lies in the server's own data folder; choose another.")
  const shell = await openShell(real, covered, policy)
  const off = typeof shell === 'string'
  return {
    root: real,
    files: localFiles({ root: real, hidden: covered }),
    shell: off ? null : shell,
    shellOff: off ? shell : null,
  }
}

/** The shell, or why there is none. */
async function openShell(root: string, hidden: string[], policy: ShellPolicy): Promise<WorkspaceShell | string> {
  const { mode, sandbox, allowNetwork } = policy
  if (mode === 'off') return 'The shell is switched off on this server.'
  if (!sandbox.works && mode === 'unsafe') return unsafeShell(root)
  if (!sandbox.works)
    return `The shell is off because commands cannot be shut in here: ${sandbox.reason}. Install bubblewrap, or start the server with --unsafe-shell.`
  if (root === '/') return 'The shell is off because the workspace is the whole file system; choose a folder in it.'
  const there = await Promise.all(hidden.map(describe))
  return sandboxedShell(sandbox, { root, hidden: there.filter((one) => one !== null), allowNetwork })
}

/** What is not there cannot be covered, and need not be. */
async function describe(path: string): Promise<{ path: string; isFolder: boolean } | null> {
  const found = await lstat(path).catch(() => null)
  return found === null ? null : { path, isFolder: found.isDirectory() }
}
