import { openSync, readdirSync, readFileSync } from 'node:fs'

const OPEN_FLAGS = /^flags:\s*([0-7]+)$/m
const CLOSE_ON_EXEC = 0o2000000

let found: { numbers: number[]; nothing: number | null } | undefined

/**
 * Descriptors that whoever started the server left open, and that programs started by it would get: Node closes the low
 * ones only. All that Node opens itself is closed by the kernel, so it is enough to look once. `nothing` is an open
 * `/dev/null` to put in their place; closing them here could release a lock that somebody holds by them.
 */
export function inheritedDescriptors(): { numbers: number[]; nothing: number | null } {
  if (found === undefined) {
    const numbers = lookAround()
    found = { numbers, nothing: numbers.length === 0 ? null : openSync('/dev/null', 'r') }
  }
  return found
}

function lookAround(): number[] {
  let names: string[]
  try {
    names = readdirSync('/proc/self/fdinfo')
  } catch {
    return [] // no /proc, as on other systems than Linux
  }
  return names
    .map(Number)
    .filter((number) => number > 2 && isInherited(number))
    .sort((a, b) => a - b)
}

function isInherited(number: number): boolean {
  try {
    const flags = OPEN_FLAGS.exec(readFileSync(`/proc/self/fdinfo/${number}`, 'utf8'))?.[1] ?? ''
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0
  } catch {
    return false // closed since: it was the one for reading the list
  }
}
