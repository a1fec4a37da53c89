import type { Family } from './prometheus-text.ts'

/** A metric as the page documents it, or as a server shows it. */
export interface MetricRow {
  name: string
  type: string
  labels: string[]
  meaning: string
}

/** The rows of docs/metrics.md whose names begin with `prefix`. */
export function documentedMetrics(page: string, prefix: string): MetricRow[] {
  const rows = page.matchAll(new RegExp(`^\\| \`(${prefix}\\w+)\` \\| (\\w+) \\| (.*?) ?\\| (.*) \\|$`, 'gm'))
  return [...rows].map(([, name = '', type = '', labels = '', meaning = '']) => ({
    name,
    type,
    labels: ticked(labels),
    meaning,
  }))
}

/** The same of what a server showed, by name. */
export function servedMetrics(families: readonly Family[]): MetricRow[] {
  return families
    .map((family) => ({ name: family.name, type: family.type, labels: labelsOf(family), meaning: family.help }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** What stands between backticks. */
export function ticked(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

function labelsOf({ samples }: Family): string[] {
  return [...new Set(samples.flatMap(({ labels }) => Object.keys(labels)))].filter((label) => label !== 'le').sort()
}
