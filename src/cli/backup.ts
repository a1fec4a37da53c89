import { createWriteStream } from 'node:fs'
import { type FileHandle, lstat, mkdtemp, open, readdir, readlink, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { AppError, errorText } from '../kit/errors.ts'
import { connect } from '../kit/sqlite/database.ts'
import { TAR_END, tarHeader, tarPadding } from './tar.ts'

export interface BackupOptions {
  dataDir: string
  /** The archive to write. */
  file: string
  workspace: boolean
}

/**
 * The parts in an order that loses nothing when they are restored: the bridge may then know less than the hub, never more
 * answers than there were questions; a session that the agent does not have is begun anew.
 */
const ORDER = ['hub', 'bridge', 'agent', 'workspace']
/** What a data directory of everything, or of one service, has at least one of. */
const OURS = /^(hub|bridge|agent|workspace|(hub|agent)\.db|bridge\.jsonl)$/
/** What belongs to a process and not to the data. */
const LEFT_OUT = /(^|\/)lock\.(db(-journal|-wal|-shm)?|pid)$|-(wal|shm|journal)$|\.new$/
const CHUNK = 256 * 1024

/** Writes a compressed archive of everything in the data directory; services may be running on it. How many files. */
export async function backup({ dataDir, file, workspace }: BackupOptions): Promise<number> {
  const root = resolve(dataDir)
  const info = await lstat(root).catch(() => null)
  if (info === null || !info.isDirectory())
    throw new AppError('no_data', `There is no data directory ${root}; name it with --data-dir.`)
  if (!(await readdir(root)).some((name) => OURS.test(name)))
    throw new AppError('no_data', `${root} is no data directory of ours; name the one you mean with --data-dir.`)
  const path = resolve(file)
  const scratch = await mkdtemp(join(dirname(path), '.backup-')).catch((error: unknown) => {
    throw new AppError('cannot_write', `${path} cannot be written: ${errorText(error)}.`, { cause: error })
  })
  let count = 0
  try {
    const fresh = join(scratch, 'archive')
    const content = archive(root, scratch, { skip: [path, scratch], workspace, counted: () => (count += 1) })
    await pipeline(Readable.from(content), createGzip(), createWriteStream(fresh, { mode: 0o600, flush: true }))
    await rename(fresh, path)
    return count
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

interface Walk {
  skip: readonly string[]
  workspace: boolean
  counted: () => void
}

async function* archive(root: string, scratch: string, walk: Walk): AsyncGenerator<Buffer> {
  const rank = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : -1)
  const names = (await readdir(root)).sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
  for (const name of names) {
    if (name === 'workspace' && !walk.workspace) continue
    yield* entry(root, name, scratch, walk)
  }
  yield TAR_END
}

async function* entry(root: string, path: string, scratch: string, walk: Walk): AsyncGenerator<Buffer> {
  const full = join(root, path)
  const inWorkspace = path === 'workspace' || path.startsWith('workspace/')
  if (walk.skip.includes(full) || (!inWorkspace && LEFT_OUT.test(path))) return
  // What goes away under our hands was not there.
  const info = await lstat(full).catch(() => null)
  if (info === null) return
  const base = { path, mode: info.mode, modifiedMs: info.mtimeMs }
  if (info.isSymbolicLink()) {
    yield tarHeader({ ...base, kind: 'link', bytes: 0, target: await readlink(full) })
  } else if (info.isDirectory()) {
    yield tarHeader({ ...base, kind: 'folder', bytes: 0 })
    for (const name of (await readdir(full)).sort()) yield* entry(root, `${path}/${name}`, scratch, walk)
  } else if (info.isFile()) {
    const copied = !inWorkspace && (await isDatabase(full)) ? await copyDatabase(full, scratch) : null
    yield* file(copied ?? full, base)
    if (copied !== null) await rm(copied, { force: true })
    walk.counted()
  }
}

/** Exactly as many bytes as its header says, whatever is appended to it meanwhile. */
async function* file(full: string, base: { path: string; mode: number; modifiedMs: number }): AsyncGenerator<Buffer> {
  const handle = await open(full, 'r')
  try {
    const { size } = await handle.stat()
    yield tarHeader({ ...base, kind: 'file', bytes: size })
    for (let at = 0; at < size; at += CHUNK) yield await readChunk(handle, at, Math.min(CHUNK, size - at))
    yield tarPadding(size)
  } finally {
    await handle.close()
  }
}

/** Filled up with zeros where a file of the workspace was cut short meanwhile: the archive stays readable. */
async function readChunk(handle: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const chunk = Buffer.alloc(bytes)
  for (let filled = 0; filled < bytes; ) {
    const { bytesRead } = await handle.read(chunk, filled, bytes - filled, at + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return chunk
}

async function isDatabase(path: string): Promise<boolean> {
  const handle = await open(path, 'r')
  try {
    const head = Buffer.alloc(16)
    await handle.read(head, 0, head.length, 0)
    return head.toString('latin1') === 'SQLite format 3\0'
  } finally {
    await handle.close()
  }
}

/** As it is at one moment, while others go on writing. */
async function copyDatabase(path: string, scratch: string): Promise<string> {
  const copy = join(scratch, 'copy.db')
  const db = await connect(path, { readOnly: true, timeout: 10_000 })
  try {
    db.exec(`VACUUM INTO '${copy.replaceAll("'", "''")}'`)
    return copy
  } finally {
    db.close()
  }
}
