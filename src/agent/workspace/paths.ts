import { join, resolve, sep } from 'node:path'
import { AppError } from '../../kit/errors.ts'

/** What a workspace may reach: its root, without the folders that are hidden in it. All paths are real ones. */
export interface Bounds {
  root: string
  hidden: readonly string[]
}

const MAX_PATH_CHARS = 4_096
const SHOWN_CHARS = 200
/** Not files but views of the machine; refused even where the root is `/`. */
const MACHINE_FOLDERS = ['/proc', '/sys', '/dev']

/** Tells whether `path` is `folder` or lies below it. Both are absolute and without `..`. */
export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/** The absolute form of a path that somebody gave, by its text alone; refused when that leads out of the root. */
export function locate(bounds: Bounds, path: string): string {
  if (path.includes('\0')) throw new AppError('bad_path', 'The path holds a NUL character; leave it out.')
  if (path.length > MAX_PATH_CHARS) throw new AppError('bad_path', 'The path is too long.')
  const absolute = resolve(bounds.root, path)
  if (!isInside(bounds.root, absolute)) throw outside(path)
  return absolute
}

/** Refuses a real path that is not in the workspace. `shown` is the path as it was given. */
export function guard({ root, hidden }: Bounds, real: string, shown: string): void {
  if (!isInside(root, real) || MACHINE_FOLDERS.some((folder) => isInside(folder, real))) throw outside(shown)
  if (hidden.some((folder) => isInside(folder, real)))
    throw new AppError(
      'outside_workspace',
      `${quote(shown)} belongs to the server and cannot be used; choose another path.`,
    )
}

/** The refusal of a path that leads out. It does not say where to. */
export function outside(path: string): AppError {
  return new AppError(
    'outside_workspace',
    `${quote(path)} leads out of the workspace; use a path relative to the workspace folder, without links that leave it.`,
  )
}

/** A path as it stands in a text. */
export function quote(path: string): string {
  return JSON.stringify(path.length > SHOWN_CHARS ? `${path.slice(0, SHOWN_CHARS)}…` : path)
}

/** `path` from the root, with `/`; the root itself is `.`. */
export function fromRoot(root: string, path: string): string {
  if (path === root) return '.'
  return path.slice(root.endsWith(sep) ? root.length : root.length + 1)
}

/** The name under which a folder's entry is shown. */
export function inFolder(folder: string, name: string): string {
  return folder === '.' ? name : join(folder, name)
}

/** What a failed call of the file system means for who asked. */
export function fileError(error: unknown, path: string): unknown {
  if (error instanceof AppError || !(error instanceof Error) || !('code' in error)) return error
  const options = { cause: error }
  switch (error.code) {
    case 'ENOENT':
      return new AppError(
        'not_found',
        `There is no ${quote(path)} in the workspace; see what there is with list_dir.`,
        options,
      )
    case 'ENOTDIR':
      return new AppError('not_found', `${quote(path)} is not a folder, or a part of it is a file.`, options)
    case 'EISDIR':
      return isDirectory(path)
    case 'ELOOP':
      return outside(path)
    case 'ENAMETOOLONG':
    case 'EINVAL':
      return new AppError(
        'bad_path',
        `${quote(path)} is no name that a file can have; choose a shorter or plainer one.`,
        options,
      )
    case 'EACCES':
    case 'EPERM':
      return new AppError('forbidden', `The server may not do that with ${quote(path)}; check who owns it.`, options)
    case 'EROFS':
    case 'ENOSPC':
    case 'EDQUOT':
      return new AppError('not_writable', `${quote(path)} cannot be written (${error.code}).`, options)
    default:
      return error
  }
}

/** The refusal of a folder where a file is needed. */
export function isDirectory(path: string): AppError {
  return new AppError('is_directory', `${quote(path)} is a folder, not a file; see what is in it with list_dir.`)
}
