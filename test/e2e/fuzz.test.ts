import { expect } from 'vitest'
import { fuzz } from '../fuzz/fuzz.ts'
import { verifies } from '../support/verifies.ts'

/** A short one; `npm run fuzz` is the long form. */
const SECONDS = 12

verifies(
  ['proof:fuzz:documented-only', 'proof:fuzz:unharmed', 'proof:fuzz:refused-changes-nothing', 'proof:fuzz:crowds'],
  async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const report = await fuzz({ seconds: SECONDS, seed, connections: 500, say: () => {} })
    expect(report.problems, `seed ${seed}`).toEqual([])
    expect(report.requests.hub).toBeGreaterThan(0)
    expect(report.requests.agent).toBeGreaterThan(0)
    expect(report.crowds.hub.connections).toBe(500)
    expect(report.crowds.agent.connections).toBe(500)
  },
  180_000,
)
