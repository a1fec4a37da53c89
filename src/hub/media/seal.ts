import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'

const Upload = Type.Object({
  kind: Type.Literal('upload'),
  clientId: Type.Integer(),
  issuedAt: Type.Number(),
  /** Where the ciphertext goes. */
  url: Type.String(),
  filekey: Type.Union([Type.String(), Type.Null()]),
  /** What the client said of the file when it asked for the address; null where it said nothing. */
  cipherBytes: Type.Union([Type.Integer(), Type.Null()]),
  plainBytes: Type.Union([Type.Integer(), Type.Null()]),
  keyHex: Type.Union([Type.String(), Type.Null()]),
  mediaType: Type.Union([Type.Integer(), Type.Null()]),
})

const Download = Type.Object({
  kind: Type.Literal('download'),
  clientId: Type.Integer(),
  issuedAt: Type.Number(),
  /** The service's own word for the file: a param, or a whole address. */
  param: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
})

/** A right to upload one announced file. */
export type UploadTicket = Static<typeof Upload>
/** A right to download one file. */
export type DownloadTicket = Static<typeof Download>

/**
 * Tickets as opaque texts. Calls for media carry no token, so the address itself is the right: encrypted and signed by the
 * hub, bound to a client, and nothing to keep in a table.
 */
export interface Seal {
  seal(ticket: UploadTicket | DownloadTicket): string
  /** Null for what this hub did not make. */
  open(text: string): UploadTicket | DownloadTicket | null
}

const PREFIX = 'swb_'
const IV_BYTES = 12
const TAG_BYTES = 16
const isTicket = Compile(Type.Union([Upload, Download]))

/** Whether a text looks like a ticket of some hub; whether it is one of ours, {@link Seal.open} says. */
export function looksSealed(text: string): boolean {
  return text.startsWith(PREFIX)
}

/** Seals with a key of 32 bytes. */
export function createSeal(key: Buffer): Seal {
  return {
    seal(ticket) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      const sealed = Buffer.concat([cipher.update(JSON.stringify(ticket)), cipher.final()])
      return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
    },
    open(text) {
      if (!looksSealed(text)) return null
      const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url')
      if (bytes.length <= IV_BYTES + TAG_BYTES) return null
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES))
        decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
        const rest = bytes.subarray(IV_BYTES + TAG_BYTES)
        const ticket: unknown = JSON.parse(Buffer.concat([decipher.update(rest), decipher.final()]).toString())
        return isTicket.Check(ticket) ? ticket : null
      } catch {
        return null
      }
    },
  }
}
