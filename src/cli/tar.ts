/** What goes into an archive. */
export interface TarEntry {
  /** With slashes, relative. */
  path: string
  kind: 'file' | 'folder' | 'link'
  mode: number
  modifiedMs: number
  bytes: number
  /** Where a link leads. */
  target?: string
}

const BLOCK = 512
const TYPES = { file: '0', link: '2', folder: '5' } as const
const LONG_NAME = 'L'
const LONG_TARGET = 'K'
const NAME_BYTES = 100

/** The blocks that stand before the content of an entry, in the format that every tar reads. */
export function tarHeader(entry: TarEntry): Buffer {
  const path = entry.kind === 'folder' ? `${entry.path}/` : entry.path
  const target = entry.target ?? ''
  return Buffer.concat([
    ...long(path, LONG_NAME),
    ...long(target, LONG_TARGET),
    header({
      path,
      target,
      type: TYPES[entry.kind],
      mode: entry.mode & 0o7777,
      bytes: entry.kind === 'file' ? entry.bytes : 0,
      seconds: Math.floor(entry.modifiedMs / 1000),
    }),
  ])
}

/** What fills the last block of a content of so many bytes. */
export function tarPadding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK)
}

/** What ends an archive. */
export const TAR_END = Buffer.alloc(BLOCK * 2)

/** A name that does not fit goes before its entry, as the content of one of its own. */
function long(text: string, type: string): Buffer[] {
  const bytes = Buffer.from(`${text}\0`)
  if (bytes.length <= NAME_BYTES + 1) return []
  const one = { path: '././@LongLink', target: '', type, mode: 0o644, bytes: bytes.length, seconds: 0 }
  return [header(one), bytes, tarPadding(bytes.length)]
}

interface Header {
  path: string
  target: string
  type: string
  mode: number
  bytes: number
  seconds: number
}

function header({ path, target, type, mode, bytes, seconds }: Header): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number) =>
    void block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'ascii')
  Buffer.from(path).copy(block, 0, 0, NAME_BYTES)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(bytes, 124, 12)
  octal(seconds, 136, 12)
  block.write('        ', 148, 'ascii') // the checksum counts as spaces
  block.write(type, 156, 'ascii')
  Buffer.from(target).copy(block, 157, 0, NAME_BYTES)
  block.write('ustar  \0', 257, 'ascii')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'ascii')
  return block
}
