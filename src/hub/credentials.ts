import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import { AppError } from '../kit/errors.ts'
import { checker } from '../kit/schema.ts'

/** What is kept of a bot account's login. */
export interface BotLogin {
  botToken: string
  baseUrl: string
  botId: string | null
  /** Who scanned the code: the person whose bot it is. */
  userId: string | null
  /** Names the service and the bot, so that a cursor is never shown to another. */
  source: string
  /** Digest of the configured token that this login took the place of; with another one configured that one counts. */
  replaces: string | null
}

const checkLogin = checker(
  Type.Object({
    botToken: Type.String(),
    baseUrl: Type.String(),
    botId: Type.Union([Type.String(), Type.Null()]),
    userId: Type.Union([Type.String(), Type.Null()]),
    source: Type.String(),
    replaces: Type.Union([Type.String(), Type.Null()]),
  }),
)

const VERSION = 'v1'
const IV_BYTES = 12
const TAG_BYTES = 16

/** Encrypts a login with AES-256-GCM. It opens with the same key and for the same account only. */
export function sealLogin(login: BotLogin, account: string, key: Buffer): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(`${VERSION}:${account}`))
  const body = Buffer.concat([cipher.update(JSON.stringify(login), 'utf8'), cipher.final()])
  return `${VERSION}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
}

/** The login that was sealed; `credentials_locked` when the key is not the one, or the text was changed. */
export function openLogin(sealed: string, account: string, key: Buffer): BotLogin {
  const [version, text = ''] = sealed.split('.')
  try {
    if (version !== VERSION) throw new Error('unknown version')
    const bytes = Buffer.from(text, 'base64url')
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(`${VERSION}:${account}`))
      .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    const plain = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
    return checkLogin(JSON.parse(plain.toString('utf8')))
  } catch {
    // Not with the cause: it could carry a piece of what was opened.
    throw new AppError(
      'credentials_locked',
      `The stored login of account ${account} does not open with this key. Give the key it was stored with ` +
        '(--credentials-key-file or RELAY_CREDENTIALS_KEY). To give the stored logins up and log in anew, start once ' +
        'with --forget-logins. Nothing was changed.',
    )
  }
}
