/** Tells whether a path, with `/`, matches. */
export type PathMatcher = (path: string) => boolean

const MAX_ALTERNATIVES = 64

/**
 * A matcher for a pattern with `*`, `?`, `[a-z]`, `{a,b}` and `**` for any folders. A pattern without `/` matches the name of
 * a file in any folder. Without regular expressions, so that no pattern takes more than its length times that of the path.
 */
export function globMatcher(pattern: string): PathMatcher {
  const alternatives = expandBraces(pattern.replace(/^\.\//, '')).map((one) =>
    (one.includes('/') ? one.replace(/^\//, '') : `**/${one}`).split('/').map(readSegment),
  )
  return (path) => {
    const names = path.split('/')
    return alternatives.some((segments) => matchSegments(segments, names))
  }
}

type Token = { kind: 'star' } | { kind: 'any' } | { kind: 'one'; fits: (character: string) => boolean }
type Segment = '**' | Token[]

/** `a{b,c}d` as `abd` and `acd`; braces that make too many, or do not close, are taken as they are. */
function expandBraces(pattern: string): string[] {
  let patterns = [pattern]
  for (let round = 0; round < MAX_ALTERNATIVES; round += 1) {
    const next = patterns.flatMap(expandOne)
    if (next.length === patterns.length || next.length > MAX_ALTERNATIVES) break
    patterns = next
  }
  return patterns
}

function expandOne(pattern: string): string[] {
  const found = /^(.*?)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(pattern)
  if (found === null) return [pattern]
  const [, before = '', inside = '', after = ''] = found
  return inside.split(',').map((part) => before + part + after)
}

function readSegment(segment: string): Segment {
  if (segment === '**') return '**'
  const tokens: Token[] = []
  const characters = [...segment]
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    if (character === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' })
    } else if (character === '?') tokens.push({ kind: 'any' })
    else if (character === '[' && characters.indexOf(']', at + 2) !== -1) {
      const end = characters.indexOf(']', at + 2)
      tokens.push({ kind: 'one', fits: readClass(characters.slice(at + 1, end)) })
      at = end
    } else {
      const literal = character === '\\' && at + 1 < characters.length ? characters[++at] : character
      tokens.push({ kind: 'one', fits: (one) => one === literal })
    }
  }
  return tokens
}

function readClass(characters: string[]): (character: string) => boolean {
  const negated = characters[0] === '!' || characters[0] === '^'
  const parts = negated ? characters.slice(1) : characters
  const ranges: [string, string][] = []
  for (let at = 0; at < parts.length; at += 1) {
    const from = parts[at] ?? ''
    const isRange = parts[at + 1] === '-' && at + 2 < parts.length
    ranges.push([from, isRange ? (parts[at + 2] ?? from) : from])
    if (isRange) at += 2
  }
  return (character) => ranges.some(([from, to]) => from <= character && character <= to) !== negated
}

/** `reach[n]`: the segments so far match the first n names. */
function matchSegments(segments: readonly Segment[], names: readonly string[]): boolean {
  let reach = names.map(() => false)
  reach = [true, ...reach]
  for (const segment of segments) {
    let open = false
    reach = reach.map((reached, index) => {
      open ||= reached
      if (segment === '**') return open
      return index > 0 && reach[index - 1] === true && matchName(segment, [...(names[index - 1] ?? '')])
    })
  }
  return reach.at(-1) === true
}

/** After a star that took too little, only the last star need be tried with more. */
function matchName(tokens: readonly Token[], characters: readonly string[]): boolean {
  let token = 0
  let at = 0
  let star = -1
  let retry = 0
  while (at < characters.length) {
    const current = tokens[token]
    if (current?.kind === 'star') {
      star = token
      retry = at
      token += 1
    } else if (current?.kind === 'any' || (current?.kind === 'one' && current.fits(characters[at] ?? ''))) {
      token += 1
      at += 1
    } else if (star !== -1) {
      token = star + 1
      retry += 1
      at = retry
    } else return false
  }
  return tokens.slice(token).every(({ kind }) => kind === 'star')
}
