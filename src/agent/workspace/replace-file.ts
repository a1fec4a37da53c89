import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { lstat, mkdir, open, realpath, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import { type Bounds, guard, isDirectory, quote } from './paths.ts'
import { type PinnedFolder, withFolder, withSubfolder } from './pinned.ts'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
const TEMPORARY = /^\.switchboard-[0-9a-f]{16}\.tmp$/

/** Tells whether a name is one of a file that is being written. */
export function isTemporary(name: string): boolean {
  return TEMPORARY.test(name)
}

/**
 * Puts a file with these bytes into the folder, in one step, with the mode and owner of the one it replaces. False when
 * there is a link of that name; then nothing was done.
 */
export async function replaceFile(folder: PinnedFolder, name: string, path: string, bytes: Buffer): Promise<boolean> {
  const before = await lstat(folder.at(name)).catch(absent)
  if (before?.isSymbolicLink()) return false
  if (before !== null) mustBeReplaceable(before, path)
  const temporary = folder.at(`.switchboard-${randomBytes(8).toString('hex')}.tmp`)
  try {
    await writeNew(temporary, bytes, before)
    await rename(temporary, folder.at(name))
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw error
  }
  return true
}

/** Opens the folder, made with those above it where they are missing. */
export async function withMadeFolder<T>(
  bounds: Bounds,
  folderPath: string,
  shown: string,
  use: (folder: PinnedFolder) => Promise<T>,
): Promise<T> {
  const { real, missing } = await nearestFolder(folderPath)
  guard(bounds, join(real, ...missing), shown)
  return withFolder(real, (folder) => descend(folder, missing, shown, use))
}

/** The real path of the nearest folder above (or at) `path` that is there, and the names that are not there below it. */
export async function nearestFolder(path: string): Promise<{ real: string; missing: string[] }> {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    try {
      return { real: await realpath(at), missing }
    } catch (error) {
      if (absent(error) === null && dirname(at) !== at) missing.unshift(basename(at))
      else throw error
    }
  }
}

async function descend<T>(
  folder: PinnedFolder,
  [name, ...rest]: string[],
  shown: string,
  use: (folder: PinnedFolder) => Promise<T>,
): Promise<T> {
  if (name === undefined) return use(folder)
  await mkdir(folder.at(name)).catch(orExists)
  // A link that leads nowhere looks absent until now; not following it is what keeps this inside.
  const below = await lstat(folder.at(name))
  if (below.isSymbolicLink())
    throw new AppError(
      'outside_workspace',
      `${quote(shown)} goes through a link that leads nowhere; remove the link first.`,
    )
  return withSubfolder(folder, name, (subfolder) => descend(subfolder, rest, shown, use))
}

function mustBeReplaceable(before: Stats, path: string): void {
  if (before.isDirectory()) throw isDirectory(path)
  if (!before.isFile())
    throw new AppError('not_a_file', `${quote(path)} is a pipe, a socket or a device and cannot be written as a file.`)
  if (before.nlink > 1)
    throw new AppError(
      'outside_workspace',
      `${quote(path)} is a hard link: it has ${before.nlink} names, and not all need lie in the workspace. Remove it, then write it anew.`,
    )
}

async function writeNew(temporary: string, bytes: Buffer, before: Stats | null): Promise<void> {
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666)
  try {
    await handle.writeFile(bytes)
    if (before === null) return
    // The owner can be kept by root only; for others it is theirs already, or cannot be.
    const own = await handle.stat()
    if (own.uid !== before.uid || own.gid !== before.gid) await handle.chown(before.uid, before.gid).catch(() => {})
    await handle.chmod(before.mode & 0o777)
  } finally {
    await handle.close()
  }
}

function absent(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
  throw error
}

function orExists(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
}
