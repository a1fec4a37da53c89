import { KEY_BYTES } from '../kit/key-file.ts'

/** A key written as 64 hex digits or as base64 of 32 bytes; null when it is neither. */
export function readKey(text: string): Buffer | null {
  const trimmed = text.trim()
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return Buffer.from(trimmed, 'hex')
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)) return null
  const bytes = Buffer.from(trimmed, 'base64')
  return bytes.length === KEY_BYTES ? bytes : null
}
