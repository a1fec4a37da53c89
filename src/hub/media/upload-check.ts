import { createDecipheriv } from 'node:crypto'
import { Transform, type TransformCallback } from 'node:stream'
import { AppError } from '../../kit/errors.ts'
import type { UploadTicket } from './seal.ts'

/** Files may have this many bytes, before they are encrypted. */
export const MAX_PLAIN_BYTES = 100 * 1024 * 1024
const BLOCK = 16
const MAX_CIPHER_BYTES = MAX_PLAIN_BYTES + BLOCK

/** What is said of a file before it comes. */
export type Announced = Pick<UploadTicket, 'cipherBytes' | 'plainBytes' | 'keyHex' | 'mediaType'>

const IMAGE = 1
const VIDEO = 2

/** How files of these kinds start: at `at`, one of the texts in hex. Other kinds start as they like. */
const MAGIC: Record<number, { name: string; starts: { at: number; hex: string }[] }> = {
  [IMAGE]: {
    name: 'image',
    starts: [
      { at: 0, hex: 'ffd8ff' }, // JPEG
      { at: 0, hex: '89504e470d0a1a0a' }, // PNG
      { at: 0, hex: '47494638' }, // GIF
      { at: 8, hex: '57454250' }, // WebP
      { at: 0, hex: '424d' }, // BMP
      { at: 4, hex: '66747970' }, // HEIC, AVIF
      { at: 0, hex: '49492a00' }, // TIFF
      { at: 0, hex: '4d4d002a' },
    ],
  },
  [VIDEO]: {
    name: 'video',
    starts: [
      { at: 4, hex: '66747970' }, // MP4, QuickTime
      { at: 4, hex: '6d6f6f76' }, // QuickTime without a type
      { at: 4, hex: '6d646174' },
      { at: 0, hex: '1a45dfa3' }, // Matroska, WebM
      { at: 8, hex: '41564920' }, // AVI
      { at: 0, hex: '464c56' }, // FLV
      { at: 0, hex: '000001ba' }, // MPEG
      { at: 0, hex: '000001b3' },
      { at: 0, hex: '47' }, // MPEG transport stream
      { at: 0, hex: '3026b275' }, // ASF, WMV
    ],
  },
}

/** Fails when a file of these sizes cannot be: `too_large`, or `bad_request` with the field. */
export function checkAnnounced({ cipherBytes, plainBytes }: Announced): void {
  if ((plainBytes ?? 0) > MAX_PLAIN_BYTES || (cipherBytes ?? 0) > MAX_CIPHER_BYTES) throw tooLarge()
  if (cipherBytes === null) return
  if (cipherBytes <= 0 || cipherBytes % BLOCK !== 0)
    throw new AppError('bad_request', 'filesize must be a multiple of 16: the size of the encrypted file.', {
      details: { field: 'filesize' },
    })
  if (plainBytes !== null && cipherBytes !== paddedBytes(plainBytes))
    throw new AppError('bad_request', `filesize must be ${paddedBytes(plainBytes)} for a rawsize of ${plainBytes}.`, {
      details: { field: 'filesize' },
    })
}

/** Fails before anything is read when the length of the body is wrong already. */
export function checkLength(length: number | null, { cipherBytes }: Announced): void {
  if (length === null) return
  if (length > MAX_CIPHER_BYTES) throw tooLarge()
  if (length === 0 || length % BLOCK !== 0) throw notCiphertext()
  if (cipherBytes !== null && length !== cipherBytes) throw otherSize(length, cipherBytes)
}

/**
 * Passes ciphertext on and looks at what can be seen while it passes: its length, and with the key its first bytes and the
 * padding of its last block. That block is held back until the rest was good, so a wrong file is never complete.
 */
export function uploadCheck(announced: Announced): Transform {
  const { cipherBytes, plainBytes, keyHex, mediaType } = announced
  const key = keyHex !== null && /^[0-9a-f]{32}$/i.test(keyHex) ? Buffer.from(keyHex, 'hex') : null
  let total = 0
  let first: Buffer | null = Buffer.alloc(0)
  let last = Buffer.alloc(0)

  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      total += chunk.length
      if (total > MAX_CIPHER_BYTES) return done(tooLarge())
      if (cipherBytes !== null && total > cipherBytes) return done(otherSize(total, cipherBytes))
      if (first !== null) {
        first = Buffer.concat([first, chunk.subarray(0, BLOCK - first.length)])
        if (first.length === BLOCK) {
          const problem = key === null ? null : wrongStart(decryptBlock(first, key), plainBytes, mediaType)
          if (problem !== null) return done(problem)
          first = null
        }
      }
      const held = Buffer.concat([last, chunk.subarray(-BLOCK)])
      const passed = last.length + chunk.length - BLOCK
      if (passed > 0) {
        if (last.length > 0) this.push(last.subarray(0, Math.min(last.length, passed)))
        if (chunk.length > BLOCK) this.push(chunk.subarray(0, -BLOCK))
      }
      last = held.subarray(-BLOCK)
      done()
    },
    flush(done) {
      if (total === 0 || total % BLOCK !== 0) return done(notCiphertext())
      if (cipherBytes !== null && total !== cipherBytes) return done(otherSize(total, cipherBytes))
      const problem = key === null ? null : wrongEnd(decryptBlock(last, key), total, plainBytes)
      done(problem, problem === null ? last : undefined)
    },
  })
}

function wrongStart(start: Buffer, plainBytes: number | null, mediaType: number | null): AppError | null {
  const kind = mediaType === null ? undefined : MAGIC[mediaType]
  if (kind === undefined || (plainBytes !== null && plainBytes < BLOCK)) return null
  const fits = kind.starts.some(({ at, hex }) => start.subarray(at, at + hex.length / 2).toString('hex') === hex)
  if (fits) return null
  return new AppError(
    'bad_request',
    `The file does not start like a known ${kind.name}; send it as a file (media_type 3).`,
  )
}

function wrongEnd(end: Buffer, total: number, plainBytes: number | null): AppError | null {
  const padding = end.at(-1) ?? 0
  const isPadded = padding >= 1 && padding <= BLOCK && end.subarray(-padding).every((byte) => byte === padding)
  if (!isPadded) return new AppError('bad_request', 'The file is not encrypted with the aeskey given to getuploadurl.')
  return plainBytes === null || total - padding === plainBytes ? null : otherSize(total - padding, plainBytes)
}

function decryptBlock(block: Buffer, key: Buffer): Buffer {
  const decipher = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false)
  return Buffer.concat([decipher.update(block), decipher.final()])
}

function paddedBytes(plainBytes: number): number {
  return (Math.floor(plainBytes / BLOCK) + 1) * BLOCK
}

/** A file over the limit, either way. */
export function tooLarge(): AppError {
  return new AppError('too_large', 'The file is larger than 100 MiB.')
}

function notCiphertext(): AppError {
  return new AppError(
    'bad_request',
    'The body must be the encrypted file: its length must be a multiple of 16, and not 0.',
  )
}

function otherSize(is: number, said: number): AppError {
  return new AppError('bad_request', `The file has ${is} bytes where getuploadurl was told ${said}.`)
}
