import { chmod, mkdir, open, readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { getuid } from 'node:process'
import { AppError, errorText } from '../../kit/errors.ts'
import { connect } from './database.ts'

/** The directory of one hub, locked for as long as the process lives or until `unlock`. */
export interface DataDirectory {
  databasePath: string
  unlock(): void
}

/**
 * Makes the directory (0700) and its files (0600) where they are missing, and locks it. The lock is one the system frees
 * when the process dies, however it dies. Fails with `data_dir_in_use` or `data_dir_unusable`.
 */
export async function openDataDirectory(dir: string): Promise<DataDirectory> {
  const databasePath = join(dir, DATABASE)
  const lockPath = join(dir, 'lock.db')
  try {
    await makePrivateDirectory(dir)
    // SQLite gives the log files the mode of the database when it makes them; here they may be left from a crash.
    for (const path of [lockPath, databasePath]) await makePrivateFile(path)
    for (const suffix of ['-wal', '-shm']) await chmodIfThere(databasePath + suffix)
  } catch (error) {
    throw new AppError(
      'data_dir_unusable',
      `The data directory ${dir} cannot be used (${errorText(error)}); make it writable or choose another with --data-dir.`,
      { cause: error },
    )
  }
  return { databasePath, unlock: await lock(lockPath, dir) }
}

const DATABASE = 'hub.db'

async function makePrivateDirectory(dir: string): Promise<void> {
  if (await makeFolder(resolve(dir))) return
  const names = await readdir(dir)
  // Somebody's home or /tmp given by mistake keeps its mode; the files in it are private all the same.
  const isOurs = (await stat(dir)).uid === getuid?.() && (names.length === 0 || names.includes(DATABASE))
  if (isOurs) await chmod(dir, 0o700)
}

/** True when it was made. Step by step: Node's own recursive way never ends where nothing can be made, as in /proc. */
async function makeFolder(dir: string): Promise<boolean> {
  try {
    await mkdir(dir, { mode: 0o700 })
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    const above = dirname(dir)
    if (!hasCode(error, 'ENOENT') || above === dir || !(await makeFolder(above))) throw error
  }
  return makeFolder(dir)
}

/** Never opens a file that is there: on POSIX, closing any descriptor of it would drop the locks this process holds. */
async function makePrivateFile(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close()
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    await chmod(path, 0o600)
  }
}

async function chmodIfThere(path: string): Promise<void> {
  try {
    await chmod(path, 0o600)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

const SQLITE_BUSY = 5

async function lock(path: string, dir: string): Promise<() => void> {
  const db = await connect(path, { timeout: 0 })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)) throw error
    throw new AppError(
      'data_dir_in_use',
      `The data directory ${dir} is in use by another hub; stop it or choose another with --data-dir.`,
    )
  }
  return () => db.close()
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
