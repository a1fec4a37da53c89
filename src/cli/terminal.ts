import pc from 'picocolors'
import { AppError, errorText } from '../kit/errors.ts'
import { haltWriters } from '../kit/sqlite/writer.ts'

/** One line of a banner. */
export type Line = [label: string, text: string]

const LABEL_WIDTH = 10

/** What a service says when it has started. */
export function banner(name: string, lines: readonly Line[]): void {
  console.log(`\n  ${pc.bold('Switchboard')} ${name}\n`)
  for (const [label, text] of lines) console.log(`  ${pc.dim(label.padEnd(LABEL_WIDTH))} ${text}`)
  console.log('')
}

/** An address that can be called from this machine, and a line that says so when the service listens on all of them. */
export function reachable({ host, port, url }: { host: string; port: number; url: string }): {
  at: string
  listens: Line[]
} {
  if (host !== '0.0.0.0' && host !== '::') return { at: url, listens: [] }
  return {
    at: `http://127.0.0.1:${port}`,
    listens: [['listens', `on every address of this machine, port ${port}`]],
  }
}

/** Columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => line(row).trimEnd()).join('\n')
}

/** The first signal stops cleanly, the second at once. */
export function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false
  const onSignal = () => {
    if (stopping) return void haltWriters().finally(() => process.exit(130))
    stopping = true
    console.error('Stopping…')
    stop().then(() => process.exit(0), fail)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
}

/** Says what went wrong, in one line where it was foreseen, and ends. */
export function fail(error: unknown): never {
  console.error(pc.red(error instanceof AppError ? error.message : `Something went wrong: ${errorText(error)}`))
  process.exit(1)
}
