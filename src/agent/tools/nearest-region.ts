import { numbered } from './text-file.ts'
import { cutEnd } from './truncate.ts'

const MAX_SHOWN_BYTES = 800
const MAX_LINES = 20_000
const MAX_COMPARED = 5_000
const MAX_WANTED = 60

/** The lines of `text` that look most like `wanted`, with their numbers; null when nothing does. */
export function nearestRegion(text: string, wanted: string): string | null {
  const lines = text.split('\n').slice(0, MAX_LINES)
  const targets = wanted.split('\n').slice(0, MAX_WANTED)
  const first = nearestStart(lines, targets)
  if (first === null) return null
  const from = Math.max(0, first - 1)
  return cutEnd(numbered(lines.slice(from, first + targets.length + 1), from + 1), MAX_SHOWN_BYTES)
}

/** Where the most lines are the same but for spaces; else the line most like the first that says anything. */
function nearestStart(lines: readonly string[], targets: readonly string[]): number | null {
  const votes = new Map<number, number>()
  const places = new Map<string, number[]>()
  lines.forEach((line, index) => {
    const key = line.trim()
    const known = places.get(key)
    if (known === undefined) places.set(key, [index])
    else known.push(index)
  })
  targets.forEach((target, offset) => {
    const key = target.trim()
    if (key.length < 3) return
    // A line that stands everywhere says little about where.
    const at = places.get(key) ?? []
    for (const index of at) votes.set(index - offset, (votes.get(index - offset) ?? 0) + 1 / at.length)
  })
  const best = [...votes].sort((a, b) => b[1] - a[1])[0]
  if (best !== undefined) return Math.max(0, best[0])
  const anchor = targets.findIndex((target) => target.trim().length > 3)
  return anchor === -1 ? null : similarLine(lines, targets[anchor] ?? '', anchor)
}

function similarLine(lines: readonly string[], target: string, offset: number): number | null {
  const wanted = pairs(target)
  let best: number | null = null
  let bestScore = 0.4 // below that a likeness is chance
  lines.slice(0, MAX_COMPARED).forEach((line, index) => {
    const score = likeness(wanted, pairs(line))
    if (score > bestScore) {
      best = Math.max(0, index - offset)
      bestScore = score
    }
  })
  return best
}

function pairs(text: string): Set<string> {
  const trimmed = text.trim().slice(0, 300)
  return new Set(Array.from({ length: Math.max(0, trimmed.length - 1) }, (_, index) => trimmed.slice(index, index + 2)))
}

function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of a) if (b.has(pair)) shared += 1
  return a.size + b.size === 0 ? 0 : (2 * shared) / (a.size + b.size)
}
