import { findMatches, type MatchKind, type Replacement } from './edit-match.ts'
import { nearestRegion } from './nearest-region.ts'
import { eolOf, withEol } from './text-file.ts'

/** A piece of text to be replaced by another. */
export interface Edit {
  oldText: string
  newText: string
  all: boolean
}

/** The text after an edit, or why it was not made. */
export type Edited =
  | { ok: true; text: string; kind: MatchKind; count: number; line: number; endLine: number }
  | { ok: false; problem: string }

/** Replaces what stands at exactly one place (or at all, when asked for). What the edit does not touch stays as it is. */
export function editText(original: string, { oldText, newText, all }: Edit): Edited {
  if (oldText === '') return { ok: false, problem: 'old_string is empty; use write_file to write a whole file.' }
  if (oldText === newText) return { ok: false, problem: 'old_string and new_string are the same: nothing to change.' }
  const text = original.replaceAll('\r\n', '\n')
  const { kind, places } = findMatches(text, withEol(oldText, '\n'), withEol(newText, '\n'))
  const [first] = places
  if (first === undefined) return { ok: false, problem: notFound(text, oldText) }
  if (places.length > 1 && !all) return { ok: false, problem: ambiguous(text, places) }
  const chosen = withoutOverlaps(places)
  const line = lineAt(text, first.start)
  return {
    ok: true,
    text: splice(original, text, chosen),
    kind,
    count: chosen.length,
    line,
    endLine: line + first.text.split('\n').length - 1,
  }
}

/** Puts the new texts in. Places are of the text with `\n`; the original may have `\r\n` here and there, and keeps them. */
function splice(original: string, text: string, places: readonly Replacement[]): string {
  const eol = eolOf(original)
  const toOriginal = original.length === text.length ? (at: number) => at : offsetsOf(original)
  let result = ''
  let from = 0
  for (const { start, end, text: replacement } of places) {
    result += original.slice(from, toOriginal(start)) + withEol(replacement, eol)
    from = toOriginal(end)
  }
  return result + original.slice(from)
}

/** For places in the text with `\n`: where they are in the original. */
function offsetsOf(original: string): (at: number) => number {
  const removed: number[] = []
  for (let at = original.indexOf('\r\n'); at !== -1; at = original.indexOf('\r\n', at + 2))
    removed.push(at - removed.length)
  return (at) => {
    let low = 0
    let high = removed.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((removed[middle] ?? 0) < at) low = middle + 1
      else high = middle
    }
    return at + low
  }
}

function withoutOverlaps(places: readonly Replacement[]): Replacement[] {
  let end = 0
  return places.filter((place) => {
    if (place.start < end) return false
    end = place.end
    return true
  })
}

function lineAt(text: string, at: number): number {
  return text.slice(0, at).split('\n').length
}

function ambiguous(text: string, places: readonly Replacement[]): string {
  const lines = places.slice(0, 10).map(({ start }) => lineAt(text, start))
  return (
    `old_string matches ${places.length} places (lines ${lines.join(', ')}${places.length > 10 ? ', …' : ''}). ` +
    'Add lines around it until it matches one, or set replace_all.'
  )
}

function notFound(text: string, oldText: string): string {
  const region = nearestRegion(text, withEol(oldText, '\n'))
  const hint = 'Copy the text as it stands in the file, without line numbers.'
  if (region === null) return `old_string matches 0 places, and nothing in the file is like it. ${hint}`
  return `old_string matches 0 places. ${hint} The nearest is:\n${region}`
}
