import { nearestRegion } from './nearest-region.ts'
import type { Hunk } from './patch-format.ts'
import { eolOf } from './text-file.ts'

/** The text after a patch, or why it does not fit. */
export type Patched = { ok: true; text: string } | { ok: false; problem: string }

interface Line {
  text: string
  eol: string
}

interface Change {
  from: number
  to: number
  lines: Line[]
}

/** Makes the changes of the hunks. Each must fit exactly one place, or the first after its anchor; lines kept stay as they are. */
export function patchText(original: string, hunks: readonly Hunk[]): Patched {
  const lines = splitLines(original)
  const eol = eolOf(original)
  const changes: Change[] = []
  for (const [index, hunk] of hunks.entries()) {
    const name = `hunk ${index + 1}`
    const found = findPlace(lines, hunk)
    if (typeof found === 'string') return { ok: false, problem: `${name} ${found}` }
    const change = changeAt(lines, hunk, found, eol)
    if (changes.some((other) => other.from < change.to && change.from < other.to))
      return { ok: false, problem: `${name} overlaps with another one; make them one.` }
    changes.push(change)
  }
  return { ok: true, text: apply(lines, changes, eol) }
}

function splitLines(text: string): Line[] {
  return [...text.matchAll(/([^\n]*?)(\r?\n|$)/g)]
    .map(([, line = '', eol = '']) => ({ text: line, eol }))
    .filter(({ text: line, eol }) => line !== '' || eol !== '')
}

/** The number of the line it begins at, or what is wrong. */
function findPlace(lines: readonly Line[], hunk: Hunk): number | string {
  const wanted = hunk.lines.filter(({ kind }) => kind !== 'add').map(({ text }) => text)
  let from = 0
  for (const anchor of hunk.anchors) {
    const at = lines.flatMap((line, index) => (index >= from && line.text.trim() === anchor ? [index] : []))
    if (at.length !== 1)
      return `has the anchor ${JSON.stringify(anchor)}, which is there ${at.length} times; give the whole of a line that is there once.`
    from = (at[0] ?? 0) + 1
  }
  if (wanted.length === 0) return hunk.anchors.length > 0 ? from : lines.length
  for (const same of [(a: string, b: string) => a === b, (a: string, b: string) => a.trimEnd() === b.trimEnd()]) {
    const at = placesOf(lines, wanted, from, same).filter(
      (place) => !hunk.atEnd || place + wanted.length === lines.length,
    )
    const [first] = at
    if (first === undefined) continue
    if (at.length === 1 || hunk.anchors.length > 0) return first
    return `fits ${at.length} places (lines ${at
      .slice(0, 10)
      .map((place) => place + 1)
      .join(', ')}); add lines around it, or an anchor (@@).`
  }
  const region = nearestRegion(lines.map((line) => line.text).join('\n'), wanted.join('\n'))
  return `fits no place.${region === null ? '' : ` The nearest is:\n${region}`}`
}

function placesOf(
  lines: readonly Line[],
  wanted: readonly string[],
  from: number,
  same: (a: string, b: string) => boolean,
): number[] {
  const places: number[] = []
  for (let at = from; at + wanted.length <= lines.length; at += 1)
    if (wanted.every((text, index) => same(lines[at + index]?.text ?? '', text))) places.push(at)
  return places
}

function changeAt(lines: readonly Line[], hunk: Hunk, from: number, eol: string): Change {
  let at = from
  const after: Line[] = []
  for (const { kind, text } of hunk.lines) {
    const own = lines[at]
    if (kind === 'add') after.push({ text, eol })
    else {
      if (kind === 'context' && own !== undefined) after.push(own)
      at += 1
    }
  }
  return { from, to: at, lines: after }
}

/** Whether the last line has a line break stays as it was. */
function apply(lines: readonly Line[], changes: readonly Change[], eol: string): string {
  const result = [...lines]
  for (const { from, to, lines: after } of [...changes].sort((a, b) => b.from - a.from))
    result.splice(from, to - from, ...after)
  const lastEol = lines.at(-1)?.eol ?? eol
  return result.map((line, index) => line.text + (index === result.length - 1 ? lastEol : line.eol || eol)).join('')
}
