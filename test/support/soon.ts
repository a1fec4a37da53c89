import { vi } from 'vitest'

/** Waits until the check no longer throws, long enough for a machine that is busy. */
export function soon<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 10_000, interval: 5 })
}
