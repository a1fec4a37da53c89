import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, realpath, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { AppError } from '../../kit/errors.ts'
import { type Bounds, fileError, guard, isDirectory, isInside, locate, outside, quote } from './paths.ts'
import { type PinnedFolder, withFolder } from './pinned.ts'
import type { WorkspaceFiles } from './port.ts'
import { isTemporary, replaceFile, withMadeFolder } from './replace-file.ts'
import { walkFolder } from './walk.ts'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
const MAX_LINKS = 8

/** The files of a folder on this machine. */
export function localFiles(bounds: Bounds): WorkspaceFiles {
  return {
    read: (path, maxBytes) =>
      telling(path, () => withEntry(bounds, path, (folder, name) => readEntry(folder, name, path, maxBytes))),
    write: (path, bytes) => telling(path, () => writeFile(bounds, path, bytes)),
    list: (path) => telling(path, () => listFolder(bounds, path)),
    stat: (path) => telling(path, () => statPath(bounds, path)),
    remove: (path) => telling(path, () => removeFile(bounds, path)),
    walk: (path, signal, enter) => walkFolder(bounds, path, signal, enter),
  }
}

/** The real path of something that is there, in the workspace. */
async function realInside(bounds: Bounds, path: string): Promise<string> {
  const real = await realpath(locate(bounds, path))
  guard(bounds, real, path)
  return real
}

async function telling<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw fileError(error, path)
  }
}

/** Opens the folder that really holds `path`, and says under which name. Links inside the workspace are followed. */
async function withEntry<T>(
  bounds: Bounds,
  path: string,
  use: (folder: PinnedFolder, name: string) => Promise<T>,
): Promise<T> {
  let absolute = locate(bounds, path)
  for (let links = 0; links < MAX_LINKS; links += 1) {
    if (absolute === bounds.root) throw isDirectory(path)
    const parent = await realpath(dirname(absolute))
    guard(bounds, join(parent, basename(absolute)), path)
    const found = await withFolder(parent, async (folder) => {
      const name = basename(absolute)
      const isLink = (await lstat(folder.at(name))).isSymbolicLink()
      return isLink ? null : { result: await use(folder, name) }
    })
    if (found !== null) return found.result
    absolute = await followLink(bounds, join(parent, basename(absolute)), path)
  }
  throw outside(path)
}

async function followLink(bounds: Bounds, link: string, path: string): Promise<string> {
  let real: string
  try {
    real = await realpath(link)
  } catch {
    throw new AppError(
      'outside_workspace',
      `${quote(path)} is a link that leads nowhere; remove it or choose another path.`,
    )
  }
  guard(bounds, real, path)
  return real
}

async function readEntry(folder: PinnedFolder, name: string, path: string, maxBytes: number): Promise<Buffer> {
  // Not blocking: a pipe that nobody writes to would hold the thread for ever.
  const handle = await open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const found = await handle.stat()
    if (found.isDirectory()) throw isDirectory(path)
    if (!found.isFile()) throw notAFile(path)
    if (found.size > maxBytes) throw tooLarge(path, maxBytes)
    return await readBytes(handle, found.size)
  } finally {
    await handle.close()
  }
}

/** As much as there was when it was opened: one that grows all the time has no end. */
async function readBytes(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await handle.read(bytes, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}

async function writeFile(bounds: Bounds, path: string, bytes: Buffer): Promise<void> {
  let target = locate(bounds, path)
  if (target === bounds.root) throw isDirectory(path)
  for (let links = 0; links < MAX_LINKS; links += 1) {
    const name = basename(target)
    const written = await withMadeFolder(bounds, dirname(target), path, async (folder) => {
      guard(bounds, join(folder.path, name), path)
      return (await replaceFile(folder, name, path, bytes)) ? null : join(folder.path, name)
    })
    if (written === null) return
    target = await followLink(bounds, written, path)
  }
  throw outside(path)
}

async function listFolder(bounds: Bounds, path: string): Promise<string[]> {
  const real = await realInside(bounds, path)
  const entries = await withFolder(real, (folder) => readdir(folder.self, { withFileTypes: true }))
  return entries
    .filter(({ name }) => !isTemporary(name) && !bounds.hidden.some((hidden) => isInside(hidden, join(real, name))))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort()
}

async function statPath(bounds: Bounds, path: string): ReturnType<WorkspaceFiles['stat']> {
  try {
    if (locate(bounds, path) === bounds.root) return describe(await lstat(bounds.root))
    return await withEntry(bounds, path, async (folder, name) => describe(await lstat(folder.at(name))))
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null
    throw error
  }
}

function describe(found: { isFile(): boolean; isDirectory(): boolean; size: number; mtimeMs: number }) {
  const kind = found.isFile() ? ('file' as const) : found.isDirectory() ? ('directory' as const) : ('other' as const)
  return { kind, bytes: found.size, modifiedAt: found.mtimeMs }
}

async function removeFile(bounds: Bounds, path: string): Promise<void> {
  const absolute = locate(bounds, path)
  if (absolute === bounds.root) throw isDirectory(path)
  const parent = await realpath(dirname(absolute))
  const name = basename(absolute)
  guard(bounds, join(parent, name), path)
  await withFolder(parent, async (folder) => {
    // A link is removed as such: what it leads to stays.
    if ((await lstat(folder.at(name))).isDirectory()) throw isDirectory(path)
    await unlink(folder.at(name))
  })
}

function notAFile(path: string): AppError {
  return new AppError('not_a_file', `${quote(path)} is a pipe, a socket or a device, not a file.`)
}

function tooLarge(path: string, maxBytes: number): AppError {
  return new AppError(
    'too_large',
    `${quote(path)} is larger than ${maxBytes} bytes; look into it with grep or in the shell.`,
  )
}
