import { wholeCharacters } from '../kit/graphemes.ts'

/** The upstream cuts longer texts without a word. */
export const MAX_TEXT_CHARS = 2_000

/** A line that opens or closes a block of code. */
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/

/**
 * Pieces of at most `most` characters that together are the text: cut behind a line end outside of code, else behind any
 * line end, else behind a space, and never inside a character or a fence's marker. A piece of white space alone is left
 * out: the service takes no empty message.
 */
export function splitText(text: string, most = MAX_TEXT_CHARS): string[] {
  const pieces: string[] = []
  let rest = text
  let inCode = false
  while (rest.length > most) {
    const cut = cutAt(rest, most, inCode)
    pieces.push(rest.slice(0, cut.at))
    rest = rest.slice(cut.at)
    inCode = cut.inCode
  }
  pieces.push(rest)
  const visible = pieces.filter((piece) => piece.trim() !== '')
  return visible.length > 0 ? visible : pieces.slice(0, 1)
}

interface Cut {
  at: number
  /** The rest starts inside a block of code. */
  inCode: boolean
}

/** A break in the first half is not worth a short piece. */
function cutAt(text: string, most: number, startsInCode: boolean): Cut {
  const least = most / 2
  let inCode = startsInCode
  let behindLine: Cut | null = null
  let behindProse: Cut | null = null
  for (let start = 0; ; ) {
    const end = text.indexOf('\n', start) + 1
    if (end === 0 || end > most) break
    if (FENCE.test(text.slice(start, end))) inCode = !inCode
    if (end > least) {
      behindLine = { at: end, inCode }
      if (!inCode) behindProse = behindLine
    }
    start = end
  }
  if (behindProse ?? behindLine) return behindProse ?? behindLine ?? { at: most, inCode }
  const space = text.lastIndexOf(' ', most - 1) + 1
  return { at: space > least ? space : hardCut(text, most), inCode }
}

/** Not inside what people see as one character, and not between the signs of a marker, unless nothing else is left. */
function hardCut(text: string, most: number): number {
  const sign = text.charAt(most)
  if (sign === '`' || sign === '~') {
    let at = most
    while (at > 0 && text.charAt(at - 1) === sign) at -= 1
    if (at > 0) return at
  }
  return wholeCharacters(text, most)
}
