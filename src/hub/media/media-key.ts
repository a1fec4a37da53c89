import { randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText } from '../../kit/errors.ts'

const FILE = 'media.key'
const KEY_BYTES = 32

/** The key that media tickets are sealed with: kept in the data directory (0600), made at first need. */
export async function mediaKey(dataDir: string): Promise<Buffer> {
  const path = join(dataDir, FILE)
  try {
    return (await read(path)) ?? (await make(path))
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError(
      'data_dir_unusable',
      `The key ${path} cannot be read or made (${errorText(error)}); make the folder readable and writable.`,
      { cause: error },
    )
  }
}

/** Null when there is none. One that is damaged is worth nothing: its tickets could not be opened either way. */
async function read(path: string): Promise<Buffer | null> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length === KEY_BYTES) return key
  throw new AppError(
    'data_dir_unusable',
    `${path} is damaged; delete it, and clients will get new addresses for media.`,
  )
}

/** Whole or not at all, and never over one that is there. */
async function make(path: string): Promise<Buffer> {
  const key = randomBytes(KEY_BYTES)
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(`${key.toString('base64')}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path)
    return key
  } finally {
    await rm(draft, { force: true })
  }
}
