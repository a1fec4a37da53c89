/** A place in a text, and what comes there. */
export interface Replacement {
  start: number
  end: number
  text: string
}

/** How a place was found: as it stands, or with one of the differences that are overlooked. */
export type MatchKind = 'exact' | 'trailing space' | 'indentation'

/** The places of an old text, all found in the same way. */
export interface Matches {
  kind: MatchKind
  /** All of them, in order; those of `exact` may overlap. */
  places: Replacement[]
}

const MIN_FLEXIBLE_CHARS = { oneLine: 20, moreLines: 12 }
const TAB_WIDTHS = [4, 2, 8]

/**
 * Where `oldText` stands in `text`, both with `\n`: exactly; else line by line with other spaces at line ends; else with
 * another indentation as a whole. The first way that finds anything decides, so that a close match is never weighed against
 * an exact one. Empty when there is none.
 */
export function findMatches(text: string, oldText: string, newText: string): Matches {
  const exact = findExact(text, oldText, newText)
  if (exact.length > 0) return { kind: 'exact', places: exact }
  const lines = splitLines(text)
  const trailing = findLines(lines, oldText, newText, trimmedAlike)
  if (trailing.length > 0) return { kind: 'trailing space', places: trailing }
  return { kind: 'indentation', places: findIndented(lines, oldText, newText) }
}

function findExact(text: string, oldText: string, newText: string): Replacement[] {
  const places: Replacement[] = []
  for (let at = text.indexOf(oldText); at !== -1; at = text.indexOf(oldText, at + 1))
    places.push({ start: at, end: at + oldText.length, text: newText })
  return places
}

interface Line {
  text: string
  trimmed: string
  start: number
}

function splitLines(text: string): Line[] {
  let start = 0
  return text.split('\n').map((line) => {
    const at = start
    start += line.length + 1
    return { text: line, trimmed: line.trim(), start: at }
  })
}

/** What the new text is when these lines are taken for the old ones; null when they are not. */
type LineMatch = (found: readonly string[], oldLines: readonly string[], newLines: readonly string[]) => string[] | null

/** Whole lines only: a part of a line is never found in a relaxed way. */
function findLines(lines: readonly Line[], oldText: string, newText: string, match: LineMatch): Replacement[] {
  const endsLine = oldText.endsWith('\n')
  const oldLines = (endsLine ? oldText.slice(0, -1) : oldText).split('\n')
  const newLines = newText.split('\n')
  if (oldLines.every((line) => line.trim() === '')) return []
  const places: Replacement[] = []
  const first = oldLines[0]?.trim()
  for (let at = 0; at + oldLines.length <= lines.length; at += 1) {
    // What differs in more than space at its sides never matches; this spares most places the comparison.
    if (lines[at]?.trimmed !== first) continue
    const window = lines.slice(at, at + oldLines.length)
    const found = match(
      window.map((line) => line.text),
      oldLines,
      newLines,
    )
    const last = window.at(-1)
    if (found === null || last === undefined) continue
    const takesBreak = endsLine && at + oldLines.length < lines.length
    // A last line without a line break does not get one.
    if (endsLine && !takesBreak && found.at(-1) === '') found.pop()
    const end = last.start + last.text.length + (takesBreak ? 1 : 0)
    places.push({ start: window[0]?.start ?? 0, end, text: found.join('\n') })
  }
  return places
}

function trimmedAlike(
  found: readonly string[],
  oldLines: readonly string[],
  newLines: readonly string[],
): string[] | null {
  return found.every((line, index) => line.trimEnd() === oldLines[index]?.trimEnd()) ? [...newLines] : null
}

/** Too little text, found anywhere at any depth, may well be another place: then it is not looked for. */
function findIndented(lines: readonly Line[], oldText: string, newText: string): Replacement[] {
  const filled = oldText.split('\n').filter((line) => line.trim() !== '')
  const least = filled.length < 2 ? MIN_FLEXIBLE_CHARS.oneLine : MIN_FLEXIBLE_CHARS.moreLines
  if (oldText.replace(/\s/g, '').length < least) return []
  const ways: ((text: string) => string)[] = [
    (text) => text,
    ...TAB_WIDTHS.map((width) => (text: string) => spacesToTabs(text, width)),
    ...TAB_WIDTHS.map((width) => (text: string) => tabsToSpaces(text, width)),
  ]
  const places = new Map<string, Replacement>()
  for (const way of ways) {
    for (const place of findLines(lines, way(oldText), way(newText), indentedAlike)) {
      // Two ways to the same place that differ in what they would write: the first is the nearest to what was asked.
      const key = `${place.start}:${place.end}`
      if (!places.has(key)) places.set(key, place)
    }
  }
  return [...places.values()].sort((a, b) => a.start - b.start)
}

/** The same lines when the indentation that all share is taken off; the new lines get that of the found ones. */
function indentedAlike(
  found: readonly string[],
  oldLines: readonly string[],
  newLines: readonly string[],
): string[] | null {
  const foundIndent = sharedIndent(found)
  const oldIndent = sharedIndent(oldLines)
  const alike = found.every(
    (line, index) =>
      line.slice(foundIndent.length).trimEnd() === (oldLines[index] ?? '').slice(oldIndent.length).trimEnd(),
  )
  if (!alike) return null
  const moved: string[] = []
  for (const line of newLines) {
    if (line.trim() === '') moved.push(line.trim())
    else if (line.startsWith(oldIndent)) moved.push(foundIndent + line.slice(oldIndent.length))
    // Less indented than anything in the old text: where it belongs cannot be told.
    else return null
  }
  return moved
}

function sharedIndent(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^[ \t]*/.exec(line)?.[0] ?? '')
  return indents.reduce((shared, indent) => {
    let length = 0
    while (length < shared.length && shared[length] === indent[length]) length += 1
    return shared.slice(0, length)
  }, indents[0] ?? '')
}

function spacesToTabs(text: string, width: number): string {
  return text.replace(/^ +/gm, (spaces) => '\t'.repeat(spaces.length / width) + ' '.repeat(spaces.length % width))
}

function tabsToSpaces(text: string, width: number): string {
  return text.replace(/^\t+/gm, (tabs) => ' '.repeat(tabs.length * width))
}
