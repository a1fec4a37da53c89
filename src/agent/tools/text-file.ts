import { isUtf8 } from 'node:buffer'

/** The largest file that is read as a whole. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024

/** A text as it stands in a file. */
export interface TextFile {
  /** Without its byte order mark. */
  text: string
  bom: boolean
}

const BOM = '\ufeff'
const SNIFFED_BYTES = 8_000

/** The text of UTF-8 bytes; null when they are something else. */
export function decodeText(bytes: Buffer): TextFile | null {
  if (!isUtf8(bytes) || bytes.includes(0)) return null
  const text = bytes.toString('utf8')
  const bom = text.startsWith(BOM)
  return { text: bom ? text.slice(1) : text, bom }
}

/** The bytes of a text, with its byte order mark where it had one. */
export function encodeText({ text, bom }: TextFile): Buffer {
  return Buffer.from(bom ? BOM + text : text)
}

/** Tells whether the bytes are no text of any kind. */
export function isBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, SNIFFED_BYTES).includes(0)
}

/** The line ending that most lines of a text have. */
export function eolOf(text: string): '\r\n' | '\n' {
  const all = text.split('\n').length - 1
  const crlf = text.split('\r\n').length - 1
  return crlf > all / 2 ? '\r\n' : '\n'
}

/** `text` with all its line endings of one kind. */
export function withEol(text: string, eol: '\r\n' | '\n'): string {
  const plain = text.replaceAll('\r\n', '\n')
  return eol === '\n' ? plain : plain.replaceAll('\n', '\r\n')
}

/** Lines with their numbers, as the tools show them. */
export function numbered(lines: readonly string[], first: number): string {
  return lines.map((line, index) => `${String(first + index).padStart(6)}\t${line}`).join('\n')
}

const MAGIC: [string, RegExp][] = [
  ['PNG', /^\x89PNG\r\n\x1a\n/],
  ['JPEG', /^\xff\xd8\xff/],
  ['GIF', /^GIF8[79]a/],
  ['WebP', /^RIFF[\s\S]{4}WEBP/],
  ['BMP', /^BM[\s\S]{4}\0\0\0\0/],
]

/** The kind of picture these bytes are, if they are one. */
export function imageKind(bytes: Buffer): string | null {
  const start = bytes.toString('latin1', 0, 16)
  return MAGIC.find(([, pattern]) => pattern.test(start))?.[0] ?? null
}
