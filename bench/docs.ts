// Writes docs/performance.md and its plot from docs/performance.json: `npm run bench:docs`.
//   <file>   another report than that
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { growthPlot, type Report, withFigures } from './report.ts'

const docs = fileURLToPath(new URL('../docs/', import.meta.url))
const report: Report = JSON.parse(readFileSync(process.argv[2] ?? `${docs}performance.json`, 'utf8'))
const page = `${docs}performance.md`
writeFileSync(page, withFigures(readFileSync(page, 'utf8'), report))
if (report.series.length > 0) {
  mkdirSync(`${docs}images`, { recursive: true })
  writeFileSync(`${docs}images/growth.svg`, growthPlot(report.series))
}
