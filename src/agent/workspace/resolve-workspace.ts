import { lstat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import { type Bounds, isInside, quote } from './paths.ts'
import { nearestFolder, withMadeFolder } from './replace-file.ts'

const MAX_NAME_BYTES = 255
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
  // Before anything is made: the folders above must not stay behind.
  if (missing.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) throw tooLong()
  if (missing.length > 0) await withMadeFolder(bounds, target, requested, async () => {}).catch(refuse)
  if (!(await lstat(target)).isDirectory())
    throw new AppError('workspace_not_a_folder', `The workspace ${quote(requested)} is a file; name a folder.`, WHERE)
  return target
}

function refuse(cause?: unknown): never {
  if (cause instanceof Error && 'code' in cause && cause.code === 'ENAMETOOLONG') throw tooLong(cause)
  throw new AppError(
    'workspace_outside',
    "The workspace must be a folder inside the server's --workspace; give a path relative to it, or none to use it as it is.",
    { ...WHERE, cause },
  )
}

function tooLong(cause?: unknown): AppError {
  const text = `The workspace has a name that is too long for a folder; choose one of at most ${MAX_NAME_BYTES} bytes.`
  return new AppError('bad_request', text, { ...WHERE, cause })
}
