import { createHash } from 'node:crypto'

/** What a repetition means: nothing, a hint to the model, or the end of the run. */
export type StuckVerdict = 'fine' | 'nudge' | 'stuck'

/** Watches for a model that goes in circles. */
export interface StuckDetector {
  /** A call and its result; the same call with the same result again and again is a circle. */
  note(name: string, input: unknown, output: string): StuckVerdict
}

const NUDGE_AT = 3
const STUCK_AT = 5
const PAIRS_ARE_STUCK_AT = 6

/** Told to the model with the third identical result. */
export const NUDGE =
  '\n\n(This is the third identical call with an identical result. Try something else, or answer with what you know.)'

export function stuckDetector(): StuckDetector {
  const recent: string[] = []
  return {
    note(name, input, output) {
      recent.push(digest(name, input, output))
      if (recent.length > 2 * PAIRS_ARE_STUCK_AT) recent.shift()
      const run = sameInARow(recent)
      if (run >= STUCK_AT || alternates(recent)) return 'stuck'
      return run === NUDGE_AT ? 'nudge' : 'fine'
    },
  }
}

function sameInARow(recent: string[]): number {
  const last = recent.at(-1)
  const differs = recent.findLastIndex((one) => one !== last)
  return recent.length - 1 - differs
}

/** A, B, A, B, …, six times over. */
function alternates(recent: string[]): boolean {
  const [a, b] = recent
  if (recent.length < 2 * PAIRS_ARE_STUCK_AT || a === b) return false
  return recent.every((one, index) => one === (index % 2 === 0 ? a : b))
}

function digest(name: string, input: unknown, output: string): string {
  return createHash('sha256')
    .update(JSON.stringify([name, canonical(input), output]))
    .digest('base64')
}

/** The same object whatever the order of its keys. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, canonical(inner)]),
  )
}
