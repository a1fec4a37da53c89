import { StringDecoder } from 'node:string_decoder'

/** How much of a tool's output a model is shown. */
export interface Limits {
  maxLines: number
  maxBytes: number
}

/** The beginning and the end of a text that was too long, and how much stands between them. */
export interface Cut {
  head: string
  tail: string
  lines: number
  bytes: number
}

/** What a model is shown of one call's output. */
export const OUTPUT_LIMITS: Limits = { maxLines: 2_000, maxBytes: 50 * 1024 }

/** Half of the limits from the beginning and half from the end, in whole lines unless one is huge; null when all fits. */
export function cutMiddle(text: string, { maxLines, maxBytes }: Limits): Cut | null {
  const bytes = Buffer.byteLength(text)
  const lines = text.split(/(?<=\n)/)
  if (bytes <= maxBytes && lines.length <= maxLines) return null
  const half = { maxLines: Math.floor(maxLines / 2), maxBytes: Math.floor(maxBytes / 2) }
  const headLines = fitting(lines, half)
  const tailLines = fitting(lines.toReversed(), {
    ...half,
    maxLines: Math.min(half.maxLines, lines.length - headLines),
  })
  const head = headLines === 0 ? cutEnd(lines[0] ?? '', half.maxBytes) : lines.slice(0, headLines).join('')
  const tail = tailLines === 0 ? cutStart(lines.at(-1) ?? '', half.maxBytes) : lines.slice(-tailLines).join('')
  return {
    head,
    tail,
    lines: lines.length - headLines - tailLines,
    bytes: bytes - Buffer.byteLength(head) - Buffer.byteLength(tail),
  }
}

/** As much of the beginning as has no more than `maxBytes` bytes, characters whole. */
export function cutEnd(text: string, maxBytes: number): string {
  return new StringDecoder('utf8').write(Buffer.from(text).subarray(0, maxBytes))
}

function cutStart(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  let from = Math.max(0, bytes.length - maxBytes)
  while (((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1
  return bytes.toString('utf8', from)
}

/** How many lines from the first on are within the limits. */
function fitting(lines: readonly string[], { maxLines, maxBytes }: Limits): number {
  let count = 0
  let bytes = 0
  for (const line of lines.slice(0, maxLines)) {
    bytes += Buffer.byteLength(line)
    if (bytes > maxBytes) break
    count += 1
  }
  return count
}
