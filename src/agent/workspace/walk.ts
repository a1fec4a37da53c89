import { lstat, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { type Bounds, fileError, fromRoot, guard, inFolder, isInside, locate } from './paths.ts'
import { type PinnedFolder, withFolder } from './pinned.ts'
import type { WalkedFile } from './port.ts'
import { isTemporary } from './replace-file.ts'

const STATS_AT_ONCE = 32

/** Every file below a path, folder by folder, by name. */
export async function* walkFolder(
  bounds: Bounds,
  path: string,
  signal: AbortSignal,
  enter: (folder: string) => Promise<boolean> = async () => true,
): AsyncGenerator<WalkedFile> {
  const first = await start(bounds, path)
  if ('path' in first) return yield first
  const waiting = [first.folder]
  for (let folder = waiting.pop(); folder !== undefined && !signal.aborted; folder = waiting.pop()) {
    const { files, folders } = await readFolder(bounds, folder)
    yield* files
    const entered: string[] = []
    for (const name of folders) {
      const below = inFolder(folder, name)
      if (!signal.aborted && (await enter(below))) entered.push(below)
    }
    waiting.push(...entered.reverse())
  }
}

async function start(bounds: Bounds, path: string): Promise<WalkedFile | { folder: string }> {
  try {
    const real = await realpath(locate(bounds, path))
    guard(bounds, real, path)
    const found = await lstat(real)
    const shown = fromRoot(bounds.root, real)
    return found.isDirectory() ? { folder: shown } : { path: shown, bytes: found.size, modifiedAt: found.mtimeMs }
  } catch (error) {
    throw fileError(error, path)
  }
}

/** A folder that has gone, may not be read, or was swapped for a link since it was found counts as empty. */
async function readFolder(bounds: Bounds, path: string): Promise<{ files: WalkedFile[]; folders: string[] }> {
  try {
    return await withFolder(join(bounds.root, path), (folder) => readEntries(bounds, folder, path))
  } catch {
    return { files: [], folders: [] }
  }
}

async function readEntries(bounds: Bounds, folder: PinnedFolder, path: string) {
  const entries = (await readdir(folder.self, { withFileTypes: true }))
    .filter(
      ({ name }) => !isTemporary(name) && !bounds.hidden.some((hidden) => isInside(hidden, join(folder.path, name))),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  const files: WalkedFile[] = []
  for (let at = 0; at < names.length; at += STATS_AT_ONCE) {
    const some = names.slice(at, at + STATS_AT_ONCE)
    const found = await Promise.all(some.map((name) => describe(folder, name, path)))
    files.push(...found.filter((file) => file !== null))
  }
  return { files, folders: entries.filter((entry) => entry.isDirectory()).map(({ name }) => name) }
}

async function describe(folder: PinnedFolder, name: string, path: string): Promise<WalkedFile | null> {
  const found = await lstat(folder.at(name)).catch(() => null)
  if (!found?.isFile()) return null
  return { path: inFolder(path, name), bytes: found.size, modifiedAt: found.mtimeMs }
}
