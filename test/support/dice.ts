/** Numbers that look random and come again with the same seed. */
export interface Dice {
  /** In [0, 1). */
  roll(): number
  /** A whole number from 0 to `below - 1`. */
  below(below: number): number
  pick<T>(values: readonly [T, ...T[]]): T
  /** True so often out of one. */
  chance(share: number): boolean
}

/** Dice of this seed (mulberry32). */
export function createDice(seed: number): Dice {
  let state = seed >>> 0
  const roll = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(roll() * limit)
  return {
    roll,
    below,
    pick: (values) => values[below(values.length)] ?? values[0],
    chance: (share) => roll() < share,
  }
}
