import { lstat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import { type Bounds, isInside, quote } from './paths.ts'
import { nearestFolder, withMadeFolder } from './replace-file.ts'

const WHERE = { details: { field: 'workspace' } }

/**
 * The real folder of a session's workspace, made if it is not there. Relative paths start at the server's root, and without
 * one the root itself is taken. What really lies elsewhere, or in a hidden folder, is refused with `workspace_outside`.
 */
export async function resolveWorkspace(
  rootReal: string,
  requested: string | null | undefined,
  hidden: readonly string[] = [],
): Promise<string> {
  if (requested === null || requested === undefined || requested === '') return rootReal
  if (requested.includes('\0'))
    throw new AppError('workspace_outside', 'The workspace holds a NUL character; leave it out.', WHERE)
  const bounds: Bounds = { root: rootReal, hidden: [] }
  const { real, missing } = await nearestFolder(resolve(rootReal, requested)).catch(refuse)
  const target = join(real, ...missing)
  if (!isInside(rootReal, target) || hidden.some((folder) => isInside(folder, target))) refuse()
  if (missing.length > 0) await withMadeFolder(bounds, target, requested, async () => {}).catch(refuse)
  if (!(await lstat(target)).isDirectory())
    throw new AppError('workspace_not_a_folder', `The workspace ${quote(requested)} is a file; name a folder.`, WHERE)
  return target
}

function refuse(cause?: unknown): never {
  throw new AppError(
    'workspace_outside',
    "The workspace must be a folder inside the server's --workspace; give a path relative to it, or none to use it as it is.",
    { ...WHERE, cause },
  )
}
