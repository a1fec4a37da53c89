import { constants } from 'node:fs'
import { access, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import { quote } from './paths.ts'

/** An open folder. What is reached by `at` is in this very folder, whatever happens to its path meanwhile. */
export interface PinnedFolder {
  /** Its real path when it was opened. */
  readonly path: string
  /** The folder itself, for reading it. */
  readonly self: string
  /** A path for one of its entries. */
  at(name: string): string
}

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants

/**
 * Opens the folder at a real path for the time of `use`. Between finding the path and opening it somebody may have put a
 * link in its place, so the opened folder must be where it is said to be.
 *
 * Node has no `openat`, but on Linux a path through `/proc/self/fd` is one: it starts at the open folder, not at a name.
 */
export async function withFolder<T>(real: string, use: (folder: PinnedFolder) => Promise<T>): Promise<T> {
  const handle = await open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    await mustStandAt(handle, real)
    return await use(await pin(handle, real))
  } finally {
    await handle.close()
  }
}

/** The same for a folder in an open one. */
export async function withSubfolder<T>(
  parent: PinnedFolder,
  name: string,
  use: (folder: PinnedFolder) => Promise<T>,
): Promise<T> {
  const handle = await open(parent.at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    const real = join(parent.path, name)
    if (!(await hasDescriptorPaths())) await mustStandAt(handle, real)
    return await use(await pin(handle, real))
  } finally {
    await handle.close()
  }
}

async function pin(handle: FileHandle, real: string): Promise<PinnedFolder> {
  const self = (await hasDescriptorPaths()) ? `/proc/self/fd/${handle.fd}` : real
  return { path: real, self, at: (name) => `${self}/${name}` }
}

async function mustStandAt(handle: FileHandle, real: string): Promise<void> {
  const stands = (await hasDescriptorPaths())
    ? (await readlink(`/proc/self/fd/${handle.fd}`)) === real
    : await isStillThere(handle, real)
  if (!stands) throw new AppError('outside_workspace', `${quote(real)} was replaced while it was opened; try again.`)
}

/** Elsewhere than on Linux: the path has no link in it now, and what stands there is what was opened. */
async function isStillThere(handle: FileHandle, real: string): Promise<boolean> {
  const [path, opened, named] = await Promise.all([realpath(real), handle.stat(), lstat(real)])
  return path === real && opened.dev === named.dev && opened.ino === named.ino
}

let descriptorPaths: Promise<boolean> | undefined

function hasDescriptorPaths(): Promise<boolean> {
  descriptorPaths ??= access('/proc/self/fd').then(
    () => true,
    () => false,
  )
  return descriptorPaths
}
