import { rmSync } from 'node:fs'
import { chmod, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { getuid, pid } from 'node:process'
import { AppError, errorText } from '../errors.ts'
import { connect } from './database.ts'

/** The directory of one server, locked for as long as the process lives or until `unlock`. */
export interface DataDirectory {
  databasePath: string
  unlock(): void
}

/** Whose directory it is. */
export interface DataDirectoryOwner {
  /** The file name of the database. */
  database: string
  /** What a person calls the server: "hub". */
  service: string
}

/**
 * Makes the directory (0700) and its files (0600) where they are missing, and locks it. The lock is one the system frees
 * when the process dies, however it dies. Fails with `data_dir_in_use` or `data_dir_unusable`.
 */
export async function openDataDirectory(dir: string, owner: DataDirectoryOwner): Promise<DataDirectory> {
  const databasePath = join(dir, owner.database)
  const lockPath = join(dir, 'lock.db')
  try {
    await makePrivateDirectory(dir, owner.database)
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
  return { databasePath, unlock: await lock(lockPath, dir, owner.service) }
}

async function makePrivateDirectory(dir: string, database: string): Promise<void> {
  if (await makeFolder(resolve(dir))) return
  const names = await readdir(dir)
  // Somebody's home or /tmp given by mistake keeps its mode; the files in it are private all the same.
  const isOurs = (await stat(dir)).uid === getuid?.() && (names.length === 0 || names.includes(database))
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

async function lock(path: string, dir: string, service: string): Promise<() => void> {
  const db = await connect(path, { timeout: 0 })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)) throw error
    throw new AppError(
      'data_dir_in_use',
      `The data directory ${dir} is in use by another ${service}${await processOf(dir)}; stop it or choose another with --data-dir.`,
    )
  }
  await noteProcess(dir)
  return () => {
    rmSync(join(dir, PROCESS_FILE), { force: true })
    db.close()
  }
}

const PROCESS_FILE = 'lock.pid'

/** Only for the text of an error: the lock itself does not need it. */
async function noteProcess(dir: string): Promise<void> {
  await writeFile(join(dir, PROCESS_FILE), `${pid}\n`, { mode: 0o600 }).catch(() => undefined)
}

async function processOf(dir: string): Promise<string> {
  const text = await readFile(join(dir, PROCESS_FILE), 'utf8').catch(() => '')
  return /^\d+\n$/.test(text) ? ` (process ${text.trim()})` : ''
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
