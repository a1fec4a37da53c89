import { expect, onTestFailed } from 'vitest'
import { soak } from '../soak/soak.ts'
import { verifies } from '../support/verifies.ts'

/** The first half of it has two kills; `npm run soak` is the long form. */
const SECONDS = 20

verifies(
  ['proof:soak:nothing-lost', 'proof:soak:nothing-grows'],
  async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const told = [`seed ${seed}`]
    // Also where it took too long: what it was waiting for is in there.
    onTestFailed(() => console.error(told.join('\n')))
    const say = (line: string) => void told.push(`${new Date().toISOString()} ${line}`)
    const report = await soak({ seconds: SECONDS, seed, say })
    expect(report.problems, `seed ${report.seed}`).toEqual([])
    expect(report.messages.got).toBeGreaterThan(0)
    expect(report.runs.ended).toBeGreaterThan(0)
    expect(report.crashes.hub + report.crashes.agent + report.crashes.bridge).toBeGreaterThan(0)
  },
  300_000,
)
