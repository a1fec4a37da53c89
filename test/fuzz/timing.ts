import { quantile } from '../../bench/figures.ts'

/** What wrong secrets cost the caller in time: near ones (all but the last sign right) and far ones. Only a report. */
export interface TimingReport {
  /** Pairs that were asked before the server had enough of wrong secrets. */
  pairs: number
  nearMs: number
  farMs: number
  /** The difference of the means by its standard error; far beyond 4 in several runs would be worth a look. */
  t: number
}

/** Asks in turn with a near and a far secret, and compares. */
export async function secretTiming(
  url: string,
  headersOf: (secret: string) => Record<string, string>,
  secret: string,
  rounds: number,
): Promise<TimingReport> {
  const near = `${secret.slice(0, -1)}#`
  const far = `#${secret.slice(1)}`
  const [nearMs, farMs]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    const pair = [await timed(url, headersOf(near)), await timed(url, headersOf(far))] as const
    if (pair[0] === null || pair[1] === null) break
    nearMs.push(pair[0])
    farMs.push(pair[1])
  }
  const pairs = nearMs.length
  const error = Math.sqrt(variance(nearMs) / pairs + variance(farMs) / pairs)
  const round = (value: number) => Number(value.toFixed(3))
  return {
    pairs,
    nearMs: round(quantile(nearMs, 0.5)),
    farMs: round(quantile(farMs, 0.5)),
    t: round(error === 0 ? 0 : (mean(nearMs) - mean(farMs)) / error),
  }
}

/** Null when wrong secrets are no longer looked at. */
async function timed(url: string, headers: Record<string, string>): Promise<number | null> {
  const startedAt = performance.now()
  const response = await fetch(url, { headers })
  await response.text()
  if (response.status === 429) return null
  if (response.status !== 401) throw new Error(`a wrong secret was answered with ${response.status}`)
  return performance.now() - startedAt
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function variance(values: readonly number[]): number {
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / Math.max(1, values.length - 1)
}
