import { AppError } from '../../kit/errors.ts'

/** One change of a file, as a patch says it. */
export type PatchSection =
  | { kind: 'add'; path: string; lines: string[] }
  | { kind: 'delete'; path: string }
  | { kind: 'update'; path: string; moveTo: string | null; hunks: Hunk[] }

/** A place in a file: its lines before and after. */
export interface Hunk {
  /** Lines that come before it, from the outside in. */
  anchors: string[]
  lines: { kind: 'context' | 'remove' | 'add'; text: string }[]
  /** It ends with the file. */
  atEnd: boolean
}

const HEADER = /^\*\*\* (Add|Delete|Update) File: (.+)$/
const FORM =
  'A patch is:\n*** Begin Patch\n*** Update File: path\n@@ a line above, if the place needs telling\n context\n-old\n+new\n*** End Patch'

/** Reads a patch of the form `*** Begin Patch … *** End Patch`. What is wrong is told with its line. */
export function parsePatch(text: string): PatchSection[] {
  const lines = text.replaceAll('\r\n', '\n').trim().split('\n')
  const begin = lines.findIndex((line) => line.trim() === '*** Begin Patch')
  const end = lines.findLastIndex((line) => line.trim() === '*** End Patch')
  if (begin === -1 || end < begin) throw wrong('it must start with "*** Begin Patch" and end with "*** End Patch"')
  const sections: PatchSection[] = []
  let at = begin + 1
  while (at < end) {
    const header = HEADER.exec((lines[at] ?? '').trimEnd())
    if (header === null) {
      if ((lines[at] ?? '').trim() !== '') throw wrong(`line ${at + 1} is no file header: ${quoted(lines[at])}`)
      at += 1
      continue
    }
    let next = at + 1
    while (next < end && !HEADER.test((lines[next] ?? '').trimEnd())) next += 1
    sections.push(readSection(header[1] ?? '', (header[2] ?? '').trim(), lines.slice(at + 1, next), at + 2))
    at = next
  }
  if (sections.length === 0) throw wrong('it names no file')
  return sections
}

function readSection(verb: string, path: string, body: string[], firstLine: number): PatchSection {
  if (verb === 'Delete') return { kind: 'delete', path }
  if (verb === 'Add') {
    const bad = body.findIndex((line) => !line.startsWith('+') && line.trim() !== '')
    if (bad !== -1) throw wrong(`line ${firstLine + bad} of a new file must start with "+": ${quoted(body[bad])}`)
    return { kind: 'add', path, lines: body.filter((line) => line.startsWith('+')).map((line) => line.slice(1)) }
  }
  const move = /^\*\*\* Move to: (.+)$/.exec(body[0] ?? '')
  const hunks = readHunks(move === null ? body : body.slice(1), move === null ? firstLine : firstLine + 1)
  if (hunks.length === 0 && move === null) throw wrong(`the update of ${path} changes nothing`)
  return { kind: 'update', path, moveTo: move?.[1]?.trim() ?? null, hunks }
}

function readHunks(body: string[], firstLine: number): Hunk[] {
  const hunks: Hunk[] = []
  body.forEach((line, index) => {
    let current = hunks.at(-1)
    const isAnchor = line.startsWith('@@')
    // Several anchors in a row narrow the place down: a class, then a method of it.
    if (current === undefined || (isAnchor && current.lines.length > 0)) {
      current = { anchors: [], lines: [], atEnd: false }
      hunks.push(current)
    }
    if (isAnchor) current.anchors.push(...readAnchor(line))
    else if (line.trim() === '*** End of File') current.atEnd = true
    else current.lines.push(readLine(line, firstLine + index))
  })
  return hunks.map(withoutBlankEnd).filter((hunk) => hunk.lines.some(({ kind }) => kind !== 'context'))
}

/** Line numbers, as other forms of patches have them, say nothing here: the text does. */
function readAnchor(line: string): string[] {
  const anchor = line
    .slice(2)
    .trim()
    .replace(/\s*@@$/, '')
  return anchor === '' || /^-\d+(,\d+)? \+\d+(,\d+)?$/.test(anchor) ? [] : [anchor]
}

function readLine(line: string, number: number): Hunk['lines'][number] {
  if (line.startsWith('+')) return { kind: 'add', text: line.slice(1) }
  if (line.startsWith('-')) return { kind: 'remove', text: line.slice(1) }
  if (line.startsWith(' ')) return { kind: 'context', text: line.slice(1) }
  if (line === '') return { kind: 'context', text: '' }
  throw wrong(`line ${number} must start with a space, "+" or "-": ${quoted(line)}`)
}

/** Empty lines between a hunk and the next header are there for the eye. */
function withoutBlankEnd(hunk: Hunk): Hunk {
  const last = hunk.lines.findLastIndex(({ kind, text }) => kind !== 'context' || text !== '')
  return { ...hunk, lines: hunk.lines.slice(0, last + 1) }
}

function quoted(line: string | undefined): string {
  return JSON.stringify((line ?? '').slice(0, 100))
}

function wrong(what: string): AppError {
  return new AppError('bad_request', `The patch cannot be read: ${what}. Nothing was changed. ${FORM}`)
}
