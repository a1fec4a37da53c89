import { join } from 'node:path'
import { AppError, errorText } from '../../kit/errors.ts'
import { KEY_BYTES, makeKeyFile, readKeyFile } from '../../kit/key-file.ts'

const FILE = 'media.key'

/** The key that media tickets are sealed with: kept in the data directory (0600), made at first need. */
export async function mediaKey(dataDir: string): Promise<Buffer> {
  const path = join(dataDir, FILE)
  const text = await readKeyFile(path).catch((error: unknown) => {
    throw new AppError(
      'data_dir_unusable',
      `The key ${path} cannot be read (${errorText(error)}); make the folder readable and writable.`,
      { cause: error },
    )
  })
  if (text === null) return makeKeyFile(path)
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length === KEY_BYTES) return key
  throw new AppError(
    'data_dir_unusable',
    `${path} is damaged; delete it, and clients will get new addresses for media.`,
  )
}
