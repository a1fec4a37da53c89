import { randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { AppError, errorText } from './errors.ts'

/** Keys have 256 bits. */
export const KEY_BYTES = 32

/** The text of a key file; null when there is none. Other failures are thrown as they are. */
export async function readKeyFile(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/**
 * Makes a random key and keeps it in a file (0600), in base64: whole or not at all, as one that was half written when the
 * power went would lock out what is encrypted later; and never over one that is there.
 */
export async function makeKeyFile(path: string): Promise<Buffer> {
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
  } catch (error) {
    throw new AppError(
      'data_dir_unusable',
      `The key ${path} cannot be made (${errorText(error)}); make the folder writable.`,
      { cause: error },
    )
  } finally {
    await rm(draft, { force: true })
  }
}
