import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { AppError } from '../kit/errors.ts'

/** What a bot announced with `getuploadurl`. */
interface Upload {
  filekey: string
  /** Ciphertext bytes, when it was said. */
  fileSize?: number | undefined
}

/** A file that was encrypted and stored, with all a message says of it. */
export interface StoredFile {
  param: string
  keyHex: string
  plainBytes: number
  cipherBytes: number
  md5: string
}

/** The messaging service's file store: ciphertext under opaque params. */
export interface MediaStore {
  /** Makes an upload param. */
  announce(upload: Upload): string
  /** Takes the ciphertext of an announced upload and returns its download param. Fails with `upload_refused`. */
  upload(uploadParam: string, filekey: string, ciphertext: Buffer): string
  /** Fails with `media_gone`. */
  download(param: string): Buffer
  /** Encrypts under a random key and stores. */
  store(plain: Buffer): StoredFile
  readonly bytes: number
}

const MOST_BYTES = 256 * 1024 * 1024
const MOST_UPLOADS = 10_000

/** Files in memory; past its bound the oldest are forgotten. */
export function createMediaStore(mostBytes = MOST_BYTES): MediaStore {
  const uploads = new Map<string, Upload>()
  const files = new Map<string, Buffer>()
  let bytes = 0

  return {
    announce(upload) {
      const param = newParam()
      uploads.set(param, upload)
      dropFirst(uploads, MOST_UPLOADS)
      return param
    },
    upload(uploadParam, filekey, ciphertext) {
      const upload = uploads.get(uploadParam)
      if (upload === undefined) throw refusal('encrypted_query_param is unknown; ask getuploadurl for one')
      if (upload.filekey !== filekey) throw refusal('filekey is not the one given to getuploadurl')
      if (ciphertext.length === 0) throw refusal('the body is empty; send the ciphertext')
      if (upload.fileSize !== undefined && upload.fileSize !== ciphertext.length) {
        throw refusal(`the body has ${ciphertext.length} bytes and filesize said ${upload.fileSize}`)
      }
      return keep(ciphertext)
    },
    download(param) {
      const file = files.get(param)
      if (file === undefined) throw new AppError('media_gone', 'There is no file under this encrypted_query_param.')
      return file
    },
    store(plain) {
      const key = randomBytes(16)
      const ciphertext = encrypt(plain, key)
      const md5 = createHash('md5').update(plain).digest('hex')
      const sizes = { plainBytes: plain.length, cipherBytes: ciphertext.length }
      return { param: keep(ciphertext), keyHex: key.toString('hex'), ...sizes, md5 }
    },
    get bytes() {
      return bytes
    },
  }

  function keep(ciphertext: Buffer): string {
    const param = newParam()
    files.set(param, ciphertext)
    bytes += ciphertext.length
    for (const [oldest, file] of files) {
      if (bytes <= mostBytes || oldest === param) break
      files.delete(oldest)
      bytes -= file.length
    }
    return param
  }
}

/** AES-128-ECB with PKCS7, as the protocol has it. */
export function encrypt(plain: Buffer, key: Buffer): Buffer {
  const cipher = createCipheriv('aes-128-ecb', key, null)
  return Buffer.concat([cipher.update(plain), cipher.final()])
}

/** Undoes {@link encrypt}. Fails with `bad_media` when the key does not fit. */
export function decrypt(ciphertext: Buffer, key: Buffer): Buffer {
  try {
    const decipher = createDecipheriv('aes-128-ecb', key, null)
    return Buffer.concat([decipher.update(ciphertext), decipher.final()])
  } catch (error) {
    throw new AppError('bad_media', 'The file cannot be decrypted with the key of the message.', { cause: error })
  }
}

function refusal(text: string): AppError {
  return new AppError('upload_refused', text)
}

function newParam(): string {
  return randomBytes(24).toString('base64url')
}

function dropFirst<K, V>(map: Map<K, V>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return
    map.delete(key)
  }
}
