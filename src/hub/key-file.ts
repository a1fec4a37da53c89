import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText } from '../kit/errors.ts'
import { makeKeyFile, readKeyFile } from '../kit/key-file.ts'
import { readKey } from './key-text.ts'

export interface KeyOptions {
  /** The key itself, when it was given. */
  given: Buffer | null
  /** A file that holds it, when one was named. */
  file: string | null
  /** Where the hub keeps a key of its own otherwise. */
  dataDir: string
  /** Something is encrypted already, so a key that is not there must not be made anew. */
  isNeeded: boolean
}

const OWN_FILE = 'credentials.key'

/** The key for the stored logins: given, from a file, or the hub's own in its data directory, made (0600) at the first start. */
export async function credentialsKey({ given, file, dataDir, isNeeded }: KeyOptions): Promise<Buffer> {
  if (given !== null) return given
  if (file !== null) return keyIn(file, await readFile(file, 'utf8').catch((error: unknown) => unreadable(file, error)))
  const path = join(dataDir, OWN_FILE)
  const present = await readKeyFile(path).catch((error: unknown) => unreadable(path, error))
  if (present !== null) {
    await chmod(path, 0o600)
    return keyIn(path, present)
  }
  if (isNeeded) {
    throw new AppError(
      'credentials_locked',
      `The data directory holds encrypted logins, but their key ${path} is gone. Put it back, or give the key with ` +
        '--credentials-key-file or RELAY_CREDENTIALS_KEY. To give the stored logins up and log in anew, start once with ' +
        '--forget-logins. Nothing was changed.',
    )
  }
  return makeKeyFile(path)
}

function keyIn(path: string, text: string): Buffer {
  const key = readKey(text)
  if (key !== null) return key
  throw new AppError(
    'credentials_locked',
    `${path} holds no key: it must have 64 hex digits, or 32 bytes in base64 ("openssl rand -base64 32" makes one).`,
  )
}

function unreadable(path: string, error: unknown): never {
  throw new AppError('credentials_locked', `The key ${path} cannot be read (${errorText(error)}).`, { cause: error })
}
