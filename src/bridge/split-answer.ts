import { wholeCharacters } from '../kit/graphemes.ts'

/** What the messenger takes in one message. */
const MOST_CHARS = 2_000

/**
 * The pieces in which an answer goes out: each at most `most` long, cut at a blank line, a line end or a space. A fenced
 * block of code stays whole where it fits into one piece; a longer one is closed and opened again at each cut.
 */
export function splitAnswer(text: string, most = MOST_CHARS): string[] {
  const pieces: string[] = []
  let piece = ''
  const flush = () => {
    if (piece.trim() !== '') pieces.push(piece.trimEnd().replace(/^\n+/, ''))
    piece = ''
  }
  for (const block of blocksOf(text)) {
    for (const part of partsOf(block, most)) {
      if (piece.length + part.length > most) flush()
      piece += part
    }
  }
  flush()
  return pieces
}

interface Block {
  /** The line that opens a fence; null for prose. */
  opener: string | null
  text: string
}

/** Fenced blocks, and what stands between them by paragraph. */
function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  let open: Block | null = null
  let fence = ''
  for (const line of text.split(/(?<=\n)/)) {
    const marks = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? ''
    if (open !== null) {
      open.text += line
      const closes = marks.startsWith(fence) && line.trim() === marks
      if (!closes) continue
      blocks.push(open)
      open = null
    } else if (marks !== '') {
      fence = marks
      open = { opener: line.trimEnd(), text: line }
    } else {
      addProse(blocks, line)
    }
  }
  // A fence that nobody closed runs to the end.
  if (open !== null) blocks.push(open)
  return blocks
}

/** A paragraph ends with its blank line. */
function addProse(blocks: Block[], line: string): void {
  const last = blocks.at(-1)
  if (last !== undefined && last.opener === null && !/\n\s*\n$/.test(last.text)) last.text += line
  else blocks.push({ opener: null, text: line })
}

/** A block as it is, or in parts that fit. */
function partsOf({ opener, text }: Block, most: number): string[] {
  if (text.length <= most) return [text]
  if (opener === null) return cut(text, most)
  const marks = /`{3,}|~{3,}/.exec(opener)?.[0] ?? '```'
  const lines = text.trimEnd().split('\n')
  const closed = lines.at(-1)?.trim() === marks
  const body = lines.slice(1, closed ? -1 : undefined).join('\n')
  const head = opener.length < most / 4 ? opener : marks
  const room = most - head.length - marks.length - 3
  if (room < 1) return cut(text, most)
  return cut(`${body}\n`, room).map((part) => `${head}\n${part.replace(/\n?$/, '\n')}${marks}\n`)
}

/** Parts of at most `most`, cut behind a line end, else behind a space, never inside a character. */
function cut(text: string, most: number): string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > most) {
    const at = cutAt(rest, most)
    parts.push(rest.slice(0, at))
    rest = rest.slice(at)
  }
  return rest === '' ? parts : [...parts, rest]
}

function cutAt(text: string, most: number): number {
  for (const end of ['\n', ' ']) {
    const at = text.lastIndexOf(end, most - 1) + 1
    if (at > most / 2) return at
  }
  return wholeCharacters(text, most)
}
